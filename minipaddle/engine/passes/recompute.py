"""Recomputation: a value that waits through the peak of memory is made again where it is read.

What it costs to make a value again is judged by the bytes its records move and the products they
compute; what it brings are its bytes at the peak. The cheapest go first, until the live set keeps
the budget. A value is made from others that are there anyway at that time, through several records
if need be, and not before a value that the peak is before (`ops.ordering.after`).

Sources: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; Kirisame et al.,
"Dynamic Tensor Rematerialization", 2021 (the choice by cost over bytes).
"""

from __future__ import annotations

from functools import cached_property
from math import inf, sqrt
from typing import NamedTuple

from ..core.dim import Dim
from ..core.record import Record
from ..core.slots import slot
from ..ir.cut import has_effect
from ..ir.edit import substitute, with_records
from ..ir.program import ITEM, NUMBER, Program, regions
from ..ops.ordering import after
from .arena import Buffer, profile
from .dead_code import dead_code
from .fusion import grouped
from .lifetimes import GIVEN, Life, Value, lifetimes, roots, specs_of
from .memory import live
from .nest import fusable
from .registry import program_pass

BYTES_PER_SECOND, PRODUCTS_PER_SECOND = 1e10, 5e10
"""What a core does, roughly."""
DEPTH = 12
"""Through so many records a value is made again at most."""


def seconds(record: Record) -> float:
    """What it takes to compute a record.

    For operators that multiply and add (matmul, conv) the number of products is about the root of
    the sizes of both factors and of the result, multiplied: for matrices it is just that.
    """
    if record.op is ITEM or record.op is after:
        return 0.0
    tensors = [r.spec for r in record.inputs if r.op is not NUMBER and r.dtype is not None]
    made = specs_of(record)
    moved = sum(s.nbytes for s in (*tensors, *made)) / BYTES_PER_SECOND
    large = sorted((s.size for s in tensors), reverse=True)[:2]
    if record.op.kind == "opaque" and len(large) == 2:
        return moved + sqrt(large[0] * large[1] * made[0].size) / PRODUCTS_PER_SECOND
    return moved


class Again(NamedTuple):
    """`value` is made again at the time `at`: `again` are the records for that, in order."""

    value: Value
    at: int
    late: Record  # made after the peak, before `at`
    again: list[Record]
    sources: set[Value]
    nbytes: int
    seconds: float

    @property
    def score(self) -> float:
        """Seconds per byte."""
        return self.seconds / self.nbytes


class Moments:
    """What of a program is alive at its peak, and what could be made again afterwards."""

    def __init__(self, program: Program):
        self.program, self.records = program, program.records
        self.root = roots(program)
        self.lives: dict[Value, Life] = lifetimes(program, self.root)
        kept = {self.root[r] for r in program.results}
        self.inside = {
            v: life for v, life in self.lives.items() if life.start != GIVEN and v not in kept
        }
        level = profile([Buffer(*life) for life in self.inside.values()])
        self.peak = max(level, key=level.get, default=0)
        self.time = {r: t for t, r in enumerate(self.records)}
        self.gone = {}  # until when a state's old value can be read
        for state in program.states:
            made = None if state.update is None else self.root[state.update][0]
            self.gone[state.record] = self.time.get(made, 0) if made else len(self.records)

    def plans(self) -> list[Again]:
        """How the values that wait through the peak can be made again, those that can."""
        found = []
        for value, life in self.inside.items():
            if life.nbytes and life.start < self.peak < life.end - 1:
                plan = self.plan(value)
                if plan is not None:
                    found.append(plan)
        return found

    def plan(self, value: Value) -> Again | None:
        """How a value could be made again; None if it is read at the peak, or can not be."""
        early = self.names.get(value, ())
        reads = [t for r in early for t in self.readers.get(r, ()) if t >= self.peak]
        if not reads or min(reads) <= self.peak:
            return None
        at = min(reads)
        late = self.late_value(at)
        again: dict[Record, None] = {}
        sources: set[Value] = set()
        wanted = [r for r in early if any(t >= at for t in self.readers.get(r, ()))]
        if late is None or not all(self.collect(r, at, value, again, sources, 0) for r in wanted):
            return None
        order, cost = sorted(again, key=self.time.get), sum(map(seconds, again))
        if self.is_compared(order, at):
            return None
        return Again(value, at, late, order, sources, self.lives[value].nbytes, cost)

    def is_compared(self, again: list[Record], at: int) -> bool:
        """Is something made again looked for, later on, where it was found before? Another kernel
        rounds in another way, and nothing would equal the maximum that was made of it.
        """
        if all(r.op.kind == "movement" or r.op.exact for r in again):
            return False
        todo = list(again)
        for r in todo:
            late = [self.records[t] for t in self.readers.get(r, ()) if t >= at]
            if any(x.op.compares for x in late):
                return True
            todo += [x for x in late if x.op.kind == "movement"]
        return False

    @cached_property
    def readers(self) -> dict[Record, list[int]]:
        """When each record is an input."""
        found: dict[Record, list[int]] = {}
        for t, record in enumerate(self.records):
            for r in record.inputs:
                found.setdefault(r, []).append(t)
        return found

    @cached_property
    def names(self) -> dict[Value, list[Record]]:
        """For a value the records before the peak that stand for it: its own, and views of it."""
        found: dict[Value, list[Record]] = {}
        for r in self.records[: self.peak]:
            if r.dtype is not None:
                found.setdefault(self.root[r], []).append(r)
        return found

    def late_value(self, at: int) -> Record | None:
        """A value that is made between the peak and `at`: an input of who reads then, if one is."""
        between = [*self.records[self.peak : at], *self.records[at].inputs]
        late = [r for r in between if r.dtype is not None and self.time.get(r, -1) >= self.peak]
        return late[-1] if late else None

    def collect(self, record, at: int, value, again: dict, sources: set, depth: int) -> bool:
        """Can a record be made again at a time? Adds all that it takes to `again`."""
        if record in again:
            return True
        if depth > DEPTH or regions(record) or has_effect(record):
            return False
        for r in record.inputs:
            if r.op is NUMBER:
                continue
            root = self.root.get(r)
            if root is not None and root != value and self.there(root, at):
                sources.add(root)
            elif r not in self.time or not self.collect(r, at, value, again, sources, depth + 1):
                return False
        again[record] = None
        return True

    def waits(self, record: Record, at: int) -> bool:
        """Is it (a name of) a value made before the peak, that is read at a time after it?"""
        made = self.time.get(record)
        return made is not None and made < self.peak < at and self.root.get(record) in self.inside

    def there(self, value: Value, at: int) -> bool:
        """Is a value in memory at a time, whatever we do?"""
        record = value[0]
        if record in self.gone:
            return at <= self.gone[record]
        life = self.lives.get(value)
        return life is None or life.start == GIVEN or life.start < at < life.end


