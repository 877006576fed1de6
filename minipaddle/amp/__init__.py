"""Mixed precision: Paddle's face `paddle.amp`. `core/casting.py` implements it."""

from . import debugging
from .auto_cast import amp_guard, auto_cast
from .decorate import amp_decorate, decorate
from .grad_scaler import GradScaler
from .lists import black_list, white_list
from .support import *
