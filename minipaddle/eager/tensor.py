"""`Tensor`: an array with a past. The past is a record on the tape; `backward` walks it."""

from __future__ import annotations

import numpy

from ..core import dtype as dt
from ..core.errors import teach
from ..core.record import Spec, mark_written
from ..tensor.methods import Methods
from .backward import backward
from .convert import as_array
from .device import CPU, Place, as_place, current_place, module_of, place_of
from .indexing import Indexing
from .printing import format_tensor
from .tape import leaf_of


class Tensor(Indexing, Methods):
    """An n-dimensional array that can be differentiated. Made by `paddle.to_tensor`.

    `stop_gradient` is True unless said otherwise: only what has it False gets a gradient.
    Source: Paddle API `paddle.Tensor`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """

    # Set on an instance only when they differ: making a tensor must cost little.
    record = None  # how it was computed; None for what was given
    stop_gradient = True
    persistable = False
    is_parameter = False
    name = ""
    _grad = None

    def __init__(self, data=None, dtype=None, place=None, stop_gradient: bool = True):
        self.array = as_array([] if data is None else data, dtype, place)
        self.stop_gradient = stop_gradient

    # ---- what it is --------------------------------------------------------------------------

    @property
    def spec(self) -> Spec:
        return Spec(self.array.shape, self.array.dtype)

    @property
    def shape(self) -> list[int]:
        return list(self.array.shape)

    @property
    def dtype(self) -> dt.DType:
        return dt.public(self.array.dtype)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def size(self) -> int:
        return self.array.size

    @property
    def place(self) -> Place:
        return place_of(self.array)

    @property
    def is_leaf(self) -> bool:
        """Was it given rather than computed?"""
        return self.record is None or not self.record.inputs

    @property
    def strides(self) -> list[int]:
        """Steps between neighbours along each axis, in elements."""
        return [s // self.array.itemsize for s in self.array.strides]

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-D tensor")
        return self.array.shape[0]

    def __repr__(self) -> str:
        return format_tensor(self)

    __hash__ = object.__hash__

    # ---- to and from Python and NumPy --------------------------------------------------------

    def numpy(self) -> numpy.ndarray:
        """The values as a NumPy array on the CPU; shares memory when the tensor is there."""
        return CPU.move(self.array)

    def __array__(self, dtype=None, copy=None):
        a = self.numpy()
        return a if dtype is None else a.astype(dtype)

    def tolist(self):
        return self.numpy().tolist()

    def item(self, *args):
        """The single value (or the one at an index) as a Python number."""
        if not args and self.array.size != 1:
            raise ValueError(
                teach(
                    f"item() of {self.spec}: it has {self.array.size} elements, not one",
                    hint="index it, or use tolist()",
                )
            )
        return self.numpy().item(*args)

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise ValueError(
                teach(
                    f"the truth value of {self.spec} is ambiguous: {self.array.size} elements",
                    hint="use x.all(), x.any(), or paddle.where",
                )
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.array.dtype.kind not in "biu":
            raise TypeError(f"{self.spec} can not be used as an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.array.size == 1 else str(self)

    def __reduce_ex__(self, protocol):
        raise TypeError(
            teach(
                "a Tensor can not be pickled: unpickling runs code",
                hint="paddle.save(x, path), or x.numpy()",
            )
        )

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(teach("deepcopy of a computed tensor", hint="x.detach() first"))
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, array=self.array.copy(), record=None, _grad=None)
        memo[id(self)] = copy
        return copy

    def __dlpack__(self, **kwargs):
        return self.detach().array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    # ---- autograd ----------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """The gradient a backward left here; None before."""
        return self._grad

    @grad.setter
    def grad(self, value) -> None:
        self._grad = value

    def backward(self, grad_tensor=None, retain_graph: bool = False) -> None:
        """Add d(self)/d(leaf) to `.grad` of every leaf that wants one.

        `grad_tensor` (shape of self) weighs the elements; ones if absent.
        Source: Paddle API `Tensor.backward`.
        """
        backward([self], [grad_tensor], retain_graph)

    def receive(self, g: Tensor) -> None:
        """Add a gradient to what a former backward left here."""
        if self._grad is not None:
            self._grad = self._grad + g
        else:  # a broadcast view would share memory that belongs to others
            whole = g.array.base is None and g.array.flags.c_contiguous
            self._grad = g if whole else wrap(g.array.copy())

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Set `.grad` to zeros, or to None."""
        if self._grad is not None:
            self._grad = wrap(self._grad.array * 0) if set_to_zero else None

    def clear_grad(self) -> None:
        """Forget the gradient."""
        self._grad = None

    def detach(self) -> Tensor:
        """The same memory with no past: no gradient flows through it."""
        return wrap(self.array)

    def register_hook(self, hook):
        """Call `hook(gradient)` once this tensor's gradient is known; its result replaces it."""
        if self.stop_gradient:
            raise RuntimeError(
                teach(
                    "register_hook on a tensor with stop_gradient=True: it gets no gradient",
                    hint="set x.stop_gradient = False before using it",
                )
            )
        record = self.record or leaf_of(self)
        record.hooks = [*(record.hooks or ()), hook]
        return HookHandle(record, hook)

    def retain_grads(self) -> None:
        """Keep `.grad` of a computed tensor too."""
        if not self.is_leaf:
            self.register_hook(lambda g: setattr(self, "_grad", g.detach()))

    # ---- in place ----------------------------------------------------------------------------

    def become(self, result: Tensor) -> Tensor:
        """Take over the value and the past of `result`: what every in-place method ends with."""
        if self.array.shape != result.array.shape:
            raise ValueError(
                teach(
                    f"in-place result of shape {result.shape} does not fit {self.spec}",
                    hint="use the out-of-place form",
                )
            )
        if result.record is not None and self.is_leaf and not self.stop_gradient:
            raise ValueError(
                teach(
                    "in-place change of a leaf that wants a gradient: its gradient would be lost",
                    hint="wrap it in paddle.no_grad(), or use the out-of-place form",
                )
            )
        if result.record is not None and self.array.base is not None:
            self.array = result.array  # a view of tracked memory: never write through it
        else:
            self.array[...] = result.array
            mark_written(self.array)
        if result.record is not None:
            self.record, self.stop_gradient = result.record, False
        return self

    # ---- devices -----------------------------------------------------------------------------

    def cpu(self) -> Tensor:
        return self.to("cpu")

    def cuda(self, device_id: int = 0, blocking: bool = True) -> Tensor:
        return self.to(f"gpu:{device_id}")


class HookHandle:
    """What `register_hook` returns: `remove()` takes the hook away."""

    def __init__(self, record, hook):
        self.record, self.hook = record, hook

    def remove(self) -> bool:
        hooks = self.record.hooks or []
        if self.hook not in hooks:
            return False
        self.record.hooks = [h for h in hooks if h is not self.hook]
        return True


class Parameter(Tensor):
    """A tensor a layer learns: a leaf that wants a gradient, unless `trainable` is False."""

    is_parameter = True
    persistable = True
    is_distributed = False

    def __init__(self, data, dtype=None, name: str = "", trainable: bool = True):
        super().__init__(data, dtype, stop_gradient=not trainable)
        self.name = name
        self.optimize_attr = {"learning_rate": 1.0}
        self.regularizer = None
        self.need_clip = True

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.stop_gradient = not value


new = object.__new__


def wrap(array) -> Tensor:
    """A tensor around an array, off the tape, made as cheaply as can be."""
    out = new(Tensor)
    out.array = array if type(array) is numpy.ndarray else module_of(array).asarray(array)
    return out
