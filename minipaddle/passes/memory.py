"""The memory plan: where every value of a program lies while it runs.

Inputs, states and outputs have memory of their own, everything else shares one arena. A result may
take over the memory of an input that is needed no more (`inplace` says where a kernel allows it),
an update is written straight into its state when nobody reads the old value any more, an output
straight into its buffer. What is not in its place then is copied: before the first record, or
after the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.errors import line_of
from ..core.record import Record
from ..core.slots import slot
from ..ir.control import cond, while_loop
from ..ir.program import NUMBER, Program
from . import arena
from .arena import Buffer, aligned
from .lifetimes import (
    GIVEN,
    Life,
    Value,
    bytes_of,
    last_reads,
    lifetimes,
    looked_into,
    made_by,
    roots,
    specs_of,
)


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
    buffers: list[tuple[Buffer, int, list[Value]]]  # (what shares memory, offset, the values)
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
        kinds = [p.kind for found in self.places.values() for p in each(found)]
        lines = [
            f"plan of {self.program.name}: {len(self.program.records)} records",
            f"  sum of all values {bytes_text(self.total):>10}",
            f"  largest live set  {bytes_text(self.live):>10}",
            f"  arena             {bytes_text(self.size):>10}  {self.ratio:.3f} of the live set",
            f"  in states {kinds.count('state')}, in outputs {kinds.count('output')}, "
            f"views {kinds.count('alias')}, copies {len(self.before) + len(self.copies)}",
        ]
        return "\n".join([*lines, *largest(self)])


def largest(plan: Plan, most: int = 8) -> list[str]:
    """The biggest pieces of the arena, each with the values in it."""
    name = {r: f"v{k + 1}" for k, r in enumerate(plan.program.records)}
    found = []
    for buffer, offset, values in sorted(plan.buffers, key=lambda b: (-b[0].nbytes, b[1]))[:most]:
        r, k = values[0] if values else (None, 0)
        what = f"{name[r]} = {r.op.name} : {specs_of(r)[k]}" if values else "workspace"
        more = f" and {len(values) - 1} in place" if len(values) > 1 else ""
        line = f"  @ {line_of(r.where)}" if values and r.where else ""
        place = f"at {offset:>10}, {buffer.start:>4} to {buffer.end:>4}"
        found.append(f"  {bytes_text(buffer.nbytes):>10} {place}  {what}{more}{line}")
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


# ---- what a kernel says of itself ------------------------------------------------------------


def no_workspace(record: Record) -> int:
    """Kernels need no memory of their own."""
    return 0


def elementwise_inplace(record: Record) -> list[tuple[int, int]]:
    """(result, input): an elementwise operator may write where it reads, place by place."""
    if record.op.kind != "elementwise":
        return []
    return [
        (0, j)
        for j, r in enumerate(record.inputs)
        if r.shape == record.shape and r.dtype is not None
    ]


# ---- the plan --------------------------------------------------------------------------------


@slot("memory.plan")
def plan(
    program: Program,
    workspace: Callable[[Record], int] = no_workspace,
    inplace: Callable[[Record], list[tuple[int, int]]] = elementwise_inplace,
) -> Plan:
    """The places of all values of a program whose sizes are numbers; ValueError if one is open.

    `workspace(record)` are the bytes its kernel needs while it runs, `inplace(record)` the pairs
    (result, input) where the kernel may write the result into the input's memory.

    >>> import minipaddle as paddle
    >>> from minipaddle.passes.memory import plan
    >>> step = paddle.jit.to_static(lambda x: paddle.tanh(x * 2) + 1)
    >>> y = step(paddle.ones([16]))
    >>> program, = step.program_cache.programs()
    >>> plan(program).size
    0
    """
    states = [(s.record, s.update) for s in program.states]
    return Planner(program, program.inputs, states, workspace, inplace).plan()


class Planner:
    """Plans one program or region; `states` are pairs (old value, update or None)."""

    def __init__(self, program, inputs, states, workspace, inplace, outputs=None):
        self.program, self.inputs, self.states = program, inputs, states
        self.outputs = program.outputs if outputs is None else outputs
        self.workspace, self.kernels = workspace, inplace
        self.root, self.lives = roots(program), lifetimes(program)
        self.reads = last_reads(program, self.root)
        self.end = len(program.records)
        self.at: dict[Value, Place] = {}  # what has a place outside the arena
        self.before: list[Copy] = []
        self.moves: list[tuple[Record, Place]] = []  # what goes where after the last record
        self.chains: dict[Value, list[Value]] = {}  # values that share memory, in time
        self.regions: dict[Record, dict[str, Plan]] = {}

    def plan(self) -> Plan:
        for kind, given in (("input", self.inputs), ("state", [s for s, _ in self.states])):
            for k, r in enumerate(given):
                self.at[r, 0] = Place(kind, k, 0, bytes_of(r.spec))
        self.place_updates()
        self.place_outputs()
        self.share()
        return self.laid_out()

    # ---- states and outputs ------------------------------------------------------------------

    def place_updates(self) -> None:
        """An update goes straight to its state if nobody reads the old value after that."""
        direct = []
        for k, (old, update) in enumerate(self.states):
            source = self.root[update] if update is not None else (old, 0)
            if source == (old, 0):
                continue
            if source in self.lives and self.lives[source].start != GIVEN:
                direct.append((k, old, update, source))
            else:  # another state's old value, an input, a number: needed to the end
                self.reads[source] = self.end
                self.moves.append((update, self.at[old, 0]))
        for _, old, update, source in direct:
            if source not in self.at and self.may_replace(source, (old, 0)):
                self.at[source] = self.at[old, 0]
            else:
                self.moves.append((update, self.at[old, 0]))

    def may_replace(self, new: Value, old: Value) -> bool:
        """May a value be made where another lies, which is read until then at the latest?"""
        start, last = self.lives[new].start, self.reads.get(old, GIVEN)
        if bytes_of(specs_of(new[0])[new[1]]) != bytes_of(specs_of(old[0])[old[1]]):
            return False
        return last < start or (last == start and self.writes_over(new, old))

    def writes_over(self, new: Value, old: Value) -> bool:
        """Does the kernel that makes `new` allow it to lie where its input `old` does?"""
        record, k = new
        where = [j for j, r in enumerate(record.inputs) if self.value(r) == old]
        allowed = set(self.inplace(record))
        return bool(where) and all((k, j) in allowed for j in where)

    def inplace(self, record: Record) -> list[tuple[int, int]]:
        """(result, input) pairs; a loop's results are the memory of what it carries."""
        if record.op is while_loop:
            return [(k, k) for k in range(record.attrs["carried"])]
        return self.kernels(record)

    def value(self, record: Record) -> Value | None:
        return self.root[record] if record.dtype is not None else None

    def place_outputs(self) -> None:
        """An output is made in its buffer; one that is given, or made elsewhere, is a copy."""
        for k, output in enumerate(self.outputs):
            place = Place("output", k, 0, bytes_of(output.spec))
            source = self.root[output]
            if output.op is NUMBER:
                self.before.append(Copy(output, Place("number"), place))
            elif self.lives[source].start == GIVEN:
                self.before.append(Copy(output, self.at[source], place))
            elif source in self.at:
                self.moves.append((output, place))
            else:
                self.at[source] = place

    # ---- the arena ---------------------------------------------------------------------------

    def share(self) -> None:
        """Results take over the memory of inputs that die, where the kernel allows it."""
        for t, record in enumerate(self.program.records):
            taken = set()
            for new in made_by(record):
                self.chains[new] = [new]
                if self.at.get(new, OUTSIDE).kind == "state":
                    continue
                for _, j in (pair for pair in self.inplace(record) if pair[0] == new[1]):
                    old = self.value(record.inputs[j])
                    if old in taken or not self.dies(old, t) or not self.may_replace(new, old):
                        continue
                    taken.add(old)
                    self.join(old, new)
                    break

    def dies(self, value: Value | None, t: int) -> bool:
        """Is it a value of the arena that is needed until t and no longer?"""
        return value in self.chains and value not in self.at and self.lives[value].end == t + 1

    def join(self, old: Value, new: Value) -> None:
        """`new` lies where `old` does; where an output is made, all lie in its buffer."""
        chain = self.chains[new] = self.chains[old]
        chain.append(new)
        if new in self.at:
            self.at.update(dict.fromkeys(chain, self.at[new]))

    def pieces(self) -> list[tuple[Buffer, list[Value]]]:
        """What needs memory in the arena: chains of values."""
        found = []
        for chain in {id(c): c for c in self.chains.values()}.values():
            if chain[0] not in self.at and (nbytes := self.lives[chain[0]].nbytes):
                ends = max(self.lives[v].end for v in chain)
                found.append((Buffer(self.lives[chain[0]].start, ends, aligned(nbytes)), chain))
        return found

    def laid_out(self) -> Plan:
        """The plan, with offsets for all in the arena."""
        pieces = self.pieces()
        total = sum(aligned(life.nbytes) for v, life in self.lives.items() if v in self.chains)
        works = list(self.works())
        pieces += [(Buffer(t, t + 1, nbytes), []) for t, _, nbytes in works]
        knots = self.knots()
        pieces += [(Buffer(self.end, self.end + 1, aligned(p.nbytes)), []) for p in knots]
        buffers = [b for b, _ in pieces]
        offsets = arena.offsets(buffers)
        for (_, chain), offset in zip(pieces, offsets, strict=True):
            for v in chain:
                self.at[v] = Place("arena", 0, offset, self.lives[v].nbytes)
        own = offsets[len(pieces) - len(knots) - len(works) :]
        rooms = [Place("arena", 0, o, n) for (*_, n), o in zip(works, own, strict=False)]
        spare = {
            p: Place("arena", 0, o, p.nbytes) for p, o in zip(knots, own[len(works) :], strict=True)
        }
        return Plan(
            self.program,
            self.places(),
            arena.height(buffers, offsets),
            arena.bound(buffers),
            total + sum(nbytes for *_, nbytes in works),
            self.lives,
            [(b, o, chain) for (b, chain), o in zip(pieces, offsets, strict=True)],
            self.before,
            self.in_turn(spare),
            {record: room for (_, record, _), room in zip(works, rooms, strict=True)},
            self.regions,
        )

    def places(self) -> dict[Record, Place | tuple[Place, ...]]:
        """The place of every record."""
        found: dict[Record, Place | tuple[Place, ...]] = {}
        for r in self.program.given:
            found[r] = self.at[r, 0]
        for r in self.root:
            if r.op is NUMBER:
                found[r] = Place("number")
        for r in self.program.records:
            made = made_by(r)
            if made:
                own = tuple(self.at.get(v, Place("arena")) for v in made)
                found[r] = own[0] if r.dtype is not None else own
            elif r.dtype is not None:
                of, k = looked_into(r)
                found[r] = Place("alias", k, of=of)
            else:
                found[r] = tuple(Place("alias", 0, of=x) for x in r.inputs[: len(r.shape)])
        return found

    # ---- workspaces and regions --------------------------------------------------------------

    def works(self):
        """(time, record, bytes) for each record that needs memory while it runs."""
        for t, record in enumerate(self.program.records):
            inner = self.inner(record)
            if inner:
                self.regions[record] = inner
            size = max((p.size for p in inner.values()), default=0) or self.workspace(record)
            if size:
                yield t, record, aligned(size)

    def inner(self, record: Record) -> dict[str, Plan]:
        """The plans of what a branch or a loop computes inside."""
        how = self.workspace, self.kernels
        if record.op is cond:
            branches = ((k, record.attrs[k]) for k in ("true", "false"))
            return {k: Planner(r, r.inputs, [], *how).plan() for k, r in branches}
        if record.op is while_loop:
            test, body = record.attrs["test"], record.attrs["body"]
            carried = record.attrs["carried"]
            states = [*zip(body.inputs[:carried], body.outputs, strict=True)]
            around = Planner(body, body.inputs[carried:], states, *how, outputs=[])
            return {"test": Planner(test, test.inputs, [], *how).plan(), "body": around.plan()}
        return {}

    # ---- copies ------------------------------------------------------------------------------

    def in_turn(self, spare: dict[Place, Place]) -> list[Copy]:
        """The copies at the end, none of which overwrites what another one reads later."""
        waiting = [Copy(r, self.at.get(self.root[r], Place("number")), p) for r, p in self.moves]
        found = [c for c in waiting if c.target.kind == "output"]
        waiting = [c for c in waiting if c.target.kind != "output"]
        while waiting:
            read = {c.source for c in waiting}
            free = [c for c in waiting if c.target not in read]
            if not free:  # states that change places: the value of one steps aside
                last = next(c for c in waiting if c.source in spare)
                room = spare.pop(last.source)
                found.append(last._replace(target=room))
                waiting = [last._replace(source=room) if c is last else c for c in waiting]
            found += free
            waiting = [c for c in waiting if c not in free]
        return found

    def knots(self) -> list[Place]:
        """One state of each circle of states that change places."""
        source = {p: self.at.get(self.root[r]) for r, p in self.moves if p.kind == "state"}
        found, seen = [], set()
        for p in source:
            path = []
            while p in source and p not in seen:
                seen.add(p)
                path.append(p)
                p = source[p]
            if p in path:
                found.append(p)
        return found


OUTSIDE = Place("nowhere")
