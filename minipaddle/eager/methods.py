"""Methods of Paddle's `Tensor` beyond the engine's: other names, memory, DLPack, second forms."""

from __future__ import annotations

import operator
from copy import deepcopy

from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.errors import teach, type_error, value_error
from ..engine.core.record import owner, writes
from ..engine.eager.pylayer import PyLayerContext
from ..engine.eager.tensor import Parameter, Tensor, numbers
from ..engine.eager.values import Values
from ..engine.ops import reduction
from ..engine.ops.creation import assign
from ..tensor.methods import own_members


def place_in_index(k: int, n):
    """Number k of an index, as an int or as what only a run knows."""
    later = isinstance(n, Tensor) and current.top.tracing and n.spec.dtype.kind in "iu"
    if later or isinstance(n, Dim):
        return n
    try:
        return operator.index(n)
    except TypeError:
        message = f"item(): argument (position {k}) must be long, but got {type(n).__name__}"
        raise type_error(message) from None


def element(x: Tensor, index: tuple) -> Tensor:
    """An element as a 0-D tensor: its place in row-major order, or its index along each axis."""
    index = tuple(map(place_in_index, range(1, len(index) + 1), index))
    x = x.detach()
    if len(index) == 1:
        x = x.flatten()
        where = f"size {x.spec.size}"
    elif len(index) != x.spec.ndim:
        raise value_error(
            f"item(): incorrect number of indices for Tensor: {len(index)} of {x.spec}",
            expected=f"one, or {x.spec.ndim}",
        )
    for axis, (n, size) in enumerate(zip(index, x.spec.shape, strict=True)):
        if not isinstance(n, Tensor) and not -size <= n < size:
            at = where if len(index) == 1 else f"axis {axis} with size {size}"
            raise value_error(f"item(): index {n} is out of bounds for {at}")
    return x[index]


