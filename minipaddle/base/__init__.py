"""Paddle's internals that programs use: dtypes by their old names, checks, generated names.

Only the names that public programs use are here (`tests/data/used_names.json`). Source: Paddle
`paddle.base`.
"""

from ..core.flags import get_flags, set_flags
from ..nn.param_attr import ParamAttr
from ..static import Executor, Program, default_main_program, program_guard
from . import core, data_feeder, framework, layer_helper, param_attr, unique_name
from .core import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda
