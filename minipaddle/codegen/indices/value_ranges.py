"""Ranges of whole numbers that a program counts: an index in such a range needs no check.

`arange` counts, and so does a loop that says how many iterations there are (`trip_count`): the
number of an iteration begins with a number, and each iteration adds one. So is known what is added
to it, and what the derivative of the loop reads of its stack.
"""

from __future__ import annotations

from ...engine.core.record import Record
from ...engine.ir.control import fused, while_loop
from ...engine.ir.program import ITEM, NUMBER, Program, regions
from ...engine.ops.creation import arange, assign, full
from ...engine.ops.elementwise import add, subtract
from ...engine.ops.gather import take
from ...engine.ops.marks import after
from ...engine.ops.movement import reshape

SAME_VALUES = {assign, after, reshape, take}
"""Operators whose result has values of the first input alone."""

COUNTED = ("size", "start", "step")
"""The attributes of `arange`."""

Range = tuple[int, int]
"""The lowest number and the highest."""


class ValueRanges:
    """The ranges of values of a program and of its regions."""

    def __init__(self, program: Program):
        self.known: dict[Record, Range] = {}
        self.results: dict[Record, list[Range | None]] = {}
        self.visit(program)

    def visit(self, program: Program) -> None:
        """Find the ranges of the values of a program, as far as its inputs tell."""
        for record in program.records:
            if record.op is while_loop:
                self.enter(record)
            for region in regions(record).values() if record.op.kind == "control" else ():
                if record.op is fused:
                    self.put_all(region.inputs, map(self.of, record.inputs))
                self.visit(region)
            if record.op in (fused, while_loop):
                self.results[record] = self.find_results(record)
            self.put_all([record], [self.find_range(record)])

    def put_all(self, records, ranges) -> None:
        """Note the ranges that are known."""
        self.known |= {r: values for r, values in zip(records, ranges) if values is not None}

    def enter(self, loop: Record) -> None:
        """Note what the iterations of a loop count, and the constants of its body."""
        n, trips, body = loop.attrs["carried"], loop.attrs.get("trip_count"), loop.attrs["body"]
        self.put_all(body.inputs[n:], map(self.of, loop.inputs[n:]))
        for x, first, last in zip(body.inputs, loop.inputs[:n], body.outputs):
            start, step = self.of(first), find_step(last, x)
            if isinstance(trips, int) and start is not None and step is not None:
                way = step * max(trips - 1, 0)
                self.known[x] = start[0] + min(way, 0), start[1] + max(way, 0)

    def of(self, x: Record) -> Range | None:
        """The range of a value, None if it is not known."""
        if x.op is NUMBER and isinstance(x.attrs["value"], int):
            return (x.attrs["value"],) * 2
        return self.known.get(x)

    def find_range(self, record: Record) -> Range | None:
        """The range of a result by those of the inputs."""
        op, inputs = record.op, record.inputs
        if op is full and isinstance(record.attrs["value"], int):
            return (record.attrs["value"],) * 2
        if op is arange and all(isinstance(v, int) for v in map(record.attrs.get, COUNTED)):
            size, first, step = map(record.attrs.get, COUNTED)
            last = first + step * max(size - 1, 0)
            return min(first, last), max(first, last)
        if op is ITEM:
            return self.results.get(inputs[0], {record.attrs["k"]: None})[record.attrs["k"]]
        if op in SAME_VALUES:
            return self.of(inputs[0])
        if op in (add, subtract):
            a, b = map(self.of, inputs)
            if a is not None and b is not None:
                low, high = b if op is add else (-b[1], -b[0])
                return a[0] + low, a[1] + high
        return None

    def find_results(self, record: Record) -> list[Range | None]:
        """The ranges of the results of a group; or of a loop: of its count and of its stacks."""
        if record.op is fused:
            return [*map(self.of, record.attrs["region"].outputs)]
        n, trips = record.attrs["carried"], record.attrs.get("trip_count")
        count = (trips, trips) if isinstance(trips, int) else None
        body = record.attrs["body"]
        stacked = [*body.inputs[: n * record.attrs["keep"]], *body.outputs[n:]]
        return [*[None] * n, *[count] * record.attrs["keep"], *map(self.of, stacked)]


def find_step(x: Record, start: Record) -> int | None:
    """The number c for which x is start + c; None if there is none."""
    step, inner = 0, {}
    while (x := inner.get(x, x)) is not start:
        if x.op is ITEM and x.inputs[0].op is fused:
            region = x.inputs[0].attrs["region"]
            inner |= zip(region.inputs, x.inputs[0].inputs, strict=True)
            x = region.outputs[x.attrs["k"]]
        elif x.op in (add, subtract) and type(x.inputs[1].attrs.get("value")) is int:
            if x.inputs[1].op is not NUMBER:
                return None
            step += x.inputs[1].attrs["value"] * (1 if x.op is add else -1)
            x = x.inputs[0]
        else:
            return None
    return step
