"""Algebra: shorter formulas that have the same value to the last bit.

Which rules are right for floating-point numbers, and which are not:

- x·1, x/1, x-0, x^1, --x, x-(-y), x·(-1) → -x, x/2ᵏ → x·2⁻ᵏ are exact, NaN and ±0 included.
- x+0 is not x where x is -0, x·0 is not 0 where x is NaN or ∞, nor is x-x: they stay.
- x², x³, x^½, x⁻¹ become x·x, x·x·x, √x, 1/x: no further from the true power than `pow` is.
- Nothing is reassociated or distributed, and x/c stays a division.

`minipaddle/passes/algebra_of_shapes.py` adds rules for casts, movements and sums.
"""

from __future__ import annotations

import math
from functools import cache

from ..core import slots
from ..core.record import Record
from ..core.slots import slot
from ..core.spec import broadcast_shapes
from ..ir.edit import map_records, map_regions, with_inputs
from ..ir.program import NUMBER, Program
from ..ops.creation import full
from ..ops.elementwise import (
    add,
    maximum,
    minimum,
    neg,
    pow,
    reciprocal,
    sqrt,
    square,
    subtract,
    where,
)
from ..ops.movement import broadcast_to, transpose
from .patterns import Rule, by_rules
from .registry import program_pass
from .rewriting import Rules, rewritten


def power_of_two(x, c) -> bool:
    """Whether c is a power of two, and both c and 1/c are numbers in float32."""
    known = type(c) in (int, float) and 2.0**-126 <= abs(c) <= 2.0**126
    return known and math.frexp(c)[0] in (0.5, -0.5)


def itself(x, **known):
    return x


@slot("algebra.numbers")
def numbers() -> list[Rule]:
    """Rules for arithmetic: exact, NaN and -0.0 included, or no further from the true value."""
    return [
        Rule(lambda x: x * 1, itself),
        Rule(lambda x: x / 1, itself),
        Rule(lambda x: x - 0, itself),
        Rule(lambda x: pow(x, 1), itself),
        Rule(lambda x: pow(x, 2), square),
        Rule(lambda x: pow(x, 3), lambda x: x * square(x)),
        Rule(lambda x: pow(x, 0.5), sqrt),
        Rule(lambda x: pow(x, -1), reciprocal),
        Rule(lambda x: x * -1, neg),
        Rule(lambda x: neg(neg(x)), itself),
        Rule(lambda x, y: x - neg(y), add),
        Rule(lambda x, y: x + neg(y), subtract),
        Rule(lambda x, *, c: x / c, lambda x, *, c: x * (1 / c), power_of_two),
        Rule(lambda c, x: where(c, x, x), lambda c, x: x),
        Rule(lambda x: maximum(x, x), itself),
        Rule(lambda x: minimum(x, x), itself),
    ]


@slot("algebra.transposes")
def transposes() -> list[Rule]:
    """Rules for a transpose that does nothing, and for two in a row."""
    return [
        Rule(lambda x, *, p: transpose(x, perm=p), itself, lambda x, p: [*p] == sorted(p)),
        Rule(lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),
             lambda x, *, p, q: transpose(x, perm=tuple(p[d] for d in q))),
    ]  # fmt: skip


OTHERS: list[Rule] = []
"""Further rules; `minipaddle.passes` adds some."""


@program_pass(
    "algebra",
    looks_for=[broadcast_to, full, *(rule.op for rule in (*numbers(), *transposes()))],
)
def algebra(program: Program) -> Program:
    """The program with each rule applied wherever it fits."""
    return rewritten(narrow_inputs(program), table(slots.epoch))


@cache
def table(epoch: int) -> Rules:
    """The rules by operator, since slots last changed."""
    return by_rules([*numbers(), *transposes(), *OTHERS])


def narrow_inputs(program: Program) -> Program:
    """The program in which elementwise operators read the inputs of a `broadcast_to`, since they
    broadcast by themselves, and a number instead of an array that is full of it.
    """

    def each(record, inputs):
        if record.op.kind == "elementwise" and len(inputs) > 1:
            inputs = narrow(record, inputs)
        return with_inputs(record, inputs, map_regions(record, narrow_inputs))

    return map_records(program, each)


def narrow(record: Record, inputs: list[Record]) -> list[Record]:
    """The inputs as they were before they were repeated, where the result keeps its spec."""
    for k, source in enumerate(inputs):
        number_fits = source.op is full and k not in record.op.free
        if source.op is broadcast_to or number_fits:
            less = source.inputs[0] if source.op is broadcast_to else number(source)
            other = [*inputs[:k], less, *inputs[k + 1 :]]
            if fits(record, other):
                inputs = other
    return inputs


def number(record: Record) -> Record:
    """The number that fills an array."""
    return Record(NUMBER, (), {"value": record.attrs["value"]}, (), record.dtype)


def fits(record: Record, inputs: list[Record]) -> bool:
    """Whether the record keeps its spec with these inputs, and computes in the same dtype."""
    if broadcast_shapes(*(r.shape for r in inputs)) != record.shape:
        return False
    if all(r.op is NUMBER for r in inputs):
        return False
    old, new = ([seen(r) for r in rs] for rs in (record.inputs, inputs))
    return record.op.dtypes(new, record.attrs) == record.op.dtypes(old, record.attrs)


def seen(record: Record):
    return record.attrs["value"] if record.op is NUMBER else record.spec
