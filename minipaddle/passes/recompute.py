"""Recomputation: a value that is live at the peak of memory is computed again where it is read.

The cost of computing a value again is estimated from the bytes that its records move and the
products they compute; the gain is its bytes at the peak. The cheapest values go first, until the
live set is within the budget. A value is computed from others that are in memory at that time, by
several records if need be, and after a value that is computed after the peak
(`ops.marks.after`).

Sources: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; Kirisame et al.,
"Dynamic Tensor Rematerialization", 2021 (the choice by cost over bytes).
"""

from __future__ import annotations

from functools import cached_property
from math import inf, sqrt
from typing import NamedTuple

from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.ir.cut import has_effect
from ..engine.ir.edit import substitute, users_of, with_records
from ..engine.ir.program import ITEM, NUMBER, Program, everywhere, open_sizes, regions
from ..engine.ops.marks import after
from ..engine.passes.arena import profile
from ..engine.passes.dead_code import dead_code
from ..engine.passes.fusion import build_groups
from ..engine.passes.lifetimes import (
    ALIGNMENT,
    GIVEN,
    Life,
    Value,
    lifetimes,
    roots,
    specs_of,
    value_of_view,
)
from ..engine.passes.memory import live
from ..engine.passes.nest import fusable
from ..engine.passes.registry import DEFAULTS, program_pass
from .collective_order import find_sends, places_needed, places_to_come

BYTES_PER_SECOND, PRODUCTS_PER_SECOND = 1e10, 5e10
"""The speed of a core, roughly."""
DEPTH = 12
"""The longest chain of records that computes a value again."""


def seconds(record: Record) -> float:
    """The estimated time to compute a record.

    For operators that multiply and add (matmul, conv) the number of products is about the root of
    the sizes of both factors and of the result, multiplied: for matrices it is just that.
    """
    if record.op is ITEM or value_of_view(record) is not None:
        return 0.0
    tensors = [r.spec for r in record.inputs if r.op is not NUMBER and r.dtype is not None]
    results = specs_of(record)
    moved = sum(s.nbytes for s in (*tensors, *results)) / BYTES_PER_SECOND
    large = sorted((s.size for s in tensors), reverse=True)[:2]
    if record.op.kind in ("opaque", "contraction") and len(large) == 2:
        return moved + sqrt(large[0] * large[1] * results[0].size) / PRODUCTS_PER_SECOND
    return moved


def seconds_of_all(records) -> float:
    """The estimated time to compute records, of which fusion makes one loop of elementwise ones."""
    simple = {r for r in records if r.op.kind == "elementwise"}
    inner = [r for x in simple for r in x.inputs if r in simple]
    moved = sum(r.spec.nbytes for r in inner) + sum(r.spec.nbytes for r in {*inner})
    return sum(map(seconds, records)) - moved / BYTES_PER_SECOND


class Recomputation(NamedTuple):
    """`value` is computed again at the time `at` by `records`, in order, from the `sources`."""

    value: Value
    at: int
    anchor: Record  # computed after the peak, before `at`
    records: list[Record]
    sources: set[Value]
    nbytes: int
    seconds: float

    @property
    def score(self) -> float:
        """Seconds per byte."""
        return self.seconds / self.nbytes


