"""Half precision is widened where it is read, not once for all.

    y = cast(x, float32); f(y); g(y)   →   f(cast(x, float32)); g(cast(x, float32))

A cast to float32 costs nothing in a loop that reads x, and the array y, twice as large, is neither
stored nor kept for a backward. This holds for readers that are computed in loop nests.
"""

from __future__ import annotations

from ..engine.core.dtype import HALVES, float32
from ..engine.core.record import Record
from ..engine.ir.edit import in_branches, substitute, users_of, with_records
from ..engine.ir.program import Program
from ..engine.ops.elementwise import cast
from ..engine.ops.marks import after
from ..engine.ops.movement import reshape
from ..engine.passes.nest import fusable
from ..engine.passes.registry import program_pass


def is_widened(x: Record) -> bool:
    """Whether half precision is cast to float32."""
    return x.op is cast and x.dtype == float32.numpy and x.inputs[0].dtype in HALVES


@program_pass("repeated_casts", looks_for=[cast])
def repeated_casts(program: Program) -> Program:
    """The program in which each reader of widened halves widens them itself."""
    program = in_branches(program, repeated_casts)
    users, results = users_of(program), set(program.results)

    def follow(x: Record) -> tuple[list[Record], list[Record]]:
        """The value and its views, and the records that read them, not those that wait for them."""
        views, readers = [x], []
        for y in views:
            for user in users.get(y, ()):
                if user.op in (reshape, after) and user.inputs[0] is y:
                    views.append(user)
                elif user.op is not after:
                    readers.append(user)
        return views, readers

    removed: dict[Record, Record] = {}  # a cast or a view of it -> the cast it is
    for x in filter(is_widened, program.records):
        views, readers = follow(x)
        if len(readers) > 1 and all(map(fusable, readers)) and results.isdisjoint(views):
            removed |= dict.fromkeys(views, x)
    new: dict[Record, Record] = {}
    halves: dict[Record, Record] = {}  # what is removed -> the same in half precision
    records = []
    for record in program.records:
        if record in removed:
            x, *others = (halves.get(y) or new.get(y, y) for y in record.inputs)
            if record.op is not cast:
                records.append(record.copy([x, *others], spec=(record.shape, x.dtype)))
                x = records[-1]
            halves[record] = x
            continue
        for x in dict.fromkeys(record.inputs):
            if x in removed and record.op is after:
                new[x] = halves[x]
            elif x in removed:
                new[x] = removed[x].copy([halves[x]], spec=(x.shape, x.dtype))
                records.append(new[x])
        records.append(substitute(record, new))
    return with_records(program, records, new)
