"""What is C++ in Paddle: places, tensors, dtypes by the names they had before 2.0.

Source: Paddle `paddle.base.core`.
"""

from __future__ import annotations

from types import SimpleNamespace

from ..core.missing import namespace
from ..eager.cuda import device_count as get_cuda_device_count
from ..engine.core import dtype as dt
from ..engine.eager.device import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, is_compiled_with_cuda
from ..engine.eager.tensor import Tensor

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "Place", "VarDesc", "eager",
    "get_cuda_device_count", "is_compiled_with_cuda",
]  # fmt: skip

eager = SimpleNamespace(Tensor=Tensor)


class VarDesc:
    """`VarDesc.VarType.FP32` is `paddle.float32`.

    >>> import minipaddle as paddle
    >>> paddle.base.core.VarDesc.VarType.INT64
    paddle.int64
    """

    class VarType:
        BOOL, UINT8, INT8, INT16, INT32, INT64 = (
            dt.public(name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64")
        )
        FP16, BF16, FP32, FP64 = (
            dt.public(name) for name in ("float16", "bfloat16", "float32", "float64")
        )
        DENSE_TENSOR = LOD_TENSOR = "DENSE_TENSOR"


__getattr__ = namespace("paddle.base.core", globals())
