"""Algebra: shorter formulas that have the same value to the last bit.

Which rules are right for floating-point numbers, and which are not:

- x·1, x/1, x-0, x^1, --x, x-(-y), x·(-1) → -x, x/2ᵏ → x·2⁻ᵏ are exact, NaN and ±0 included.
- x+0 is not x where x is -0, x·0 is not 0 where x is NaN or ∞, nor is x-x: they stay.
- x², x³, x⁻¹ become x·x, x·x·x, 1/x, and x^½ √x (but at -0 and -∞): no further from the true
  power than `pow` is.
- Nothing is reassociated or distributed, and x/c stays a division.

`minipaddle/passes/algebra_of_shapes.py` adds rules for casts, movements and sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from ..core import slots
from ..core.slots import PLUGGED, slot
from ..ir.program import Program
from ..ops import elementwise
from ..ops.elementwise import add, maximum, minimum, neg, pow, reciprocal, sqrt, square, subtract
from ..ops.movement import transpose
from .patterns import RewriteRule, by_rules
from .registry import program_pass
from .rewriting import Rules, rewritten


def power_of_two(x, c) -> bool:
    """Whether c is a power of two, and both c and 1/c are numbers in float32."""
    known = type(c) in (int, float) and 2.0**-126 <= abs(c) <= 2.0**126
    return known and math.frexp(c)[0] in (0.5, -0.5)


def half_power(x):
    """x^½, which is √x but for -inf and -0."""
    return elementwise.where(x == -math.inf, math.inf, elementwise.abs(sqrt(x)))


def itself(x, **known):
    return x


@slot("algebra.numbers")
def numbers() -> list[RewriteRule]:
    """Rules for arithmetic: exact, NaN and -0.0 included, or no further from the true value."""
    return [
        RewriteRule(lambda x: x * 1, itself),
        RewriteRule(lambda x: x / 1, itself),
        RewriteRule(lambda x: x - 0, itself),
        RewriteRule(lambda x: pow(x, 1), itself),
        RewriteRule(lambda x: pow(x, 2), square),
        RewriteRule(lambda x: pow(x, 3), lambda x: x * square(x)),
        RewriteRule(lambda x: pow(x, 0.5), half_power),
        RewriteRule(lambda x: pow(x, -1), reciprocal),
        RewriteRule(lambda x: x * -1, neg),
        RewriteRule(lambda x: neg(neg(x)), itself),
        RewriteRule(lambda x, y: x - neg(y), add),
        RewriteRule(lambda x, y: x + neg(y), subtract),
        RewriteRule(lambda x, *, c: x / c, lambda x, *, c: x * (1 / c), power_of_two),
        RewriteRule(lambda c, x: elementwise.where(c, x, x), lambda c, x: x),
        RewriteRule(lambda x: maximum(x, x), itself),
        RewriteRule(lambda x: minimum(x, x), itself),
    ]


@slot("algebra.transposes")
def transposes() -> list[RewriteRule]:
    """Rules for a transpose that does nothing, and for two in a row."""
    return [
        RewriteRule(lambda x, *, p: transpose(x, perm=p), itself, lambda x, p: [*p] == sorted(p)),
        RewriteRule(lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),
             lambda x, *, p, q: transpose(x, perm=tuple(p[d] for d in q))),
    ]  # fmt: skip


OTHERS: list[RewriteRule] = []
"""Further rules; `minipaddle.passes` adds some."""

BEFORE: list[Callable[[Program], Program]] = []
"""Functions that run before rules are applied; `minipaddle.passes` adds one."""


OWN = [*numbers(), *transposes()]


@program_pass("algebra", looks_for=[rule.op for rule in OWN])
def algebra(program: Program) -> Program:
    """The program with each rule applied wherever it fits."""
    for change in BEFORE:
        program = change(program)
    return rewritten(program, table(slots.epoch))


@cache
def table(epoch: int) -> Rules:
    """The rules by operator, since slots last changed."""
    return by_rules([*([*numbers(), *transposes()] if PLUGGED else OWN), *OTHERS])
