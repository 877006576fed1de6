"""The memory plan: where every value of a program lies while it runs.

Inputs, states and outputs have memory of their own, everything else shares one arena. A result may
take over the memory of an input that is needed no more (`inplace` says where a kernel allows it),
an update is written straight into its state when nobody reads the old value any more, an output
straight into its buffer. What is not in its place then is copied: before the first record, or
after the last one.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.record import Record
from ..core.slots import slot
from ..ir.control import cond, while_loop
from ..ir.program import NUMBER, Program
from . import arena
from .arena import Buffer, aligned
from .lifetimes import (
    GIVEN,
    Value,
    bytes_of,
    last_reads,
    lifetimes,
    looked_into,
    made_by,
    roots,
)
from .places import Copy, Piece, Place, Plan
from .registry import switched

# ---- what a kernel says of itself ------------------------------------------------------------


def no_workspace(record: Record) -> int:
    """Kernels need no memory of their own."""
    return 0


def never(record: Record) -> list[tuple[int, int]]:
    """No kernel writes over what it reads."""
    return []


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
) -> Plan:
    """The places of all values of a program whose sizes are numbers; ValueError if one is open.

    `workspace(record)` are the bytes its kernel needs while it runs, `inplace(record)` the pairs
    (result, input) where the kernel may write the result into the input's memory.

    >>> from minipaddle.ir.parser import parse
    >>> from minipaddle.engine.passes.memory import plan
    >>> program = parse('''program p(x: float32[16]) {
    ...   v1 = tanh(x) : float32[16]
    ...   v2 = matmul(v1, x) : float32[]
    ...   return v2
    ... }''')
    >>> found = plan(program)
    >>> print(*(found.place(record) for record in program.records), sep=", ")
    arena[0:64], output 0
    """
    return planner(program, workspace, inplace if enable_inplace else never, memory_optimize).plan()


def live(program: Program, workspace=no_workspace, inplace=elementwise_inplace) -> int:
    """The bytes of the largest live set, without finding offsets."""
    found = planner(program, workspace, inplace)
    found.settle()
    return arena.bound([Buffer(a, b, aligned(nbytes)) for a, b, nbytes, *_ in found.pieces()])


def planner(program: Program, workspace, inplace, shares: bool = True) -> Planner:
    states = [(s.record, s.update) for s in program.states]
    return Planner(program, program.inputs, states, workspace, inplace, shares=shares)


class Planner:
    """Plans one program or region; `states` are pairs (old value, update or None)."""

    def __init__(
        self, program, inputs, states, workspace, inplace, outputs=None, shares: bool = True
    ):
        self.program, self.inputs, self.states, self.shares = program, inputs, states, shares
        self.outputs = program.outputs if outputs is None else outputs
        self.workspace, self.kernels = workspace, inplace
        self.root = roots(program)
        self.lives = lifetimes(program, self.root)
        self.reads = last_reads(program, self.root)
        self.end = len(program.records)
        self.at: dict[Value, Place] = {}  # what has a place outside the arena
        self.before: list[Copy] = []
        self.moves: list[tuple[Record, Place]] = []  # what goes where after the last record
        self.chains: dict[Value, list[Value]] = {}  # values that share memory, in time
        self.regions: dict[Record, dict[str, Plan]] = {}

    def plan(self) -> Plan:
        """The plan, all steps."""
        self.settle()
        return self.laid_out()

    def settle(self) -> None:
        """Find what lies outside the arena, and what shares memory in it."""
        for kind, given in (("input", self.inputs), ("state", [s for s, _ in self.states])):
            for k, r in enumerate(given):
                self.at[r, 0] = Place(kind, k, 0, self.lives[r, 0].nbytes)
        self.place_updates()
        self.place_outputs()
        self.share()

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

    @slot("memory.may_replace")
    def may_replace(self, new: Value, old: Value) -> bool:
        """May a value be made where another lies, which is read until then at the latest?"""
        start, last = self.lives[new].start, self.reads.get(old, GIVEN)
        if self.lives[new].nbytes != self.lives[old].nbytes:
            return False
        return last < start or (last == start and self.writes_over(new, old))

    @slot("memory.writes_over")
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
            for new in made_by(record, self.root):
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

    def pieces(self):
        """(start, end, bytes, values, record that works there) of all that lies in the arena."""
        for chain in {id(c): c for c in self.chains.values()}.values():
            lives = [self.lives[v] for v in chain]
            if chain[0] not in self.at and lives[0].nbytes:
                yield lives[0].start, max(life.end for life in lives), lives[0].nbytes, chain, None
        for t, record in enumerate(self.program.records):
            if size := self.work_of(record):
                yield t, t + 1, size, [], record
        for p in self.knots():
            yield self.end, self.end + 1, p.nbytes, [], None

    def laid_out(self) -> Plan:
        """The plan, with offsets for all in the arena."""
        total = sum(aligned(life.nbytes) for v, life in self.lives.items() if v in self.chains)
        found = list(self.pieces())
        buffers = [Buffer(start, end, aligned(nbytes)) for start, end, nbytes, *_ in found]
        always = [Buffer(GIVEN, self.end + 1, b.nbytes) for b in buffers]
        offsets = arena.offsets(buffers if self.shares else always)
        pieces = [
            Piece(buffer, Place("arena", 0, offset, nbytes), values, work)
            for buffer, offset, (_, _, nbytes, values, work) in zip(
                buffers, offsets, found, strict=True
            )
        ]
        for piece in pieces:
            self.at.update(dict.fromkeys(piece.values, piece.place))
        aside = [p.place for p in pieces if not p.values and p.work is None]
        spare = dict(zip(self.knots(), aside, strict=True))
        return Plan(
            self.program,
            self.places(),
            arena.height(buffers, offsets),
            arena.bound(buffers),
            total + sum(p.buffer.nbytes for p in pieces if not p.values),
            self.lives,
            pieces,
            self.before,
            self.in_turn(spare),
            {p.work: p.place for p in pieces if p.work is not None},
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
            made = made_by(r, self.root)
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

    def work_of(self, record: Record) -> int:
        """The bytes that a record needs beside its results while it runs."""
        inner = self.inner(record)
        if not inner:
            return self.workspace(record)
        self.regions[record] = inner
        return max(p.size for p in inner.values())

    def inner(self, record: Record) -> dict[str, Plan]:
        """The plans of what a branch or a loop computes inside."""
        how = self.workspace, self.kernels, None, self.shares
        if record.op is cond:
            branches = ((k, record.attrs[k]) for k in ("true", "false"))
            return {k: Planner(r, r.inputs, [], *how).plan() for k, r in branches}
        if record.op is while_loop:
            test, body = record.attrs["test"], record.attrs["body"]
            carried = record.attrs["carried"]
            states = [*zip(body.inputs[:carried], body.outputs, strict=True)]
            own = self.workspace, self.kernels, [], self.shares
            around = Planner(body, body.inputs[carried:], states, *own)
            return {"test": Planner(test, test.inputs, [], *how).plan(), "body": around.plan()}
        return {}

    # ---- copies ------------------------------------------------------------------------------

    def in_turn(self, spare: dict[Place, Place]) -> list[Copy]:
        """The copies at the end, none of which overwrites what another one reads later."""
        moves = [(r, p) for r, p in self.moves if p.nbytes]
        waiting = [Copy(r, self.at.get(self.root[r], Place("number")), p) for r, p in moves]
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
