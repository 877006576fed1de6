"""Cache blocking: the interpreter computes a large group block by block, so that values between
its records stay in the cache.

A group is one loop nest (`passes.nest`), which knows the index at which each value is needed. One
loop of the nest is cut. If a value's index contains this loop in one axis, with f elements for each
iteration, then iterations [a, b) are the elements [a·f, b·f) of that axis: a block, which the same
array operations compute as the whole value. A reduction over the cut loop combines the partial
results of the blocks; another *sweep* over the blocks computes the values that need its result.

A group that cannot be cut in this way is computed record by record, and so is a small group.
"""

from __future__ import annotations

import dis
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ...engine.core import slots
from ...engine.core.polynomial import as_polynomial
from ...engine.core.record import Record, Spec
from ...engine.core.symbols import Loop
from ...engine.ir.control import fused
from ...engine.ir.edit import substitute, with_records
from ...engine.ir.interpreter import RecordStep, Run, direct_body, fail
from ...engine.ir.program import ITEM, NUMBER, Program
from ...engine.passes.nest import Nest, NotOneNest

LEAST = 1 << 20
"""Fewest bytes of the largest value of a group: smaller values fit the cache anyway."""
BLOCK = 1 << 18
"""Bytes of the largest value in a block: several such values fit into the cache of a core."""
STRETCH = 1 << 14
"""Fewest contiguous bytes of a block."""
OPERATIONS = 8
"""Fewest array operations of a sweep. (Measured: with eight, blocks are as fast as whole arrays;
with twenty they are twice as fast.)"""


class NotCut(Exception):
    """Why a group is not computed in blocks."""


class Cut(NamedTuple):
    """How a value is cut: `stretch` elements of an axis belong to each iteration of the loop."""

    axis: int
    stretch: int

    def part(self, first: int, last: int) -> tuple:
        """The index of the elements of iterations [first, last) in the whole value."""
        return (slice(None),) * self.axis + (slice(first * self.stretch, last * self.stretch),)

    def shape(self, whole: tuple, iterations: int) -> tuple:
        """The shape of a block."""
        return (*whole[: self.axis], iterations * self.stretch, *whole[self.axis + 1 :])


def cuts(nest: Nest, loop: Loop) -> dict[Record, Cut | None]:
    """How each value is cut along a loop; None for a value that all its iterations share."""
    by_record: dict[Record, Cut | None] = {}
    places = [(r, i, guard) for r, values in nest.memo.items() for i, guard, _ in values]
    for record, i, guard in places:
        if record.op is NUMBER:
            continue
        if any(loop in k.loops for k, *_ in guard):
            raise NotCut("where a value is taken from depends on the block")
        here = cut_of(record, i, loop)
        if by_record.setdefault(record, here) != here:
            raise NotCut("a value is needed in two ways")
    return by_record


def cut_of(record: Record, i: tuple, loop: Loop) -> Cut | None:
    """How a value that is needed at index i is cut."""
    axes = [d for d, k in enumerate(i) if loop in k.loops]
    if not axes:
        return None
    axis, stretch = axes[0], i[axes[0]].terms.get((loop,), 0)
    rest = i[axis] - as_polynomial(loop) * stretch
    whole = record.shape[axis] == stretch * loop.extent
    if (
        len(axes) > 1
        or not whole
        or loop in rest.loops
        or (rest.low, rest.high) != (0, stretch - 1)
    ):
        raise NotCut("a block of it is no slice")
    return Cut(axis, stretch)


def operations(record: Record) -> int:
    """The number of array operations in the formula of a record."""
    if record.op.kind != "elementwise":
        return 0
    return sum(i.opname in OPERATING for i in dis.get_instructions(record.op.body))


OPERATING = {"BINARY_OP", "CALL", "COMPARE_OP", "UNARY_NEGATIVE"}


class SweepStep(NamedTuple):
    """One record of a sweep: how to compute a block of its value, and which values end here."""

    record: Record
    body: object  # see `ir.interpreter.direct_body`
    attrs: dict[int, dict]  # by the number of iterations of the block
    free: tuple[Record, ...]


class Sweep(NamedTuple):
    """One pass over all blocks."""

    first: list[Record]  # values that all blocks share: computed before
    whole: list[Record]  # values that are read as a whole
    cut: list[tuple[Record, Cut]]  # values that are read in blocks
    work: list[SweepStep]


