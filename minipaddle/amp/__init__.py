"""Mixed precision: Paddle's face `paddle.amp`. `core/casting.py` implements it."""

from ..core.missing import namespace
from . import debugging
from .auto_cast import amp_guard, auto_cast
from .decorate import amp_decorate, decorate
from .grad_scaler import GradScaler
from .lists import black_list, white_list
from .support import (
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_enabled,
    is_bfloat16_supported,
    is_float16_supported,
)

__getattr__ = namespace("paddle.amp", globals())
