"""Whole numbers in loops: sums of loop variables, with what division and remainder leave of them.

A movement says from where an element comes by arithmetic on its index. Done with these numbers, a
chain of reshapes and transposes folds into one sum of strides: `(i·4 + j) // 4` is `i` for j in
[0, 4).
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from ..core.slots import slot


class Loop(NamedTuple):
    """A loop variable: 0 ≤ name < extent."""

    name: str
    extent: int

    low = 0

    @property
    def high(self) -> int:
        return self.extent - 1

    @property
    def loops(self) -> frozenset:
        return frozenset((self,))

    def __str__(self) -> str:
        return self.name


class Part(NamedTuple):
    """`whole // n` or `whole % n`, where it is no sum."""

    whole: Index
    sign: str
    n: int

    @property
    def low(self) -> int:
        return self.whole.low // self.n if self.sign == "/" else 0

    @property
    def high(self) -> int:
        return self.whole.high // self.n if self.sign == "/" else self.n - 1

    @property
    def loops(self) -> frozenset:
        return self.whole.loops

    def __str__(self) -> str:
        return f"({self.whole}) {self.sign} {self.n}"


class Index:
    """Σ factor · atom + constant; an atom is a `Loop` or a `Part`."""

    __slots__ = ("_bounds", "_key", "constant", "terms")

    def __init__(self, terms: dict, constant: int = 0):
        self.terms = {a: f for a, f in terms.items() if f}
        self.constant = constant
        self._bounds = self._key = None  # most are a step on the way and never asked

    @property
    def low(self) -> int:
        """The least it can be."""
        return (self._bounds or self.bounded())[0]

    @property
    def high(self) -> int:
        """The most it can be."""
        return (self._bounds or self.bounded())[1]

    def bounded(self) -> tuple[int, int]:
        low = high = self.constant
        for a, f in self.terms.items():
            low += f * (a.low if f > 0 else a.high)
            high += f * (a.high if f > 0 else a.low)
        self._bounds = low, high
        return self._bounds

    @property
    def key(self) -> tuple:
        """Equal indices have the same."""
        if self._key is None:
            self._key = frozenset(self.terms.items()), self.constant
        return self._key

    def __eq__(self, other) -> bool:
        return isinstance(other, Index) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def loops(self) -> frozenset:
        """The loop variables it depends on."""
        return frozenset().union(*(a.loops for a in self.terms))

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other) -> Index:
        if not isinstance(other, Index):
            return Index(self.terms, self.constant + other) if other else self
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return rejoined(terms, self.constant + other.constant)

    def __mul__(self, n: int) -> Index:
        return (
            self if n == 1 else Index({a: f * n for a, f in self.terms.items()}, self.constant * n)
        )

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other) -> Index:
        return self + -index(other)

    def __rsub__(self, other) -> Index:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, n: int) -> Index:
        return self.divided(n)[0]

    def __mod__(self, n: int) -> Index:
        return self.divided(n)[1]

    @slot("index.divided")
    def divided(self, n: int) -> tuple[Index, Index]:
        """Quotient and remainder by n: the multiples of n leave at once."""
        if n == 1:
            return self, ZERO
        whole = {a: f // n for a, f in self.terms.items() if f % n == 0}
        rest = Index({a: f for a, f in self.terms.items() if f % n}, self.constant % n)
        whole = Index(whole, self.constant // n)
        turns = rest.low // n
        if turns == rest.high // n:  # the rest stays within one turn
            return whole + turns, rest - turns * n
        common = gcd(n, rest.constant, *rest.terms.values())
        if common > 1:
            terms = {a: f // common for a, f in rest.terms.items()}
            rest, n = Index(terms, rest.constant // common), n // common
        if rest.low < 0:  # C's division rounds to 0: keep it positive
            up = -(rest.low // n)
            rest, whole = rest + up * n, whole - up
        return whole + atom(rest, "/", n), atom(rest, "%", n) * common

    # ---- text --------------------------------------------------------------------------------

    def __str__(self) -> str:
        """C, CUDA and Python."""
        return self.text(str)

    def text(self, name) -> str:
        """The sum, with `name(atom)` for each atom."""
        out = ""
        for a, f in self.terms.items():
            term = name(a) if abs(f) == 1 else f"{name(a)} * {abs(f)}"
            if isinstance(a, Part) and abs(f) == 1 and self.terms.keys() != {a}:
                term = f"({term})"
            elif isinstance(a, Part) and abs(f) != 1:
                term = f"({name(a)}) * {abs(f)}"
            out += (" - " if out else "-") + term if f < 0 else (" + " if out else "") + term
        if self.constant or not out:
            sign = " - " if self.constant < 0 else " + "
            out = f"{out}{sign}{abs(self.constant)}" if out else str(self.constant)
        return out

    __repr__ = __str__


def rejoined(terms: dict, constant: int) -> Index:
    """The sum, where n · (w // n) + w % n is w again: an image whose rows are merged and split."""
    for a, f in terms.items():
        quotient = Part(a.whole, "/", a.n) if isinstance(a, Part) and a.sign == "%" else None
        if quotient and terms.get(quotient) == f * a.n:
            rest = {b: g for b, g in terms.items() if b not in (a, quotient)}
            return Index(rest, constant) + a.whole * f
    return Index(terms, constant)


def atom(whole: Index, sign: str, n: int) -> Index:
    return Index({Part(whole, sign, n): 1})


def index(x) -> Index:
    """A number as an index; an index as it is."""
    return x if isinstance(x, Index) else Index({}, int(x))


ZERO = Index({})


def loop(name: str, extent: int) -> Index:
    """A loop variable; one that runs over a single place is 0."""
    return Index({Loop(name, extent): 1}) if extent != 1 else ZERO