class CacheBlocks:
    """How a group is computed in blocks of `iterations` of one loop; raises NotCut if no block of a
    fitting size exists.
    """

    def __init__(self, region: Program, nest: Nest, loop: Loop):
        self.region, self.extent, self.cuts = region, loop.extent, cuts(nest, loop)
        self.records = [r for r in region.records if r in self.cuts]
        self.iterations = self.block_iterations()
        self.folds = {
            r for r in self.records
            if r.op.kind == "reduction" and self.cuts[r] is None and self.cuts[r.inputs[0]]
        }  # fmt: skip
        self.levels = self.sweep_numbers()
        self.sweeps = [self.sweep(k) for k in range(1 + max(self.levels.values()))]
        if sum(operations(w.record) for s in self.sweeps for w in s.work) < (
            OPERATIONS * len(self.sweeps)
        ):
            raise NotCut("there is little to do in a block")

    def block_iterations(self) -> int:
        """The iterations of the loop in a block; raises NotCut if they are nearly all, or none."""
        values = [(r.spec.nbytes, r, cut) for r, cut in self.cuts.items() if cut]
        largest, record, cut = max(values, key=lambda v: v[0], default=(0, None, None))
        if largest < LEAST:
            raise NotCut("it is small")
        unit = largest // self.extent
        iterations = max(1, BLOCK // unit)
        beside = iterations * unit // prod(record.shape[: cut.axis])
        if unit > 2 * BLOCK or 3 * iterations > self.extent or beside < STRETCH:
            raise NotCut("no block of that size is made of many iterations")
        return iterations

    def sweep_numbers(self) -> dict[Record, int]:
        """The sweep that can compute each value."""
        level: dict[Record, int] = {}
        for r in self.records:
            inputs = [x for x in r.inputs if x in level]
            level[r] = max((level[x] + (x in self.folds) for x in inputs), default=0)
        return level

    def sweep(self, k: int) -> Sweep:
        """The k-th sweep: the reductions and results of its level."""
        level, own = self.levels, set(self.records)
        same = [r for r in self.records if self.is_whole(r)]
        in_blocks = [r for r in self.records if r not in same and (r in self.folds or self.cuts[r])]
        outputs = {r for r in self.region.outputs if r in own and self.cuts[r]}
        done = {r for r in outputs if level[r] < k}
        wanted = [r for r in in_blocks if level[r] == k and (r in outputs or r in self.folds)]
        needed, todo = set(wanted), list(wanted)
        while todo:
            for x in todo.pop().inputs:
                if x in self.cuts and x in in_blocks and x not in self.folds | done | needed:
                    needed.add(x)
                    todo.append(x)
        order = [r for r in self.records if r in needed]
        read = [x for r in order for x in r.inputs if x in self.cuts and x not in needed]
        read = dict.fromkeys(read)
        return Sweep(
            [r for r in same if level[r] == k],
            [x for x in read if not self.cuts[x]],
            [(x, self.cuts[x]) for x in read if self.cuts[x]],
            self.steps(order),
        )

    def is_whole(self, record: Record) -> bool:
        """Whether a value is computed once: all blocks share it, or it has no inputs."""
        made_of = [x for x in record.inputs if x.op is not NUMBER]
        return not made_of or (self.cuts[record] is None and record not in self.folds)

    def steps(self, order: list[Record]) -> list[SweepStep]:
        last = {x: r for r in order for x in (*r.inputs, r) if x.op is not NUMBER}
        free: dict[Record, list[Record]] = {}
        for x, r in last.items():
            free.setdefault(r, []).append(x)
        sizes = {self.iterations, self.extent % self.iterations or self.iterations}
        return [
            SweepStep(
                r, direct_body(r), {n: self.attrs(r, n) for n in sizes}, tuple(free.get(r, ()))
            )
            for r in order
        ]

    def attrs(self, record: Record, iterations: int) -> dict:
        """The attributes of a record for a block of `iterations`: a shape becomes the block's.
        Raises NotCut if the operator does something else to a block than to the whole: `tile`
        repeats both equally often.
        """
        cut, attrs = self.cuts[record], record.attrs
        if cut is None:
            return attrs
        if attrs.get("shape") == record.shape:
            attrs = attrs | {"shape": self.block_of(record, iterations).shape}
        inputs = [
            x.attrs["value"] if x.op is NUMBER else self.block_of(x, iterations)
            for x in record.inputs
        ]
        if record.op.result_spec(inputs, attrs) != self.block_of(record, iterations):
            raise NotCut(f"{record.op.name} makes no block of blocks")
        return attrs

    def block_of(self, record: Record, iterations: int) -> Spec:
        """The spec of a value in a block."""
        cut = self.cuts[record]
        return Spec(cut.shape(record.shape, iterations), record.dtype) if cut else record.spec

    # ---- running -----------------------------------------------------------------------------

    def __call__(self, m, inputs) -> tuple:
        """The results of the group."""
        values = dict(zip(self.region.inputs, inputs, strict=True))
        for r in self.region.outputs:
            if self.cuts.get(r) and r not in values:
                values[r] = m.empty(r.shape, r.dtype)
        for sweep in self.sweeps:
            for r in sweep.first:
                values[r] = compute_record(m, r, direct_body(r), r.attrs, values)
            for start in range(0, self.extent if sweep.work else 0, self.iterations):
                self.block(m, sweep, values, start, min(start + self.iterations, self.extent))
        return tuple(values[r] for r in self.region.outputs)

    def block(self, m, sweep: Sweep, whole: dict, first: int, last: int) -> None:
        values = {x: whole[x] for x in sweep.whole}
        for x, cut in sweep.cut:
            values[x] = whole[x][cut.part(first, last)]
        for record, body, attrs, free in sweep.work:
            y = compute_record(m, record, body, attrs[last - first], values)
            if record in self.folds:
                whole[record] = record.op.combine(m, whole[record], y) if first else y
            else:
                values[record] = y
                if record in whole:
                    whole[record][self.cuts[record].part(first, last)] = y
            for x in free:
                values.pop(x, None)


def compute_record(m, record: Record, body, attrs: dict, values: dict):
    """The value of a record, given the values of its inputs."""
    inputs = [x.attrs["value"] if x.op is NUMBER else values[x] for x in record.inputs]
    try:
        return body(m, *inputs, **attrs) if body else record.op.evaluate(m, inputs, attrs)
    except Exception as error:
        fail(record, error)


_known: WeakKeyDictionary = WeakKeyDictionary()


def blocks_of(region: Program) -> CacheBlocks | None:
    """The blocks of a group; None if it is computed record by record."""
    epoch, blocks = _known.get(region, (None, None))
    if epoch != slots.epoch:
        blocks = cut(region)
        _known[region] = slots.epoch, blocks
    return blocks


@slots.slot("executors.cut")
def cut(region: Program) -> CacheBlocks | None:
    """The blocks of a group along the outermost loop that can be cut; None if none can."""
    try:
        nest = Nest(region.records, region.outputs)
    except NotOneNest:
        return None
    for loop in nest.loops:
        try:
            return CacheBlocks(region, nest, loop)
        except NotCut:
            continue
    return None


class BlockedRun(Run):
    """Runs programs like the interpreter, with large groups in blocks.

    >>> import numpy
    >>> from minipaddle.executors.interpreted.cache_blocking import BlockedRun
    >>> from minipaddle.engine.passes.manager import optimized
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return paddle.exp(-x * x).sum()
    >>> y = f(paddle.zeros([1000, 1000]))
    >>> program = optimized(f.main_program).program
    >>> BlockedRun(numpy)(program, [numpy.zeros([1000, 1000], "float32")])[0].item()
    1000000.0
    """

    def apply(self, step: RecordStep, inputs) -> object:
        if step.record.op is fused:
            blocks = blocks_of(step.record.attrs["region"])
            if blocks is not None:
                return blocks(self.m, inputs)
        return super().apply(step, inputs)


def flatten(program: Program) -> Program:
    """The program with the records of each group that is not computed in blocks."""
    now: dict[Record, Record] = {}
    groups: dict[Record, list[Record]] = {}  # the results of groups that were flattened
    records: list[Record] = []
    for r in program.records:
        if r.op is ITEM and r.inputs[0] in groups:
            now[r] = groups[r.inputs[0]][r.attrs["k"]]
        elif r.op is fused and blocks_of(region := r.attrs["region"]) is None:
            now |= {x: now.get(y, y) for x, y in zip(region.inputs, r.inputs, strict=True)}
            records += [substitute(inner, now) for inner in region.records]
            groups[r] = [now.get(x, x) for x in region.outputs]
        else:
            records.append(substitute(r, now))
    return with_records(program, records, now)
