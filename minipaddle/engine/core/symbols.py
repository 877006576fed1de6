"""Symbols that stand for whole numbers, and the values of sums of their products.

A symbol is a size that is not known yet (`n`), or a loop variable (`i`, from 0 up to its extent).
A quotient, remainder, maximum or minimum that is no sum of products is a symbol of its own:
`((n + 1)//2)`. `Polynomial` (in `polynomial.py`) adds up products of symbols.
"""

from __future__ import annotations

import math
import operator
import re
from functools import cached_property

from .slots import slot


class Symbol(str):
    """An unknown number, which is its name. Its `hint` decides if nothing else does."""

    loops: frozenset = frozenset()

    def __new__(cls, name: str, hint: int = 0):
        symbol = super().__new__(cls, name)
        symbol.hint = hint
        return symbol

    def value(self, sizes):
        return sizes[self]

    def bounds(self) -> tuple:
        """The least and the greatest value, None where there is none."""
        return (0 if UNSEEN.match(self) else 1), None


UNSEEN = re.compile(r"[?u]\d+$")
"""Names of sizes that values decide (`u0`): they may be 0, others are at least 1."""


class Loop(Symbol):
    """A loop variable: 0 ≤ name < extent."""

    def __new__(cls, name: str, extent: int = 1):
        loop = super().__new__(cls, name)
        loop.extent, loop.loops = extent, frozenset((loop,))
        return loop

    @property
    def name(self) -> str:
        return str(self)

    def bounds(self) -> tuple:
        return 0, self.extent - 1


class Composite(Symbol):
    """`over // under`, `over % under`, `max(over, under)` or the min, where it stays as it is."""

    def __new__(cls, sign: str, over, under):
        symbol = str.__new__(cls, composite_text(sign, over, under))
        symbol.sign, symbol.over, symbol.under = sign, over, under
        return symbol

    def __getnewargs__(self):
        return self.sign, self.over, self.under

    def value(self, sizes):
        return APPLY[self.sign](at(self.over, sizes), at(self.under, sizes))

    @cached_property
    def hint(self) -> int:
        return APPLY[self.sign](hint_of(self.over), hint_of(self.under))

    @cached_property
    def loops(self) -> frozenset:
        return frozenset().union(*(getattr(x, "loops", ()) for x in (self.over, self.under)))

    def bounds(self) -> tuple:
        return self._bounds

    @cached_property
    def _bounds(self) -> tuple:
        (a, b), (c, d) = bounds(self.over), bounds(self.under)
        if self.sign in ("max", "min"):
            return BOUND[self.sign, 0](a, c), BOUND[self.sign, 1](b, d)
        if a is None or c is None or min(a, c) < 0:
            return None, None
        if self.sign == "%":
            return 0, None if d is None else d - 1
        return (0 if d is None else a // max(d, 1)), (None if b is None else b // max(c, 1))


def composite_text(sign: str, over, under) -> str:
    """`((n + 1)//2)`, `(n%2)`, `max(n - 2, 0)`."""
    if sign in ("max", "min"):
        return f"{sign}({over}, {under})"
    over, under = (
        x if isinstance(x, int) or x.text in x.atoms else f"({x})" for x in (over, under)
    )
    return f"({over}{sign}{under})"


def either(fold):
    """A function of two bounds that needs only one of them."""
    return lambda *ends: fold((x for x in ends if x is not None), default=None)


def both(fold):
    """A function of two bounds that needs both of them."""
    return lambda *ends: None if None in ends else fold(ends)


BOUND = {
    ("max", 0): either(max), ("max", 1): both(max),
    ("min", 0): both(min), ("min", 1): either(min),
}  # fmt: skip
APPLY = {"//": operator.floordiv, "%": operator.mod, "max": max, "min": min}


# ---- sums of products --------------------------------------------------------------------------


def terms_of(x) -> dict:
    """{monomial: coefficient} of a polynomial or a number; () is the monomial of a number."""
    return ({(): +x} if x else {}) if isinstance(x, int) else x.terms


def at(x, sizes: dict) -> int:
    """The number that a polynomial is for these values of its symbols; a number is itself."""
    return evaluate(x, lambda a: a.value(sizes))


def hint_of(x) -> int:
    """The number that a polynomial is for the hints of its symbols."""
    return evaluate(x, lambda a: a.hint)


def evaluate(x, value) -> int:
    if not hasattr(x, "terms"):
        return x
    return sum(c * math.prod(map(value, monomial)) for monomial, c in x.terms.items())


def symbols(x) -> set[str]:
    """The names of the unknown numbers in a polynomial."""
    names = set()
    for a in getattr(x, "atoms", ()):
        names |= symbols(a.over) | symbols(a.under) if type(a) is Composite else {a}
    return names


@slot("dim.bounds")
def bounds(x) -> tuple:
    """The least and the greatest value; None where there is none, or no simple rule finds it."""
    low = high = 0
    for monomial, c in terms_of(x).items():
        least, most = product_bounds(monomial)
        if c < 0:
            least, most = most, least
        low = None if low is None or least is None else low + c * least
        high = None if high is None or most is None else high + c * most
    return low, high


def product_bounds(monomial: tuple) -> tuple:
    """The bounds of a product. Of several factors none may be negative."""
    if len(monomial) == 1:
        return monomial[0].bounds()
    ends = [a.bounds() for a in monomial]
    if any(least is None or least < 0 for least, _ in ends):
        return None, None
    most = [high for _, high in ends]
    return math.prod(low for low, _ in ends), None if None in most else math.prod(most)
