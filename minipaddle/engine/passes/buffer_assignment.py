"""The result of the memory planner: the location of each value, the copies, and the totals."""

from __future__ import annotations

from dataclasses import dataclass, field
from os.path import basename
from typing import NamedTuple

from ..core.errors import line_of
from ..core.record import Record
from ..ir.program import Program
from .arena import Buffer
from .lifetimes import Life, Value, specs_of


class Location(NamedTuple):
    """Where a value lies: at `offset` of the "arena", or in the whole of "input", "state" or
    "output" number `k`. A "number" lies nowhere; an "alias" lies where result `k` of `of` does.
    """

    kind: str
    k: int = 0
    offset: int = 0
    nbytes: int = 0
    of: Record | None = None

    def __str__(self) -> str:
        if self.kind == "arena":
            return f"arena[{self.offset}:{self.offset + self.nbytes}]"
        return f"{self.kind} {self.k}"


class Copy(NamedTuple):
    """The bytes at `source` are copied to `target`; `value` has their spec, or is a number."""

    value: Record
    source: Location
    target: Location


class Allocation(NamedTuple):
    """A part of the arena for a time, and the values it holds one after the other, each written
    over the one before. It holds no value if it is a record's workspace.
    """

    buffer: Buffer
    location: Location
    values: list[Value]
    work: Record | None = None


@dataclass(eq=False, repr=False)
class MemoryPlan:
    """The locations of a program's values; see `memory`.

    A record of several results has a tuple of locations. `work` says where a record's own memory
    is while it runs: a kernel's workspace, or the arena from which its regions' plans count.
    """

    program: Program
    locations: dict[Record, Location | tuple[Location, ...]]
    size: int  # bytes of the arena
    live: int  # the largest live set: no arena is smaller
    total: int  # bytes if no two values shared memory
    lifetimes: dict[Value, Life]
    allocations: list[Allocation]
    before: list[Copy] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)  # after the last record, in this order
    work: dict[Record, Location] = field(default_factory=dict)
    regions: dict[Record, dict[str, MemoryPlan]] = field(default_factory=dict)

    def location(self, record: Record, k: int = 0) -> Location:
        """The location of a value; an alias is followed to the memory it names."""
        while True:
            location = self.locations[record]
            location = location[k] if type(location) is tuple else location
            if location.kind != "alias":
                return location
            record, k = location.of, location.k

    @property
    def ratio(self) -> float:
        """The size of the arena divided by the largest live set."""
        return self.size / self.live if self.live else 1.0

    def __repr__(self) -> str:
        return f"<plan of {self.program.name}: {bytes_text(self.size)}>"

    def __str__(self) -> str:
        every = (self.locations[r] for r in self.program.records)
        kinds = [p.kind for x in every for p in ((x,) if isinstance(x, Location) else x)]
        lines = [
            f"plan of {self.program.name}: {len(self.program.records)} records",
            f"  sum of all values {bytes_text(self.total):>10}",
            f"  largest live set  {bytes_text(self.live):>10}",
            f"  arena             {bytes_text(self.size):>10}  {self.ratio:.3f} of the live set",
            f"  made in states {kinds.count('state')}, in outputs {kinds.count('output')}, "
            f"views {kinds.count('alias')}, copies {len(self.before) + len(self.copies)}",
        ]
        return "\n".join([*lines, *largest(self)])


def largest(plan: MemoryPlan, most: int = 8) -> list[str]:
    """A line for each of the largest allocations: bytes, lifetime, and the values in it."""
    name = {r: f"v{k + 1}" for k, r in enumerate(plan.program.records)}
    lines = []
    by_size = sorted(plan.allocations, key=lambda a: (-a.location.nbytes, a.location.offset))
    for buffer, location, values, work in by_size[:most]:
        maker, what = work, "workspace of " if work else "a state that steps aside"
        if values:
            (maker, k), more = values[0], len(values) - 1
            what = f"{specs_of(maker)[k]}{f', then {more} in its place' if more else ''}: "
        own = f"{name[maker]} = {maker.op.name}" if maker else ""
        when = f"{buffer.start} to {buffer.end}"
        line = f"  @ {basename(line_of(maker.where))}" if maker and maker.where else ""
        lines.append(f"  {bytes_text(location.nbytes):>10}  {when:>12}  {what}{own}{line}")
    return lines


def bytes_text(n: int) -> str:
    """`12.3 KiB`: bytes for people, in powers of 1024."""
    size, units = float(n), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
