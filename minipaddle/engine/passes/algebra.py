"""Algebra: what can be said shorter, and means the same to the last bit.

What is done to floating-point numbers, and what is not:

- x·1, x/1, x-0, x^1, --x, x-(-y), x·(-1) → -x, x/2ᵏ → x·2⁻ᵏ are exact, NaN and ±0 included.
- x+0 is not x where x is -0, x·0 is not 0 where x is NaN or ∞, nor is x-x: they stay.
- x², x³, x^½, x⁻¹ become x·x, x·x·x, √x, 1/x: no further from the true power than `pow` is.
- The order in which a sum adds is free, as it is in NumPy and in a compiled loop: two sums become
  one. Nothing else is associated anew, nothing is distributed, and x/c stays a division.
- Casts disappear where the first one loses nothing.
"""

from __future__ import annotations

import math
from functools import cache

from ..core.dtype import FLOATS
from ..core.record import Record
from ..core.slots import slot
from ..core.spec import broadcast_shapes
from ..ir.edit import map_records, map_regions, with_inputs
from ..ir.program import NUMBER, Program
from ..ops.creation import full
from ..ops.elementwise import (
    add,
    cast,
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
from ..ops.linalg import product
from ..ops.movement import broadcast_to, concat, reshape, slice_, transpose
from ..ops.reduction import sum
from ..ops.slices import places_of
from .patterns import Rule, by_rules
from .registry import program_pass
from .rewriting import Rules, rewritten


def power_of_two(x, c) -> bool:
    """Is c one, and is neither c nor 1/c lost in a float32?"""
    known = type(c) in (int, float) and 2.0**-126 <= abs(c) <= 2.0**126
    return known and math.frexp(c)[0] in (0.5, -0.5)


def lossless(x, p, q) -> bool:
    """Does the first cast keep every value apart?"""
    a, b = x.spec.dtype, p
    if a.kind == "b" or a == b:
        return True
    if a in FLOATS or b in FLOATS:
        return a in FLOATS and b in FLOATS and a.itemsize < b.itemsize and a.itemsize > 2
    return a.kind == b.kind and a.itemsize <= b.itemsize


def whole(x, index) -> bool:
    """Does a slice leave nothing out?"""
    return all(places_of(k, n) == (0, n, 1) for k, n in zip(index, x.spec.shape))


def both(first: tuple, second: tuple, ndim: int) -> tuple:
    """The axes of x that two sums fold, where the first leaves the others alone."""
    left = [d for d in range(ndim) if d not in first]
    return tuple(sorted({*first, *(left[d] for d in second)}))


def itself(x, **known):
    return x


@slot("algebra.numbers")
def numbers() -> list[Rule]:
    """What is done with numbers: exact, NaN and -0.0 included, or no further from the truth."""
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
    """Transposes that do nothing, and two that are one."""
    return [
        Rule(lambda x, *, p: transpose(x, perm=p), itself, lambda x, p: [*p] == sorted(p)),
        Rule(lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),
             lambda x, *, p, q: transpose(x, perm=tuple(p[d] for d in q))),
    ]  # fmt: skip


OTHERS = [
    # casts
    Rule(lambda x, *, p: cast(x, dtype=p), itself, lambda x, p: x.spec.dtype == p),
    Rule(lambda x, *, p, q: cast(cast(x, dtype=p), dtype=q),
         lambda x, *, p, q: cast(x, dtype=q), lossless),
    # movement
    Rule(lambda x, *, p: reshape(x, shape=p), itself, lambda x, p: x.spec.shape == p),
    Rule(lambda x, *, p, q: reshape(reshape(x, shape=p), shape=q),
         lambda x, *, p, q: reshape(x, shape=q), lambda x, p, q: -1 not in q),
    Rule(lambda x, *, p: broadcast_to(x, shape=p), itself, lambda x, p: x.spec.shape == p),
    Rule(lambda x, *, p, q: broadcast_to(broadcast_to(x, shape=p), shape=q),
         lambda x, *, p, q: broadcast_to(x, shape=q)),
    Rule(lambda x, *, index: slice_(x, index=index), itself, whole),
    Rule(lambda x, *, axis: concat(x, axis=axis), itself),
    Rule(lambda x, y, *, x_perm, y_perm, out_perm, p:
             transpose(product(x, y, x_perm=x_perm, y_perm=y_perm, out_perm=out_perm), perm=p),
         lambda x, y, *, x_perm, y_perm, out_perm, p:
             product(x, y, x_perm=x_perm, y_perm=y_perm, out_perm=tuple(out_perm[d] for d in p)),
         alone=True),
    # sums
    Rule(lambda x, *, a, b: sum(sum(x, axis=a, keepdim=True), axis=b, keepdim=True),
         lambda x, *, a, b: sum(x, axis=tuple(sorted({*a, *b})), keepdim=True)),
    Rule(lambda x, *, a, b: sum(sum(x, axis=a, keepdim=False), axis=b, keepdim=False),
         lambda x, *, a, b: sum(x, axis=both(a, b, x.spec.ndim), keepdim=False)),
]  # fmt: skip
"""What is looked for, and what is written instead."""


@program_pass("algebra")
def algebra(program: Program) -> Program:
    """The program with the rules applied wherever they fit."""
    return rewritten(narrowed(program), table(numbers, transposes))


@cache
def table(*kinds) -> Rules:
    """The rules by operator; each of `kinds` gives some more."""
    return by_rules([*(rule for kind in kinds for rule in kind()), *OTHERS])


def narrowed(program: Program) -> Program:
    """Elementwise operators broadcast by themselves: what was repeated for them is used as it is,
    and a number that fills an array is a number.
    """

    def each(record, inputs):
        if record.op.kind == "elementwise" and len(inputs) > 1:
            inputs = narrow(record, inputs)
        return with_inputs(record, inputs, map_regions(record, narrowed))

    return map_records(program, each)


def narrow(record: Record, inputs: list[Record]) -> list[Record]:
    """The inputs before they were repeated, as far as the result stays what it is."""
    for k, source in enumerate(inputs):
        number_fits = source.op is full and k not in record.op.free
        if source.op is broadcast_to or number_fits:
            less = source.inputs[0] if source.op is broadcast_to else number(source)
            other = [*inputs[:k], less, *inputs[k + 1 :]]
            if fits(record, other):
                inputs = other
    return inputs


def number(record: Record) -> Record:
    """The number in an array that is full of it."""
    return Record(NUMBER, (), {"value": record.attrs["value"]}, (), record.dtype)


def fits(record: Record, inputs: list[Record]) -> bool:
    """Has the record the same spec with these inputs, and does it compute in the same dtype?"""
    if broadcast_shapes(*(r.shape for r in inputs)) != record.shape:
        return False
    if all(r.op is NUMBER for r in inputs):
        return False
    old, new = ([seen(r) for r in rs] for rs in (record.inputs, inputs))
    return record.op.dtypes(new, record.attrs) == record.op.dtypes(old, record.attrs)


def seen(record: Record):
    return record.attrs["value"] if record.op is NUMBER else record.spec
