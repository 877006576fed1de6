"""Data types. Inside the engine a dtype is a `numpy.dtype`; `DType` is the face users see."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .rank import per_rank

try:
    from ml_dtypes import bfloat16 as brain_float
except ImportError:  # NumPy has none of its own: then two bytes that can be stored
    brain_float = [("bits", np.uint16)]


class DType:
    """A data type as users write it: `paddle.float32`. Equal to its name and to NumPy's dtype.

    >>> from minipaddle.engine.core.dtype import float32
    >>> float32, float32 == "float32", float32.itemsize
    (paddle.float32, True, 4)
    """

    __slots__ = ("itemsize", "name", "numpy")
    _by_numpy: ClassVar[dict[np.dtype, DType]] = {}

    def __init__(self, name: str, numpy_type):
        self.name = name
        self.numpy = np.dtype(numpy_type)
        self.itemsize = self.numpy.itemsize
        DType._by_numpy[self.numpy] = self

    def __repr__(self) -> str:
        return f"paddle.{self.name}"

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __eq__(self, other) -> bool:
        try:
            return resolve(other) == self.numpy
        except TypeError:
            return NotImplemented

    def __reduce__(self):
        return (public, (self.name,))

    @property
    def dtype(self) -> np.dtype:
        """NumPy asks objects passed as `dtype=` for this attribute."""
        return self.numpy


bool_ = DType("bool", np.bool_)
uint8 = DType("uint8", np.uint8)
int8 = DType("int8", np.int8)
int16 = DType("int16", np.int16)
int32 = DType("int32", np.int32)
int64 = DType("int64", np.int64)
float16 = DType("float16", np.float16)
bfloat16 = DType("bfloat16", brain_float)
float32 = DType("float32", np.float32)
float64 = DType("float64", np.float64)

NAMES = {d.name: d for d in DType._by_numpy.values()}
HALVES = frozenset({float16.numpy, bfloat16.numpy})
FLOATS = HALVES | {float32.numpy, float64.numpy}
DEFAULT = per_rank(float32.numpy, "the default dtype")


def resolve(dtype) -> np.dtype:
    """The NumPy dtype meant by a `DType`, a name, or what NumPy takes: `float` is float64.

    Raises TypeError with the list of what exists when there is no such type.
    """
    if isinstance(dtype, DType):
        return dtype.numpy
    if isinstance(dtype, np.dtype) and dtype in DType._by_numpy:
        return dtype
    if isinstance(dtype, str) and dtype.removeprefix("paddle.") in NAMES:
        return NAMES[dtype.removeprefix("paddle.")].numpy
    if isinstance(dtype, str | type):  # "int", float, np.float32: as NumPy understands them
        try:
            numpy_dtype = np.dtype(dtype)
        except TypeError:
            numpy_dtype = None
        if numpy_dtype in DType._by_numpy:
            return numpy_dtype
    raise TypeError(
        f"{dtype!r} is no data type of MiniPaddle ({', '.join(NAMES)})"
        + (": complex numbers are not supported" if "complex" in str(dtype) else "")
    )


def public(dtype) -> DType:
    """The `DType` of a NumPy dtype or of anything `resolve` takes."""
    known = DType._by_numpy.get(dtype)
    return known if known is not None else DType._by_numpy[resolve(dtype)]


def wider(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype that holds the values of both; the two halves meet in float32."""
    return float32.numpy if {a, b} == HALVES else np.promote_types(a, b)


def default() -> np.dtype:
    """The dtype of Python floats: float32 unless `set_default_dtype` changed it."""
    return DEFAULT.now
