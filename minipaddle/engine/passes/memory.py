"""The memory plan: where every value of a program lies while it runs.

Inputs, states and outputs have memory of their own, everything else shares one arena. A result may
take over the memory of an input that is needed no more, where its kernel allows that (`inplace`).
An update is written straight into its state if nothing reads the old value any more, and an output
straight into its buffer. The others are copied there, before the first or after the last record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..core.record import Record
from ..core.slots import slot
from ..ir.control import cond, while_loop
from ..ir.program import NUMBER, Program
from . import arena
from .arena import Buffer
from .buffer_assignment import Allocation, Copy, Location, MemoryPlan
from .lifetimes import (
    GIVEN,
    Value,
    align,
    bytes_of,
    last_reads,
    lifetimes,
    roots,
    value_of_view,
    values_of,
)
from .registry import switched

# ---- what is assumed of kernels ---------------------------------------------------------------


def no_workspace(record: Record) -> int:
    """The workspace of a kernel, in bytes: none."""
    return 0


def never(record: Record) -> list[tuple[int, int]]:
    """The (result, input) pairs that a kernel may compute in place: none."""
    return []


def elementwise_inplace(record: Record) -> list[tuple[int, int]]:
    """(result, input) pairs: an elementwise operator may write each element where it reads it."""
    if record.op.kind != "elementwise":
        return []
    return [
        (0, j)
        for j, r in enumerate(record.inputs)
        if r.shape == record.shape and r.dtype is not None
    ]


# ---- the plan --------------------------------------------------------------------------------


@switched(
    "memory.plan",
    memory_optimize=(True, "values that live at different times share memory"),
    enable_inplace=(True, "a result is written over an input that is needed no more"),
)
def plan(
    program: Program,
    workspace: Callable[[Record], int] = no_workspace,
    inplace: Callable[[Record], list[tuple[int, int]]] = elementwise_inplace,
    *,
    memory_optimize: bool,
    enable_inplace: bool,
) -> MemoryPlan:
    """The locations of all values of a program; ValueError if one of its sizes is open.

    `workspace(record)` are the bytes that its kernel needs while it runs, `inplace(record)` the
    pairs (result, input) where the kernel may write the result into the input's memory.

    >>> from minipaddle.ir.parser import parse
    >>> from minipaddle.engine.passes.memory import plan
    >>> program = parse('''program p(x: float32[16]) {
    ...   v1 = tanh(x) : float32[16]
    ...   v2 = matmul(v1, x) : float32[]
    ...   return v2
    ... }''')
    >>> planned = plan(program)
    >>> print(*(planned.location(record) for record in program.records), sep=", ")
    arena[0:64], output 0
    """
    return planner(program, workspace, inplace if enable_inplace else never, memory_optimize).plan()


def live(program, workspace=no_workspace, inplace=elementwise_inplace, root=None) -> int:
    """The bytes of the largest live set, without finding offsets."""
    planning = planner(program, workspace, inplace, root=root)
    planning.assign()
    return arena.bound([buffer for buffer, *_ in planning.arena_buffers()])


def planner(program: Program, workspace, inplace, shares=True, root=None) -> Planner:
    states = [(s.record, s.update) for s in program.states]
    return Planner(program, program.inputs, states, workspace, inplace, None, shares, root)


class Planner:
    """Plans one program or region; `states` are pairs (old value, update or None)."""

    def __init__(
        self, program, inputs, states, workspace, inplace, outputs=None, shares=True, root=None
    ):
        self.program, self.inputs, self.states, self.shares = program, inputs, states, shares
        self.outputs = program.outputs if outputs is None else outputs
        self.workspace, self.kernels = workspace, cache(inplace)
        self.root = roots(program) if root is None else root
        self.lives = lifetimes(program, self.root)
        self.reads = last_reads(program, self.root)
        self.end = len(program.records)
        self.at: dict[Value, Location] = {}  # values outside the arena
        self.before: list[Copy] = []
        self.moves: list[tuple[Record, Location]] = []  # copies after the last record
        self.chains: dict[Value, list[Value]] = {}  # values that share memory, in time
        self.regions: dict[Record, dict[str, MemoryPlan]] = {}

    def plan(self) -> MemoryPlan:
        """The memory plan."""
        self.assign()
        return self.with_offsets()

    def assign(self) -> None:
        """Decide which values lie outside the arena, and which share memory inside it."""
        for kind, records in (("input", self.inputs), ("state", [s for s, _ in self.states])):
            for k, r in enumerate(records):
                self.at[r, 0] = Location(kind, k, 0, self.lives[r, 0].nbytes)
        self.place_updates()
        self.place_outputs()
        self.share()

    # ---- states and outputs ------------------------------------------------------------------

    def place_updates(self) -> None:
        """An update is made in its state if nothing reads the old value after that."""
        direct = []
        for old, update in self.states:
            source = self.root[update] if update is not None else (old, 0)
            if source == (old, 0):
                continue
            if source in self.lives and self.lives[source].start != GIVEN:
                direct.append((old, update, source))
            else:  # another state's old value, an input, a number: needed to the end
                self.reads[source] = self.end
                self.moves.append((update, self.at[old, 0]))
        for old, update, source in direct:
            if source not in self.at and self.may_replace(source, (old, 0)):
                self.at[source] = self.at[old, 0]
            else:
                self.moves.append((update, self.at[old, 0]))

    @slot("memory.may_replace")
    def may_replace(self, new: Value, old: Value) -> bool:
        """Whether a value may be made where `old` lies: `old` is read before, or by its kernel."""
        start, last = self.lives[new].start, self.reads.get(old, GIVEN)
        if self.lives[new].nbytes != self.lives[old].nbytes:
            return False
        return last < start or (last == start and self.writes_over(new, old))

    @slot("memory.writes_over")
    def writes_over(self, new: Value, old: Value) -> bool:
        """Whether the kernel that makes `new` may write it over its input `old`."""
        record, k = new
        where = [j for j, r in enumerate(record.inputs) if self.value(r) == old]
        allowed = set(self.inplace(record))
        return bool(where) and all((k, j) in allowed for j in where)

    def inplace(self, record: Record) -> list[tuple[int, int]]:
        """(result, input) pairs; the results of a loop lie where the carried values do."""
        if record.op is while_loop:
            return [(k, k) for k in range(record.attrs["carried"])]
        return self.kernels(record)

    def value(self, record: Record) -> Value | None:
        return self.root[record] if record.dtype is not None else None

    def place_outputs(self) -> None:
        """An output is made in its buffer; what lies elsewhere, or in a larger value, is copied."""
        for k, output in enumerate(self.outputs):
            place = Location("output", k, 0, bytes_of(output.spec))
            source = self.root[output]
            if output.op is NUMBER:
                self.before.append(Copy(output, Location("number"), place))
            elif self.lives[source].start == GIVEN:
                self.before.append(Copy(output, self.at[source], place))
            elif source in self.at or self.lives[source].nbytes != place.nbytes:
                self.moves.append((output, place))
            else:
                self.at[source] = place

    # ---- the arena ---------------------------------------------------------------------------

    def share(self) -> None:
        """Results take over the memory of inputs that are read last, if the kernel allows it."""
        for t, record in enumerate(self.program.records):
            taken = set()
            for new in values_of(record, self.root):
                self.chains[new] = [new]
                for j in [j for k, j in self.inplace(record) if k == new[1]]:
                    old = self.value(record.inputs[j])
                    if old not in taken and self.dies(old, t) and self.may_take_over(new, old):
                        taken.add(old)
                        self.join(old, new)
                        break

    def dies(self, value: Value | None, t: int) -> bool:
        """Whether a value lies in the arena and record t is the last that needs it."""
        return value in self.chains and value not in self.at and self.lives[value].end == t + 1

    def may_take_over(self, new: Value, old: Value) -> bool:
        """Whether `new` may be made where `old` lies. In a state, all that `old` was written
        over is made there, too: nothing may need the state's own value by then.
        """
        place, first = self.at.get(new), self.chains[old][0]
        in_state = place is not None and place.kind == "state"
        free = not in_state or self.may_replace(first, (self.states[place.k][0], 0))
        return free and self.may_replace(new, old)

    def join(self, old: Value, new: Value) -> None:
        """Let `new` lie where `old` does; if one of them is an output, all lie in its buffer."""
        chain = self.chains[new] = self.chains[old]
        chain.append(new)
        if new in self.at:
            self.at.update(dict.fromkeys(chain, self.at[new]))

    def arena_buffers(self):
        """(buffer, bytes, values, record whose workspace it is) of each buffer in the arena."""

        def buffer(start: int, end: int, nbytes: int, values: list, work: Record | None = None):
            return Buffer(start, end, align(nbytes)), nbytes, values, work

        for chain in {id(c): c for c in self.chains.values()}.values():
            (start, _, nbytes), *_ = lives = [*map(self.lives.get, chain)]
            if chain[0] not in self.at and nbytes:
                yield buffer(start, max([life.end for life in lives]), nbytes, chain)
        for t, record in enumerate(self.program.records):
            if size := self.work_of(record):
                yield buffer(t, t + 1, size, [], record)
        for p in self.find_swapped_states():
            yield buffer(self.end, self.end + 1, p.nbytes, [])

    def with_offsets(self) -> MemoryPlan:
        """The plan, with an offset for each buffer in the arena."""
        total = sum(align(life.nbytes) for v, life in self.lives.items() if v in self.chains)
        entries = list(self.arena_buffers())
        buffers = [buffer for buffer, *_ in entries]
        always = [Buffer(GIVEN, self.end + 1, b.nbytes) for b in buffers]
        size, live, offsets = 0, 0, []
        if buffers:
            offsets = arena.offsets(buffers if self.shares else always)
            size, live = arena.height(buffers, offsets), arena.bound(buffers)
        allocations = [
            Allocation(buffer, Location("arena", 0, offset, nbytes), values, work)
            for offset, (buffer, nbytes, values, work) in zip(offsets, entries, strict=True)
        ]
        for allocation in allocations:
            self.at.update(dict.fromkeys(allocation.values, allocation.location))
        aside = [p.location for p in allocations if not p.values and p.work is None]
        spare = dict(zip(self.find_swapped_states(), aside, strict=True))
        return MemoryPlan(
            self.program,
            self.locations(),
            size,
            live,
            total + sum(p.buffer.nbytes for p in allocations if not p.values),
            self.lives,
            allocations,
            self.before,
            self.order_copies(spare),
            {p.work: p.location for p in allocations if p.work is not None},
            self.regions,
        )

    def locations(self) -> dict[Record, Location | tuple[Location, ...]]:
        """The location of every record."""
        places = {r: self.at[r, 0] for r in self.program.given}
        places |= {r: Location("number") for r in self.root if r.op is NUMBER}
        for r in self.program.records:
            values = values_of(r, self.root)
            if values:
                own = tuple(self.at.get(v, Location("arena")) for v in values)
                places[r] = own[0] if r.dtype is not None else own
            elif r.dtype is not None:
                of, k = value_of_view(r)
                places[r] = Location("alias", k, of=of)
            else:
                places[r] = tuple(Location("alias", 0, of=x) for x in r.inputs[: len(r.shape)])
        return places

    # ---- workspaces and regions --------------------------------------------------------------

    def work_of(self, record: Record) -> int:
        """The bytes that a record needs beside its inputs and results while it runs."""
        if record.op not in (cond, while_loop):
            return self.workspace(record)
        self.regions[record] = inner = self.inner(record)
        return max(p.size for p in inner.values())

    def inner(self, record: Record) -> dict[str, MemoryPlan]:
        """The plans of the regions of a branch or a loop."""
        how = self.workspace, self.kernels, None, self.shares
        if record.op is cond:
            branches = ((k, record.attrs[k]) for k in ("true", "false"))
            return {k: Planner(r, r.inputs, [], *how).plan() for k, r in branches}
        test, body = record.attrs["test"], record.attrs["body"]
        carried = 0 if record.attrs["keep"] else record.attrs["carried"]
        states = [*zip(body.inputs[:carried], body.outputs)]  # what is stacked has places
        own = self.workspace, self.kernels, body.outputs[carried:], self.shares
        around = Planner(body, body.inputs[carried:], states, *own)
        return {"test": Planner(test, test.inputs, [], *how).plan(), "body": around.plan()}

    # ---- copies ------------------------------------------------------------------------------

    def order_copies(self, spare: dict[Location, Location]) -> list[Copy]:
        """The copies at the end, in an order in which none overwrites what a later one reads."""
        moves = [(r, p) for r, p in self.moves if p.nbytes]
        waiting = [Copy(r, self.at.get(self.root[r], Location("number")), p) for r, p in moves]
        ordered = [c for c in waiting if c.target.kind == "output"]
        waiting = [c for c in waiting if c.target.kind != "output"]
        while waiting:
            read = {c.source for c in waiting}
            free = [c for c in waiting if c.target not in read]
            if not free:  # states that are swapped: one value is copied aside
                last = next(c for c in waiting if c.source in spare)
                room = spare.pop(last.source)
                ordered.append(last._replace(target=room))
                waiting = [last._replace(source=room) if c is last else c for c in waiting]
            ordered += free
            waiting = [c for c in waiting if c not in free]
        return ordered

    def find_swapped_states(self) -> list[Location]:
        """One state of each cycle of states that take over each other's values."""
        source = {p: self.at.get(self.root[r]) for r, p in self.moves if p.kind == "state"}
        swapped, seen = [], set()
        for p in source:
            path = []
            while p in source and p not in seen:
                seen.add(p)
                path.append(p)
                p = source[p]
            if p in path:
                swapped.append(p)
        return swapped
