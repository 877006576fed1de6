"""Classes and questions that programs import from Paddle's framework file.

Source: Paddle `paddle.base.framework`.
"""

from __future__ import annotations

from ..core.missing import namespace
from ..engine.core import dtype as dt
from ..engine.eager.device import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    current_place,
    is_compiled_with_cuda,
)
from ..engine.eager.tensor import Parameter
from ..static import Program, Variable, default_main_program, default_startup_program, program_guard
from ..static.mode import disable_static, enable_static, in_dynamic_mode
from . import core

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "EagerParamBase", "Parameter", "Program",
    "Variable", "convert_np_dtype_to_dtype_", "core", "default_main_program",
    "default_startup_program", "disable_static", "dygraph_only", "enable_static",
    "in_dynamic_mode", "in_dynamic_or_pir_mode", "in_pir_mode", "is_compiled_with_cuda",
    "program_guard", "use_pir_api",
]  # fmt: skip

EagerParamBase = Parameter
in_dynamic_or_pir_mode = in_dynamic_mode
_current_expected_place = _current_expected_place_ = current_place


def in_pir_mode() -> bool:
    """False: Paddle's program format is not MiniPaddle's."""
    return False


use_pir_api = in_pir_mode


def convert_np_dtype_to_dtype_(np_dtype):
    """`paddle.float32` of "float32", `numpy.float32` and their like."""
    return dt.public(dt.resolve(np_dtype))


def dygraph_only(func):
    """The function itself: what needs values says so."""
    return func


__getattr__ = namespace("paddle.base.framework", globals())
