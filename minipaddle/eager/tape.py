"""The tape's ends: leaves, where a backward stops, and the records of results in tuples."""

from __future__ import annotations

import weakref

from ..core.grad import Pieces
from ..core.op import Op
from ..core.record import Record
from ..ir.program import ITEM


class Leaf(Record):
    """The start of a tape: a tensor that wants a gradient and was not computed."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        super().__init__(LEAF, (), {}, tensor.array.shape, tensor.array.dtype)
        self.tensor = weakref.ref(tensor)


def leaf(m):
    """A tensor that was given, not computed."""


LEAF = Op(leaf)
ITEM.vjp(lambda g, k: Pieces({k: g}))


def leaf_of(tensor) -> Leaf:
    """The start of the tape at `tensor`, made when it is first used."""
    tensor.record = Leaf(tensor)
    return tensor.record


def item_of(whole: Record, k: int) -> Record:
    """Result `k` of a record whose value is a tuple."""
    record = Record(ITEM, [whole], {"k": k}, *whole.shape[k], None, whole.scope)
    record.where = whole.where
    return record
