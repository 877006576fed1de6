"""The names of Paddle's C++ part: places, tensors, dtypes by the names they had before 2.0.

Source: Paddle `paddle.base.core`.
"""

from types import SimpleNamespace as _Namespace

from ..eager.cuda import device_count as get_cuda_device_count
from ..eager.devices import CUDAPinnedPlace, is_compiled_with_cuda
from ..eager.gpu import CUDAPlace
from ..engine.core.dtype import public as _public
from ..engine.eager.device import CPUPlace, Place
from ..engine.eager.tensor import Tensor as _Tensor

eager = _Namespace(Tensor=_Tensor)


class VarDesc:
    """`VarDesc.VarType.FP32` is `paddle.float32`.

    >>> paddle.base.core.VarDesc.VarType.INT64
    paddle.int64
    """

    class VarType:
        BOOL, UINT8, INT8, INT16, INT32, INT64 = (
            _public(name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64")
        )
        FP16, BF16, FP32, FP64 = (
            _public(name) for name in ("float16", "bfloat16", "float32", "float64")
        )
        DENSE_TENSOR = LOD_TENSOR = "DENSE_TENSOR"