@program_pass(
    "recompute",
    budget=(None, "the memory that is aimed at, in bytes or as a share of what there would be"),
    price=(None, "the most seconds that a byte less at the peak may cost"),
    least=(0, "programs that need fewer bytes stay as they are"),
    fusion=(False,),
    enable_auto_fusion=(True,),
)
def recompute(
    program: Program,
    *,
    budget: float | None,
    price: float | None,
    least: int,
    fusion: bool,
    enable_auto_fusion: bool,
) -> Program:
    """The program with some values made again, so that `budget` bytes are enough for its live set.

    A budget below 1 is a share of what the program needs as it is. `price` is the most seconds
    that a byte less at the peak may cost. As near to the budget as it gets; without one, or
    if its live set is below `least` bytes, the program stays as it is. So it does if `fusion` will
    follow and keep the budget alone, as in a program of elementwise operators.
    """
    sizes = [n for r in program.records for s in specs_of(r) for n in s.shape]
    if budget is None or any(type(n) is Dim for n in sizes):
        return program
    now = live(program)
    if now < least:
        return program
    budget = budget * now if 0 < budget < 1 else budget
    one = fusion and enable_auto_fusion and all(map(fusable, program.records))
    if one and live(grouped(program)) <= budget:
        return program  # what waits, waits in registers
    while now > budget:
        other = relieved(program, now - budget, inf if price is None else price)
        then = live(other)
        if then >= now:
            break
        program, now = other, then
    return program


def relieved(program: Program, excess: float, price: float) -> Program:
    """The program with less alive at its peak, by `excess` bytes if possible."""
    moments = Moments(program)
    plans = chosen(moments.plans(), excess, price)
    return dead_code(written(moments, plans)) if plans else program


@slot("recompute.chosen")
def chosen(plans: list[Again], excess: float, price: float) -> list[Again]:
    """Some of the plans, the cheapest first, until `excess` bytes are saved.

    None costs more than `price` seconds per byte, none reads a value that another one lets go.
    """
    found: list[Again] = []
    gone, read = set(), set()
    for plan in sorted(plans, key=lambda p: p.score):
        if excess <= 0 or plan.score > price:
            break
        if plan.value in read or not plan.sources.isdisjoint(gone):
            continue
        found.append(plan)
        gone.add(plan.value)
        read |= plan.sources
        excess -= plan.nbytes
    return found


def written(moments: Moments, plans: list[Again]) -> Program:
    """The program in which these values are made again, and read from there on. What else waits
    through the peak is read `after` it: so nothing that is made of it can be computed before.
    """
    by_time: dict[int, list[Again]] = {}
    for plan in plans:
        by_time.setdefault(plan.at, []).append(plan)
    now: dict[Record, Record] = {}
    records: list[Record] = []
    for t, record in enumerate(moments.records):
        for plan in by_time.get(t, ()):
            records += made_again(plan, now, moments)
        if record.op is not after:
            for r in dict.fromkeys(record.inputs):
                late = moments.late_value(t) if r not in now and moments.waits(r, t) else None
                if late is not None:
                    now[r] = later(r, now.get(late, late), record)
                    records.append(now[r])
        records.append(substitute(record, now))
    return with_records(moments.program, records, now)


def later(source: Record, late: Record, user: Record) -> Record:
    """A value, for a user who must not run before `late` is there."""
    return user.derive(after, [source, late], {}, source.spec, 1)


def made_again(plan: Again, now: dict[Record, Record], moments: Moments) -> list[Record]:
    """The records of a plan, on their sources after the late value; `now` learns of them."""
    own: dict[Record, Record] = {}
    found: list[Record] = []
    late = now.get(plan.late, plan.late)
    for record in plan.again:
        inputs = []
        for r in record.inputs:
            if r not in own and r.op is not NUMBER:
                source = now.get(r, r)
                if source.op is not after:
                    source = later(source, late, record)
                    found.append(source)
                own[r] = source
                if moments.waits(r, plan.at):
                    now[r] = source
            inputs.append(own.get(r, r))
        own[record] = record.copy(inputs)
        found.append(own[record])
    now.update({r: own[r] for r in plan.again})
    return found
