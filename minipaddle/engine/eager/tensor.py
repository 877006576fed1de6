"""`Tensor`: an array with a past. The past is a record on the tape; `backward` walks it."""

from __future__ import annotations

from bisect import bisect_left
from itertools import count

import numpy

from ..core import dtype as dt
from ..core.dim import as_guarded, same_shape
from ..core.dispatch import current
from ..core.errors import runtime_error, value_error
from ..core.op import OPS
from ..core.record import Record, Spec
from ..ir.builder import SymbolicArray
from ..ops.creation import assign
from ..ops.var import Var
from .backward import AVERAGING, backward
from .convert import own_array
from .device import Place, module_of, place_of
from .items import Indexing
from .tape import TensorHookHandle, get_leaf, leaf_write_error, take_past
from .values import Values


class Tensor(Indexing, Values, Var):
    """An n-dimensional array that can be differentiated. Made by `paddle.to_tensor`.

    `stop_gradient` is True by default; only a tensor for which it is False gets a gradient.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """

    # Set on an instance only when they differ: making a tensor must cost little.
    record = None  # the record that computed it; None for a tensor that was given
    stop_gradient = True
    persistable = False
    is_parameter = False
    _name = None
    _grad = None
    averaged: dict | None = None  # `group` of the ranks that average its gradient, `bucket_mb`
    _stale = False  # whether `_grad` was cleared and stands for zeros
    row_sparse = False  # whether it is a gradient that is zero outside of some rows, which it names
    _local = None  # of an averaged gradient: that of this rank alone, to which a backward adds

    def __init__(self, data=None, dtype=None, place=None, stop_gradient: bool = True):
        self.array = own_array([] if data is None else data, dtype, place)
        self.stop_gradient = stop_gradient

    # ---- what it is --------------------------------------------------------------------------

    @property
    def spec(self) -> Spec:
        array = self.array if type(self.array) is not SymbolicArray else self.array.record
        return new_spec(Spec, (array.shape, array.dtype))

    @property
    def shape(self) -> list[int]:
        """The size of each dimension."""
        if current.top.tracing:  # what is decided by an open size is noted
            return [as_guarded(n, True) for n in self.array.shape]
        return list(self.array.shape)

    @property
    def dtype(self) -> dt.DType:
        """`paddle.float32`, …"""
        return dt.public(self.array.dtype)

    @property
    def size(self) -> int:
        """How many elements."""
        return as_guarded(self.array.size, True)

    @property
    def place(self) -> Place:
        """The device it is on."""
        return place_of(self.array)

    @property
    def name(self) -> str:
        """A unique name, created when first asked for."""
        if self._name is None:
            self._name = f"generated_tensor_{next(numbers)}"
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    @property
    def is_leaf(self) -> bool:
        """Whether it was given, not computed."""
        return self.record is None or not self.record.inputs

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-D tensor")
        return self.array.shape[0]

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name}, {self.tolist()})"

    __hash__ = object.__hash__

    # ---- autograd ----------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """The gradient a backward left here; None before."""
        top = current.top
        if top.tracing:
            top.lift(self)
        if self._stale:
            self.grad = top.waiting(self)
        if self._grad is not None and not top.tracing:
            self._grad.stop_gradient = False  # as in Paddle
        return self._grad

    @grad.setter
    def grad(self, value) -> None:
        if value is not None and value.spec.shape != self.spec.shape:
            raise value_error(
                f"a gradient of {value.spec} for {self.spec}", expected=f"shape {self.shape}"
            )
        if current.top.tracing:
            current.top.lift(self)
        self._grad, self._stale = value, False

    def backward(self, grad_tensor=None, retain_graph: bool = False) -> None:
        """Add d(self)/d(leaf) to `.grad` of every leaf that wants one.

        `grad_tensor` (shape of self) weighs the elements; ones if absent.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * x).backward()
        >>> x.grad.item()
        6.0
        """
        backward([self], [grad_tensor], retain_graph)

    def receive(self, g: Tensor) -> None:
        """Add a gradient to the one of earlier backwards."""
        if self._grad is not None and not self._stale:
            total = (self._grad if self._grad._local is None else self._grad._local) + g
        else:  # a broadcast view would share memory that belongs to others
            alone = g.row_sparse or (g.array.base is None and g.array.flags.c_contiguous)
            total = g if alone else assign(g)
        self._grad, self._stale = total, False
        if self.averaged is not None and current.top.tracing and AVERAGING.now:
            self._grad = total.average_over_ranks(**self.averaged)
            self._grad._local = total

    def average_over_ranks(self, *, group: int, bucket_mb: float, ranks: int = 1) -> Tensor:
        """The average of a gradient over the ranks, in a program. It may start as soon as it is
        there: `early` is (when that is, bytes, `bucket_mb`), see `async_collectives`.
        """
        builder = current.top.builder
        record, time = builder.value(self.array), Record.time.__get__
        at = bisect_left(builder.program.records, time(record), key=time)
        early = (at,), self.spec.nbytes, bucket_mb
        return OPS["all_reduce"](self, op="avg", group=group, early=early)

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Set `.grad` to zeros, or to None.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * x).backward()
        >>> x.clear_gradient()
        >>> x.grad.item()
        0.0
        """
        if current.top.tracing:
            current.top.lift(self)
        if set_to_zero:  # zeros are created on demand: to add to them costs a pass
            self._stale = self._grad is not None
        else:
            self.grad = None

    def clear_grad(self) -> None:
        """Set `.grad` to zeros."""
        self.clear_gradient()

    def detach(self) -> Tensor:
        """The same memory with no past: no gradient flows through it.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * 2).detach().stop_gradient
        True
        """
        if current.top.tracing:  # the program's state is this tensor, not the detached one
            current.top.lift(self)
        return wrap(self.array)

    def register_hook(self, hook):
        """Call `hook(gradient)` once this tensor's gradient is known; its result replaces it.

        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * x).backward()
        >>> x.grad.item()
        60.0
        """
        if self.stop_gradient:
            raise runtime_error(
                "register_hook on a tensor with stop_gradient=True: it gets no gradient",
                hint="set x.stop_gradient = False before using it",
            )
        if current.top.tracing:
            hook = current.top.accept_hook(self, hook)
        record = self.record or get_leaf(self)
        if record.hooks is None:
            record.hooks = []
        record.hooks.append(hook)
        return TensorHookHandle(record, hook)

    # ---- in place ----------------------------------------------------------------------------

    def become(self, result: Tensor, *, reshaped: bool = False) -> Tensor:
        """Take over the value and the past of `result`, as the last step of an in-place method.

        The memory stays unless the dtype changes, or the shape, which `reshaped` allows.
        """
        shapes = self.array.shape, result.array.shape
        if not reshaped and shapes[0] != shapes[1] and not same_shape(*shapes):
            raise value_error(
                f"in-place result of shape {result.shape} does not fit {self.spec}",
                hint="use the out-of-place form",
            )
        if current.top.tracing:
            return current.top.become(self, result)
        new_memory = reshaped or self.array.dtype != result.array.dtype
        if result.record is not None and self.is_leaf and not self.stop_gradient:
            raise leaf_write_error()
        if new_memory or (result.record is not None and self.is_needed_by(result.record)):
            self.array = result.array
        else:
            self.overwrite(result.array)
        take_past(self, result)
        return self

    def is_needed_by(self, record) -> bool:
        """Whether a write to this memory would change a base tensor or what `record` saves."""
        kept = (record.saved or {}).values()
        return self.array.base is not None or any(value is self.array for value in kept)


class Parameter(Tensor):
    """A tensor a layer learns: a leaf that wants a gradient, unless `trainable` is False."""

    is_parameter = True
    persistable = True

    def __init__(self, data, dtype=None, name: str = "", trainable: bool = True):
        if current.top.tracing:
            self.array = current.top.make_parameter(self, data, dtype)
            self.stop_gradient = not trainable
        else:
            super().__init__(data, dtype, stop_gradient=not trainable)
        self.name = name
        self.optimize_attr = {"learning_rate": 1.0}
        self.regularizer = None
        self.need_clip = True


new, new_spec = object.__new__, tuple.__new__  # calling the classes costs twice as much
numbers = count()  # for names


def get_edge(x: Tensor | None) -> Record | None:
    """The record that leads to x, None if x has no gradient."""
    return None if x is None or x.stop_gradient else x.record or get_leaf(x)


def wrap(array) -> Tensor:
    """A tensor around an array, off the tape, made as cheaply as can be."""
    out = new(Tensor)
    plain = type(array) is numpy.ndarray or type(array) is SymbolicArray
    out.array = array if plain else module_of(array).asarray(array)
    return out


def same_value(a, b) -> bool:
    """Whether two values that are no tensors are the same."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # an array has no truth value
        return False
