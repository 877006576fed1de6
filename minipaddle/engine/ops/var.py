"""`Var`, the value that user code holds, and Python's operators on it.

An eager `Tensor` and a value of a program are both Vars; a derivative rule computes with Vars.
"""

from __future__ import annotations

from ..core import dtype as dt
from ..core.dispatch import current
from ..core.slots import slot
from . import elementwise as e
from . import linalg, logic, movement, reduction


def unary(op):
    """`-x` for an operator of one input."""
    return lambda self: current.top.apply(op, (self,), NONE)


def binary(op):
    """`x + y` for an operator of two inputs."""
    return lambda self, other: current.top.apply(op, (self, other), NONE)


def reflect_binary(op):
    """`y + x` for a left operand that is no Var."""
    return lambda self, other: current.top.apply(op, (other, self), NONE)


def equality(op):
    """`x == y`; against None, text or a list Python answers, that they are not equal."""

    def compare(self, other):
        if type(other) in INCOMPARABLE:
            return NotImplemented
        return current.top.apply(op, (self, other), NONE)

    return compare


NONE = {}
INCOMPARABLE = {type(None), str, list, tuple}


class Var:
    """An array or the symbolic array of one: it has a `spec`, and arithmetic."""

    record = None  # the record that computed it
    stop_gradient = True
    slides = False  # whether it represents a slice, for which eager mode makes a view

    @property
    def spec(self):
        """Shape (a tuple) and dtype (NumPy's)."""
        raise NotImplementedError

    @property
    def dtype(self) -> dt.DType:
        """`paddle.float32`, …."""
        return dt.public(self.spec.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.spec.ndim

    @classmethod
    def register(cls, members: dict) -> None:
        """Make functions methods of every Var, and properties its properties."""
        for name, member in members.items():
            setattr(cls, name, member)

    def astype(self, dtype):
        """The same values in another data type; itself if it has that."""
        dtype = dt.resolve(dtype)
        return self if self.spec.dtype == dtype else e.cast(self, dtype=dtype)

    @slot("autograd.sum_to")
    def sum_to(self, shape):
        """Summed over the axes that broadcasting `shape` to this shape repeats: its adjoint.

        Broadcasting puts one value in many places, and each sends back a cotangent of its own.
        """
        own = self.spec.shape
        extra = len(own) - len(shape)
        stretched = [d + extra for d, n in enumerate(shape) if n == 1 and own[d + extra] != 1]
        axis = (*range(extra), *stretched)
        if not stretched:  # nothing but leading axes, or nothing at all
            return reduction.sum(self, axis=axis, keepdim=False) if axis else self
        summed = reduction.sum(self, axis=axis, keepdim=True)
        return movement.reshape(summed, shape=tuple(shape)) if extra else summed

    __add__, __radd__ = binary(e.add), reflect_binary(e.add)
    __sub__, __rsub__ = binary(e.subtract), reflect_binary(e.subtract)
    __mul__, __rmul__ = binary(e.multiply), reflect_binary(e.multiply)
    __truediv__, __rtruediv__ = binary(e.divide), reflect_binary(e.divide)
    __floordiv__, __rfloordiv__ = binary(e.floor_divide), reflect_binary(e.floor_divide)
    __mod__, __rmod__ = binary(e.remainder), reflect_binary(e.remainder)
    __pow__, __rpow__ = binary(e.pow), reflect_binary(e.pow)
    __matmul__, __rmatmul__ = binary(linalg.matmul), reflect_binary(linalg.matmul)
    __and__, __rand__ = binary(logic.bitwise_and), reflect_binary(logic.bitwise_and)
    __or__, __ror__ = binary(logic.bitwise_or), reflect_binary(logic.bitwise_or)
    __xor__, __rxor__ = binary(logic.bitwise_xor), reflect_binary(logic.bitwise_xor)
    __lt__, __le__ = binary(logic.less_than), binary(logic.less_equal)
    __gt__, __ge__ = binary(logic.greater_than), binary(logic.greater_equal)
    __eq__, __ne__ = equality(logic.equal), equality(logic.not_equal)
    __neg__, __abs__, __invert__ = unary(e.neg), unary(e.abs), unary(logic.bitwise_not)

    def __pos__(self):
        return self

    def __hash__(self):
        return id(self)
