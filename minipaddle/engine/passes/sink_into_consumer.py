"""A value that only a later group uses is computed in that group, if that stores less.

Groups are joined in the order of the program, so 1 - tanh², which only a backward needs, joins the
tanh before it: one value more to store and to keep until the backward. The backward reads the tanh
anyway. Moved there, 1 - tanh² is never stored.
"""

from __future__ import annotations

from ..core.record import Record
from ..core.slots import slot
from ..ir.program import NUMBER
from .fusion_groups import Fusion, Group


@slot("fusion.sink_into_consumer")
def sink_into_consumer(fusion: Fusion) -> None:
    """Move the ends of groups into the groups that use them, where that leaves less to store."""
    for record in reversed(fusion.program.records):
        here, users = fusion.of[record], fusion.users.get(record, ())
        consumers = {fusion.of[u] for u in users}
        if not here.open or len(consumers) != 1 or here in consumers or record in fusion.needed:
            continue
        moved, (consumer,) = end_of_group(fusion, record), consumers
        fits = moved and consumer.open and consumer.matches(here)
        if fits and reads_no_more(fusion, record, moved, consumer):
            fusion.move(moved, here, consumer)


def end_of_group(fusion: Fusion, record: Record) -> set[Record]:
    """The record and those of its group that are computed for it alone; the set is empty if one of
    them is not elementwise.
    """
    here, end, todo = fusion.of[record], {record}, [record]
    while todo:
        r = todo.pop()
        if r.op.kind != "elementwise" or r.shape != record.shape:
            return set()
        for x in r.inputs:
            if fusion.of.get(x) is not here or x in end or is_stored(fusion, x):
                continue
            if end.issuperset(fusion.users[x]):
                end.add(x)
                todo.append(x)
    return end


def is_stored(fusion: Fusion, x: Record) -> bool:
    """Whether another group, or the program's result, needs a value."""
    return x in fusion.needed or any(fusion.of[u] is not fusion.of[x] for u in fusion.users[x])


def reads_no_more(fusion: Fusion, record: Record, moved: set[Record], consumer: Group) -> bool:
    """Whether the consumer reads no more bytes for the moved records than it read of `record`, and
    less is stored if what they read was not.
    """
    read = {x for r in consumer.records for x in r.inputs}
    new = {x for r in moved for x in r.inputs if x.op is not NUMBER} - read - moved
    less = record.spec.nbytes - sum(x.spec.nbytes for x in new)
    return new <= fusion.of.keys() and less >= any(not is_stored(fusion, x) for x in new)
