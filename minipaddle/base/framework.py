"""Classes and questions that programs import from Paddle's framework file.

Source: Paddle `paddle.base.framework`.
"""

from ..engine.core import dtype as _dt
from ..engine.eager.device import current_place as _current_expected_place
from ..engine.eager.tensor import Parameter
from ..static import Program, Variable, default_main_program, default_startup_program, program_guard
from ..static.mode import disable_static, enable_static, in_dynamic_mode
from . import core
from .core import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda

EagerParamBase = Parameter
in_dynamic_or_pir_mode = in_dynamic_mode
_current_expected_place_ = _current_expected_place


def in_pir_mode() -> bool:
    """False: Paddle's program format is not MiniPaddle's."""
    return False


use_pir_api = in_pir_mode


def convert_np_dtype_to_dtype_(np_dtype):
    """`paddle.float32` of "float32", `numpy.float32` and their like."""
    return _dt.public(_dt.resolve(np_dtype))


def dygraph_only(func):
    """The function itself: functions that need values raise an error of their own."""
    return func
