"""A tensor's values as Python and NumPy objects, and into them: `numpy`, `item`, `set_value`, …"""

from __future__ import annotations

import numpy

from ..core.dispatch import current
from ..core.errors import type_error, value_error
from ..core.record import mark_written
from ..ops.creation import assign
from .convert import as_array
from .device import CPU


class Values:
    """The part of `Tensor` that meets Python's protocols, NumPy's and DLPack's."""

    def numpy(self, blocking: bool = True) -> numpy.ndarray:
        """A copy of the values as a NumPy array; it is whole whatever `blocking` says.

        Source: Paddle API `Tensor.numpy`.

        >>> import minipaddle as paddle
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
        """Nested lists of Python numbers. Source: Paddle API `Tensor.tolist`.

        >>> import minipaddle as paddle
        >>> x = paddle.ones([2])
        >>> x.tolist()
        [1.0, 1.0]
        """
        return CPU.move(self.array).tolist()

    def item(self, *args):
        """The single value (or the one at an index) as a Python number.

        Source: Paddle API `Tensor.item`.

        >>> import minipaddle as paddle
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

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.array.dtype.kind not in "biu":
            raise TypeError(f"{self.spec} can not be used as an index: it is no whole number")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.array.ndim == 0 else format(str(self), spec)

    def __reduce_ex__(self, protocol):
        raise type_error(
            "a Tensor can not be pickled: unpickling runs code",
            hint="paddle.save(x, path), or x.numpy()",
        )

    def gradient(self) -> numpy.ndarray | None:
        """`.grad` as a NumPy array. Source: Paddle API `Tensor.gradient`.

        >>> import minipaddle as paddle
        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * x).backward()
        >>> x.gradient().tolist()
        [6.0]
        """
        return None if self.grad is None else self.grad.numpy()

    def _grad_ivar(self):  # a private name of Paddle's that programs call
        return self.grad

    # ---- DLPack ------------------------------------------------------------------------------

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    # ---- memory ------------------------------------------------------------------------------

    def data_ptr(self) -> int:
        """The address of the first element. Source: Paddle API `Tensor.data_ptr`."""
        pointer = getattr(self.array, "ctypes", None) or self.array.data
        return getattr(pointer, "data", None) or pointer.ptr

    @property
    def strides(self) -> list[int]:
        """Steps between neighbours along each axis, in elements."""
        return [s // self.array.itemsize for s in self.array.strides]

    def stride(self, dim: int | None = None):
        """`strides`, or that of one axis. Source: Paddle API `Tensor.stride`.

        >>> import minipaddle as paddle
        >>> paddle.ones([2, 3]).stride()
        [3, 1]
        """
        return self.strides if dim is None else self.strides[dim]

    def get_strides(self) -> list[int]:
        """`strides` as a method. Source: Paddle API `Tensor.get_strides`."""
        return self.strides

    def is_contiguous(self) -> bool:
        """Do the elements lie in row-major order without gaps?

        Source: Paddle API `Tensor.is_contiguous`.

        >>> import minipaddle as paddle
        >>> paddle.ones([2, 3]).T.is_contiguous()
        False
        """
        return self.array.flags.c_contiguous

    def contiguous(self):
        """In row-major order without gaps: itself if it is so already, else a copy.

        Source: Paddle API `Tensor.contiguous`.

        >>> import minipaddle as paddle
        >>> paddle.ones([2, 3]).T.contiguous().is_contiguous()
        True
        """
        return self if self.is_contiguous() else assign(self)

    def set_value(self, value) -> None:
        """Overwrite the values; the past, the dtype and the device stay.

        Raises ValueError if the shapes differ. Source: Paddle API `Tensor.set_value`.

        >>> import minipaddle as paddle
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

    def copy_(self, other, blocking: bool = True):
        """`set_value`, returning the tensor. Source: Paddle API `Tensor.copy_`."""
        self.set_value(other)
        return self

    def overwrite(self, array) -> None:
        """Put the values of `array` where those of this tensor are.

        Memory in which one place stands for many elements (an expanded tensor) is left alone.
        """
        own = self.array
        repeated = own.base is not None and 0 in own.strides
        if repeated or not getattr(own.flags, "writeable", True):
            self.array = array.copy()
        else:
            own[...] = array
            mark_written(own)
