"""What a memory plan says: the place of each value, what is copied, and the figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.errors import line_of
from ..core.record import Record
from ..ir.program import Program
from .arena import Buffer
from .lifetimes import Life, Value, specs_of


class Place(NamedTuple):
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
    """What lies at `source` goes to `target`; `value` has its spec, or is a number."""

    value: Record
    source: Place
    target: Place


class Piece(NamedTuple):
    """A part of the arena for a time, and the values it holds one after the other: the last ones
    in place of the first. It holds none if it is a record's `work`.
    """

    buffer: Buffer
    place: Place
    values: list[Value]
    work: Record | None = None


@dataclass(eq=False, repr=False)
class Plan:
    """The places of a program's values; see the module.

    A record of several results has a tuple of places. `work` is the memory of a record's own while
    it runs: a kernel's workspace, or the arena that the plans of its regions count from.
    """

    program: Program
    places: dict[Record, Place | tuple[Place, ...]]
    size: int  # bytes of the arena
    live: int  # the largest set that lives at one time: no arena is smaller
    total: int  # what memory of their own would take
    lifetimes: dict[Value, Life]
    pieces: list[Piece]
    before: list[Copy] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)  # after the last record, in this order
    work: dict[Record, Place] = field(default_factory=dict)
    regions: dict[Record, dict[str, Plan]] = field(default_factory=dict)

    def place(self, record: Record, k: int = 0) -> Place:
        """Where a value lies, aliases followed to the end."""
        while True:
            found = self.places[record]
            found = found[k] if type(found) is tuple else found
            if found.kind != "alias":
                return found
            record, k = found.of, found.k

    @property
    def ratio(self) -> float:
        """The arena to the bound."""
        return self.size / self.live if self.live else 1.0

    def __repr__(self) -> str:
        return f"<plan of {self.program.name}: {bytes_text(self.size)}>"

    def __str__(self) -> str:
        kinds = [p.kind for r in self.program.records for p in each(self.places[r])]
        lines = [
            f"plan of {self.program.name}: {len(self.program.records)} records",
            f"  sum of all values {bytes_text(self.total):>10}",
            f"  largest live set  {bytes_text(self.live):>10}",
            f"  arena             {bytes_text(self.size):>10}  {self.ratio:.3f} of the live set",
            f"  made in states {kinds.count('state')}, in outputs {kinds.count('output')}, "
            f"views {kinds.count('alias')}, copies {len(self.before) + len(self.copies)}",
        ]
        return "\n".join([*lines, *largest(self)])


def largest(plan: Plan, most: int = 8) -> list[str]:
    """The biggest pieces of the arena, each with the values in it."""
    name = {r: f"v{k + 1}" for k, r in enumerate(plan.program.records)}
    found = []
    for piece in sorted(plan.pieces, key=lambda p: (-p.place.nbytes, p.place.offset))[:most]:
        r, what = piece.work, "a state that steps aside" if piece.work is None else "workspace of "
        if piece.values:
            (r, k), more = piece.values[0], len(piece.values) - 1
            what = f"{specs_of(r)[k]}{f', then {more} in its place' if more else ''}: "
        own = f"{name[r]} = {r.op.name}" if r else ""
        when = f"{piece.buffer.start} to {piece.buffer.end}"
        line = f"  @ {line_of(r.where)}" if r and r.where else ""
        found.append(f"  {bytes_text(piece.place.nbytes):>10}  {when:>12}  {what}{own}{line}")
    return found


def bytes_text(n: int) -> str:
    """`12.3 KiB`: bytes for people, in powers of 1024."""
    size, units = float(n), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def each(places) -> tuple[Place, ...]:
    return (places,) if isinstance(places, Place) else places
