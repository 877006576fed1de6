"""MiniPaddle: the deep-learning framework to learn from. `import minipaddle as paddle`.

Every example in a docstring starts after that line. The source of a public name is the name in
Paddle's API unless its docstring names another.
"""

from importlib import import_module as _import
from math import e, inf, nan, pi
from sys import meta_path as _meta_path

# the other folders come with the names below
from . import (
    _C_ops,
    _legacy_C_ops,
    amp,
    autograd,
    callbacks,
    distribution,
    executors,
    geometric,
    incubate,
    inference,
    linalg,
    privacy,
    quantization,
    reader,
    slim,
    text,
    utils,
    vision,
)
from .amp.support import (
    autocast,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_enabled,
)
from .core.default_dtype import get_default_dtype, set_default_dtype
from .core.missing import Refusals as _Refusals
from .core.missing import RenamedModules as _Elsewhere
from .core.missing import name_spaces as _name_spaces
from .core.missing import namespace as _namespace
from .device import (
    get_cudnn_version,
    is_compiled_with_cinn,
    is_compiled_with_custom_device,
    is_compiled_with_distribute,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
)
from .distributed import DataParallel
from .eager.devices import CUDAPinnedPlace, get_device, is_compiled_with_cuda
from .eager.dlpack import from_dlpack, to_dlpack
from .eager.gpu import CUDAPlace
from .eager.modes import *
from .eager.printing import set_printoptions
from .engine.core import dtype as _dtypes
from .engine.core.dtype import DType as dtype
from .engine.core.dtype import bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8
from .engine.core.slots import plugged
from .engine.eager.backward import grad
from .engine.eager.device import CPUPlace, device_guard, set_device
from .engine.eager.tensor import Parameter, Tensor
from .framework import disable_signal_handler, finfo, get_flags, iinfo, set_flags
from .hapi import *
from .io import load, save
from .nn.functional import (
    adaptive_avg_pool1d,
    conv1d,
    conv2d,
    conv3d,
    group_norm,
    layer_norm,
    softmax,
)
from .nn.param_attr import LazyGuard, ParamAttr, create_parameter
from .reader import batch
from .static.mode import disable_static, enable_static, in_dynamic_mode, in_static_mode
from .tensor.attribute import *
from .tensor.composed import *
from .tensor.creation import *
from .tensor.decompositions import cholesky, eigvalsh
from .tensor.einsum import *
from .tensor.generator import *
from .tensor.generator import seed as manual_seed
from .tensor.inplace import *
from .tensor.linalg import *
from .tensor.logic import *
from .tensor.manipulation import *
from .tensor.math import *
from .tensor.matrices import inverse
from .tensor.norms import cdist, dist, norm, pdist
from .tensor.random import *
from .tensor.reduce import *
from .tensor.search import *
from .tensor.stat import *
from .tuning import tune
from .version import full_version as __version__

bool = _dtypes.bool_
half, float, double, long = float16, float32, float64, int64
newaxis, Size = None, list

_missing = _namespace("paddle", globals())
_meta_path += [_Elsewhere, _Refusals]
_name_spaces()


def __getattr__(name: str):
    """Pictures, ONNX and the hub are imported when first asked for: that takes a while."""
    return _import(f"{__name__}.{name}") if name in ("viz", "onnx", "hub") else _missing(name)
