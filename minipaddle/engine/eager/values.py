"""A tensor's values as Python and NumPy objects, and into them: `numpy`, `item`, `set_value`, …"""

from __future__ import annotations

import numpy

from ..core.dispatch import current
from ..core.errors import value_error
from ..core.record import mark_written, writable
from .convert import as_array
from .device import CPU


class Values:
    """The part of `Tensor` that meets Python's protocols and NumPy's."""

    def numpy(self, blocking: bool = True) -> numpy.ndarray:
        """A copy of the values as a NumPy array; it is whole whatever `blocking` says.

        >>> x = paddle.ones([2])
        >>> x.numpy()
        array([1., 1.], dtype=float32)
        """
        array = CPU.move(self.array)
        return array.copy() if array is self.array else array

    __array_ufunc__ = None  # NumPy's operators leave `array * tensor` to the tensor

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def tolist(self):
        """Nested lists of Python numbers.

        >>> x = paddle.ones([2])
        >>> x.tolist()
        [1.0, 1.0]
        """
        return CPU.move(self.array).tolist()

    def item(self, *args):
        """The single value (or the one at an index) as a Python number.

        >>> paddle.to_tensor([[2.5]]).item()
        2.5
        """
        if not args and self.array.size != 1:
            raise value_error(
                f"item() of {self.spec}: it has {self.array.size} elements, not one",
                hint="index it, or use tolist()",
            )
        return CPU.move(self.array).item(*args)

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise value_error(
                f"the truth value of {self.spec} is ambiguous: {self.array.size} elements",
                hint="use x.all(), x.any(), or paddle.where",
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.array.dtype.kind not in "biu":
            raise TypeError(f"{self.spec} cannot be used as an index: it is no whole number")
        return int(self.item())

    def set_value(self, value) -> None:
        """Overwrite the values; the past, the dtype and the device stay.

        Raises ValueError if the shapes differ.

        >>> x = paddle.zeros([2])
        >>> x.set_value(paddle.ones([2]))
        >>> x.tolist()
        [1.0, 1.0]
        """
        if current.top.tracing:
            current.top.write(self, value)
            return
        array = getattr(value, "array", None)
        if type(array) is not type(self.array):  # other data, or on another device
            array = as_array(value, self.array.dtype, self.place)
        if array.shape != self.array.shape:
            raise value_error(
                f"set_value of shape {list(array.shape)} into {self.spec}",
                expected=f"shape {list(self.array.shape)}",
            )
        self.overwrite(array)

    def overwrite(self, array) -> None:
        """Overwrite the memory of this tensor with the values of `array`.

        If elements share memory (an expanded tensor), the tensor gets new memory instead.
        """
        own = self.array
        repeated = own.base is not None and 0 in own.strides
        if repeated or not writable(own):
            self.array = array.copy()
        else:
            own[...] = array
            mark_written(own)
