"""What a later group alone uses is computed there, if that group has what it is made of.

Groups are joined in the order of the program, so 1 - tanh², which only a backward needs, comes to
the tanh before it: a value more to store and to keep until then. The backward reads the tanh
anyway. Moved there, it is never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.record import Record
from ..core.slots import slot
from ..ir.program import NUMBER
from .lifetimes import bytes_of

if TYPE_CHECKING:
    from .fusion import Fusion


@slot("fusion.put_off")
def put_off(fusion: Fusion) -> None:
    """Move the ends of groups into the groups that use them, where that leaves less to store."""
    for record in reversed(fusion.program.records):
        here, users = fusion.of[record], fusion.users.get(record, ())
        there = {fusion.of[u] for u in users}
        if not here.open or len(there) != 1 or here in there or record in fusion.needed:
            continue
        (later,) = there
        moved = end(fusion, record)
        if moved and later.open and later.matches(here) and spares(fusion, record, moved, later):
            fusion.move(moved, here, later)


def end(fusion: Fusion, record: Record) -> set[Record]:
    """The record, and of its group what is made for it alone; nothing if it needs more than what
    is elementwise, or values that are not stored."""
    here, found = fusion.of[record], {record}
    todo = [record]
    while todo:
        r = todo.pop()
        if r.op.kind != "elementwise" or r.shape != record.shape:
            return set()
        for x in r.inputs:
            if fusion.of.get(x) is not here or x in found or stored(fusion, x):
                continue
            if not found.issuperset(fusion.users[x]):
                return set()
            found.add(x)
            todo.append(x)
    return found


def stored(fusion: Fusion, x: Record) -> bool:
    """Does a value leave its group?"""
    return x in fusion.needed or any(fusion.of[u] is not fusion.of[x] for u in fusion.users[x])


def spares(fusion: Fusion, record: Record, moved: set[Record], later) -> bool:
    """Is what the later group must read in its place no more than the record itself?"""
    read = {x for r in later.records for x in r.inputs}
    new = {x for r in moved for x in r.inputs if x.op is not NUMBER} - read - moved
    return new <= fusion.of.keys() and sum(bytes_of(x.spec) for x in new) <= bytes_of(record.spec)
