"""What programs read of Paddle's insides: dtypes by their old names, checks, names nobody chose.

Only what public programs use is here (`tests/data/used_names.json`). Source: Paddle `paddle.base`.
"""

from ..core.missing import namespace
from ..nn.param_attr import ParamAttr
from ..static import Executor, Program, default_main_program, program_guard
from . import core, data_feeder, framework, unique_name
from .core import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "Executor", "ParamAttr", "Program", "core",
    "data_feeder", "default_main_program", "framework", "is_compiled_with_cuda", "program_guard",
    "unique_name",
]  # fmt: skip

__getattr__ = namespace("paddle.base", globals())
