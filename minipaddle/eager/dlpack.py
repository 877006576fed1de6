"""DLPack: tensors shared with other frameworks without a copy.

Source: the DLPack protocol, https://dmlc.github.io/dlpack/latest/python_spec.html
"""

from __future__ import annotations

from ..engine.eager.convert import clean
from ..engine.eager.device import CPU
from ..engine.eager.tensor import Tensor, wrap
from .gpu import CUDAPlace

__all__ = ["from_dlpack", "to_dlpack"]


class Capsule:
    """A bare capsule of CPU memory, with what NumPy asks of an object to import."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **kwargs):
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(dlpack, *, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another framework's (anything with `__dlpack__`), or a capsule.

    Writing in place to one changes the other, unless `copy` is True.

    >>> import numpy
    >>> paddle.from_dlpack(numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    source = dlpack if hasattr(dlpack, "__dlpack__") else Capsule(dlpack)
    kind, index = source.__dlpack_device__()
    place = CPU if kind == 1 else CUDAPlace(index)
    array = clean(place.module.from_dlpack(source))
    return wrap(array.copy() if copy else array)


def to_dlpack(x):
    """The tensor's memory as a capsule, which another framework can take over once.

    >>> paddle.from_dlpack(paddle.to_dlpack(paddle.ones([2]))).tolist()
    [1.0, 1.0]
    """
    return x.__dlpack__()
