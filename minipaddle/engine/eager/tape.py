"""The leaves of the tape, where a backward stops, and the handles of hooks."""

from __future__ import annotations

import weakref

from ..core.dispatch import current
from ..core.dtype import FLOATS
from ..core.errors import teach
from ..core.grad import TupleCotangent
from ..core.op import Op
from ..core.record import Record
from ..ir.program import ITEM, item_of
from ..ops import creation


class Leaf(Record):
    """The start of a tape: a tensor that wants a gradient and was not computed."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        super().__init__(LEAF, (), {}, tensor.array.shape, tensor.array.dtype)
        self.tensor = weakref.ref(tensor)


def leaf(m):
    """A tensor that was given, not computed."""


LEAF = Op(leaf)
ITEM.vjp(lambda g, k: TupleCotangent({k: g}))


def get_leaf(tensor) -> Leaf:
    """The start of the tape at `tensor`, made when it is first used."""
    tensor.record = Leaf(tensor)
    return tensor.record


def forget_past(tensor) -> Record:
    """The record of a tensor whose values were all overwritten by values without a past.

    The tensor is no leaf, but no gradient flows on from here.
    """
    return Record(creation.assign, [None], {}, *tensor.spec, {})


def take_past(x, result) -> None:
    """Give x, whose values are those of `result` from now on, the past of `result` too."""
    if result.record is not None:
        x.record, x.stop_gradient = result.record, False
    elif current.top.recording and not x.is_leaf:
        x.record = forget_past(x)


def attach(record: Record, outs) -> None:
    """Put tensors on the tape as the results of a record; those that are not floating stay off."""
    for k, out in enumerate(outs):
        if out.array.dtype in FLOATS:
            out.record, out.stop_gradient = item_of(record, k, None), False


class TensorHookHandle:
    """The result of `register_hook`: `remove()` removes the hook."""

    def __init__(self, record, hook):
        self.record, self.hook = record, hook

    def remove(self) -> bool:
        hooks = self.record.hooks or []
        if self.hook not in hooks:
            return False
        hooks.remove(self.hook)
        return True


class LeafError(ValueError):
    """A leaf that wants a gradient would be changed in place."""


def leaf_write_error(argument: bool = False) -> LeafError:
    """The error for that. Only a run knows whether an `argument` of a program is a leaf."""
    if argument:
        what = "an argument that wants a gradient, in a branch or a loop on a tensor: if it is a "
        what, hint = what + "leaf its gradient would be", "clone() it before: y = y.clone()"
    else:
        what = "a leaf that wants a gradient: its gradient would be"
        hint = "wrap it in paddle.no_grad(), or use the out-of-place form"
    return LeafError(teach(f"in-place change of {what} lost", hint=hint))