class EagerMethods:
    """Methods and properties that `Tensor` gets."""

    @property
    def type(self) -> str:
        """The kind of tensor: always dense."""
        return "DENSE_TENSOR"

    @property
    def inplace_version(self) -> int:
        """How often its memory was written in place."""
        return writes(id(owner(self.array)))[1]

    @property
    def requires_grad(self) -> bool:
        """The opposite of `stop_gradient`."""
        return not self.stop_gradient

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.stop_gradient = not value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`; returns itself.

        >>> x = paddle.ones([2])
        >>> x.requires_grad_().stop_gradient
        False
        """
        self.stop_gradient = not requires_grad
        return self

    def detach_(self) -> Tensor:
        """Forget the past."""
        self.record, self.stop_gradient = None, True
        return self

    def item(self, *args):
        """The single value as a Python number: the only one, number `k` in row-major order
        (`item(k)`), or the one at an index (`item(i, j)`).

        Raises ValueError if there is no such element.

        >>> x = paddle.to_tensor([[1.5, 2.5]])
        >>> x.item(1), x.item(0, 0), paddle.to_tensor([[2.5]]).item()
        (2.5, 1.5, 2.5)
        """
        return Values.item(element(self, args) if args else self)

    def value(self) -> Tensor:
        """Itself."""
        return self

    get_tensor = value

    @property
    def data(self) -> Tensor:
        """Itself; assigning another tensor takes over its memory."""
        return self

    @data.setter
    def data(self, value: Tensor) -> None:
        self.array = value.array

    def retain_grads(self) -> None:
        """Keep `.grad` of a computed tensor too.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> y = x * 2
        >>> y.retain_grads()
        >>> (y * y).backward()
        >>> y.grad.item()
        12.0
        """
        if not self.is_leaf:
            self.register_hook(lambda g: setattr(self, "_grad", g.detach()))

    def apply(self, func) -> Tensor:
        """`func` of this tensor. Raises RuntimeError if it wants a gradient.

        >>> x = paddle.ones([2])
        >>> x.apply(lambda t: t * 3).tolist()
        [3.0, 3.0]
        """
        if not self.stop_gradient:
            raise RuntimeError(
                teach("apply on a tensor that wants a gradient", hint="call func(x) yourself")
            )
        return func(self)

    def apply_(self, func) -> Tensor:
        """`apply` in place.

        >>> x = paddle.ones([2])
        >>> x.apply_(lambda t: t * 3).tolist()
        [3.0, 3.0]
        """
        return self.become(self.apply(func))

    def __contains__(self, value) -> bool:
        """Whether an element equals `value`."""
        same = self == value
        return bool(reduction.any(same, axis=tuple(range(same.spec.ndim)), keepdim=False))

    def __deepcopy__(self, memo):
        """A copy of the values, with no past, no gradient and a new name."""
        copy = object.__new__(type(self))
        copy.__dict__.update(
            self.__dict__, array=self.array.copy(), record=None, _grad=None, _stale=False
        )
        copy.name = f"{self.name}_deepcopy_{next(numbers)}"
        memo[id(self)] = copy
        for name, x in copy.__dict__.items():  # further attributes, such as its mask
            if isinstance(x, Tensor):
                copy.__dict__[name] = deepcopy(x, memo)
        return copy

    def __complex__(self) -> complex:
        return complex(self.item())

    def __reduce_ex__(self, protocol):
        raise type_error(
            "a Tensor cannot be pickled: unpickling runs code",
            hint="paddle.save(x, path), or x.numpy()",
        )

    def gradient(self):
        """`.grad` as a NumPy array.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * x).backward()
        >>> x.gradient().tolist()
        [6.0]
        """
        return None if self.grad is None else self.grad.numpy()

    def _grad_ivar(self):  # a private name of Paddle's that programs call
        return self.grad

    # ---- memory ------------------------------------------------------------------------------

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    # ---- memory ------------------------------------------------------------------------------

    def data_ptr(self) -> int:
        """The address of the first element."""
        pointer = getattr(self.array, "ctypes", None) or self.array.data
        return getattr(pointer, "data", None) or pointer.ptr

    @property
    def strides(self) -> list[int]:
        """Steps between neighbours along each axis, in elements."""
        return [s // self.array.itemsize for s in self.array.strides]

    def stride(self, dim: int | None = None):
        """`strides`, or that of one axis.

        >>> paddle.ones([2, 3]).stride()
        [3, 1]
        """
        return self.strides if dim is None else self.strides[dim]

    def get_strides(self) -> list[int]:
        """`strides` as a method."""
        return self.strides

    def is_contiguous(self) -> bool:
        """Are the elements in row-major order without gaps?

        >>> paddle.ones([2, 3]).T.is_contiguous()
        False
        """
        return self.array.flags.c_contiguous

    def contiguous(self):
        """In row-major order without gaps: itself if it is so already, else a copy.

        >>> paddle.ones([2, 3]).T.contiguous().is_contiguous()
        True
        """
        return self if self.is_contiguous() else assign(self)

    def copy_(self, other, blocking: bool = True):
        """`set_value`, returning the tensor."""
        self.set_value(other)
        return self


class FurtherOfParameters:
    """Further methods of `Parameter`."""

    is_distributed = False
    block = None  # Paddle's program it belongs to: programs hand it on, `init(param, param.block)`

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.stop_gradient = not value


class FurtherOfContexts:
    """Further methods of `PyLayerContext`."""

    def mark_not_inplace(self, *tensors) -> None:
        """Nothing to do: a result never shares its past with an input here."""

    def set_materialize_grads(self, value: bool) -> None:
        """Missing gradients of results are zeros; asking for None instead is refused."""
        if not value:
            raise NotImplementedError("set_materialize_grads(False) is not supported: test g == 0")


for _name, _member in own_members(FurtherOfContexts).items():
    setattr(PyLayerContext, _name, _member)
Tensor.register(own_members(EagerMethods))
Parameter.register(own_members(FurtherOfParameters))