class Peak:
    """The values that are live at a program's peak, and how they can be computed again."""

    def __init__(self, program: Program):
        self.program, self.records = program, program.records
        self.root = roots(program)
        self.lives: dict[Value, Life] = lifetimes(program, self.root)
        results = {self.root[r] for r in program.results}
        self.inside = {
            v: life for v, life in self.lives.items() if life.start != GIVEN and v not in results
        }
        level = profile(self.inside.values())
        self.peak = max(level, key=level.get, default=0)
        self.time = {r: t for t, r in enumerate(self.records)}
        end, users = len(self.records), users_of(program)
        self.readers = {r: [self.time[u] for u in readers] for r, readers in users.items()}
        self.needed, self.to_come = places_needed(program), places_to_come(program)
        self.sent = find_sends(program, users)
        self.overwritten = {  # until when a state's old value can be read
            s.record: end if s.update is None else self.time.get(self.root[s.update][0], 0)
            for s in program.states
        }

    def plans(self) -> list[Recomputation]:
        """Plans for the values that are live at the peak and can be computed again."""
        crossing = [v for v, x in self.inside.items() if x.start < self.peak < x.end - 1]
        plans = [self.plan(v) for v in crossing if self.lives[v].nbytes]
        return [plan for plan in plans if plan is not None]

    def plan(self, value: Value) -> Recomputation | None:
        """How to compute a value again; None if it is read at the peak, or cannot be."""
        early = self.names.get(value, ())
        reads = [t for r in early for t in self.readers.get(r, ()) if t >= self.peak]
        if not reads or min(reads) <= self.peak:
            return None
        at = min(reads)
        if self.records[at] in self.sent:
            return None
        anchor = self.anchor(at)
        again: dict[Record, None] = {}
        sources: set[Value] = set()
        wanted = [r for r in early if any(t >= at for t in self.readers.get(r, ()))]
        if anchor is None or not all(self.collect(r, at, value, again, sources, 0) for r in wanted):
            return None
        order, cost = sorted(again, key=self.time.get), seconds_of_all(again)
        if self.is_compared(order, at):
            return None
        return Recomputation(value, at, anchor, order, sources, self.lives[value].nbytes, cost)

    def is_compared(self, again: list[Record], at: int) -> bool:
        """Whether a value that is computed again is compared later with one computed from it, such
        as its maximum. Another kernel rounds differently, and no element would be equal.
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
    def names(self) -> dict[Value, list[Record]]:
        """For each value the records before the peak that name it: its own, and views of it."""
        names: dict[Value, list[Record]] = {}
        for r in self.records[: self.peak]:
            if r.dtype is not None:
                names.setdefault(self.root[r], []).append(r)
        return names

    def anchor(self, at: int) -> Record | None:
        """A value computed between the peak and `at`, if possible an input of the record then. It
        needs no collective that has to start after one that stands later.
        """
        between = [*self.records[self.peak : at], *self.records[at].inputs]
        late = [r for r in between if r.dtype is not None and self.time.get(r, -1) >= self.peak]
        late = [r for r in late if self.needed[r] < self.to_come[at]]
        return late[-1] if late else None

    def collect(self, record, at: int, value, again: dict, sources: set, depth: int) -> bool:
        """Whether a record can be computed again at a time; adds the records needed to `again`."""
        if record in again:
            return True
        if depth > DEPTH or regions(record) or has_effect(record):
            return False
        for r in record.inputs:
            if r.op is NUMBER:
                continue
            root = self.root.get(r)
            if root is not None and root != value and self.in_memory(root, at):
                sources.add(root)
            elif r not in self.time or not self.collect(r, at, value, again, sources, depth + 1):
                return False
        again[record] = None
        return True

    def spans(self, record: Record, at: int) -> bool:
        """Whether a record names a value from before the peak, and `at` is after it."""
        time = self.time.get(record)
        return time is not None and time < self.peak < at and self.root.get(record) in self.inside

    def in_memory(self, value: Value, at: int) -> bool:
        """Whether a value is in memory at a time anyway."""
        if value[0] in self.overwritten:
            return at <= self.overwritten[value[0]]
        life = self.lives.get(value)
        return life is None or life.start == GIVEN or life.start < at < life.end


DEFAULTS.update(budget=0.66, price=1.5e-9, least=4 << 20, fusion=True)
"""Unless a strategy says otherwise: a program that needs more than a few MiB computes again what
is cheap (at most 1.5 ns for a byte less at the peak), down to two thirds of that memory."""


def all_bytes(program: Program) -> int:
    """The bytes that a program would need if no two values shared memory."""
    records = [*[s.record for s in program.states], *everywhere(program)]
    return sum([s.nbytes + ALIGNMENT for r in records for s in specs_of(r)])


@program_pass(
    "recompute",
    looks_for=["linked records"],
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
    """The program with some values computed again, so that its live set fits into `budget` bytes.

    A budget below 1 is a share of what the program needs as it is. `price` is the most seconds
    that a byte less at the peak may cost. If the budget cannot be reached, the pass comes as near
    as it can. The program stays as it is without a budget, if its live set is below `least` bytes,
    or if `fusion` alone will keep the budget, as in a program of elementwise operators.
    """
    if budget is None or open_sizes(program) or all_bytes(program) < least:
        return program
    now = live(program)
    if now < least:
        return program
    budget = budget * now if 0 < budget < 1 else budget
    one = fusion and enable_auto_fusion and all(map(fusable, program.records))
    if one and live(build_groups(program)) <= budget:
        return program  # the values are in registers
    while now > budget:
        other = lower_peak(program, now - budget, inf if price is None else price)
        then = live(other)
        if then >= now:
            break
        program, now = other, then
    return program


def lower_peak(program: Program, excess: float, price: float) -> Program:
    """The program whose peak is lower, by `excess` bytes if possible."""
    peak = Peak(program)
    plans = chosen(peak.plans(), excess, price)
    return dead_code(follow(plans, peak)) if plans else program


@slot("recompute.chosen")
def chosen(plans: list[Recomputation], excess: float, price: float) -> list[Recomputation]:
    """Some of the plans, the cheapest first, until `excess` bytes are saved.

    No plan costs more than `price` seconds per byte, or reads a value that another one frees.
    """
    taken, gone, read = [], set(), set()
    for plan in sorted(plans, key=lambda p: p.score):
        if excess <= 0 or plan.score > price:
            break
        if plan.value in read or not plan.sources.isdisjoint(gone):
            continue
        taken.append(plan)
        gone.add(plan.value)
        read |= plan.sources
        excess -= plan.nbytes
    return taken


def follow(plans: list[Recomputation], peak: Peak) -> Program:
    """The program in which these values are computed again, and read from there on. Other values
    that are live at the peak are read `after` it, so that nothing computed from them comes before.
    """
    by_time: dict[int, list[Recomputation]] = {}
    for plan in plans:
        by_time.setdefault(plan.at, []).append(plan)
    new: dict[Record, Record] = {}
    records: list[Record] = []
    for t, record in enumerate(peak.records):
        for plan in by_time.get(t, ()):
            records += compute_again(plan, new, peak)
        waits = record.op is not after and record not in peak.sent
        for r in dict.fromkeys(record.inputs) if waits else ():
            anchor = peak.anchor(t) if r not in new and peak.spans(r, t) else None
            if anchor is not None:
                new[r] = read_after(new.get(anchor, anchor), r, record)
                records.append(new[r])
        records.append(substitute(record, new))
    return with_records(peak.program, records, new)


def read_after(anchor: Record, source: Record, user: Record) -> Record:
    """A value, for a record that must not run before `anchor` is computed."""
    return user.derive(after, [source, anchor], {}, source.spec, 1)


def compute_again(plan: Recomputation, new: dict[Record, Record], peak: Peak) -> list[Record]:
    """The records of a plan, which read their sources after the anchor; added to `new`."""
    own: dict[Record, Record] = {}
    records: list[Record] = []
    anchor = new.get(plan.anchor, plan.anchor)
    for record in plan.records:
        for r in record.inputs:
            if r in own or r.op is NUMBER:
                continue
            own[r] = new.get(r, r)
            if own[r].op is not after:
                own[r] = read_after(anchor, own[r], record)
                records.append(own[r])
            if peak.spans(r, plan.at):
                new[r] = own[r]
        own[record] = record.copy([own.get(r, r) for r in record.inputs])
        records.append(own[record])
    new.update({r: own[r] for r in plan.records})
    return records
