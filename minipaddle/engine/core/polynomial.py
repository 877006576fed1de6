"""Polynomials with whole coefficients: sizes that only a run knows, and positions in loops.

A polynomial is a sum of products of symbols. `Dim` (in `dim.py`) is one that can be compared; the
index of an element in a loop nest is a plain one. With such indices a chain of reshapes and
transposes folds into one sum of strides: `(4*i + j)//4` is `i` for j in [0, 4).
"""

from __future__ import annotations

import math
import operator

from .dispatch import note_refusal
from .errors import teach
from .slots import slot
from .symbols import Composite, Loop, Symbol, bounds, composite_text, symbols, terms_of

LOOPS = operator.attrgetter("loops")


class Polynomial:
    """{monomial: coefficient}; a monomial is a sorted tuple of symbols, () that of a number."""

    __slots__ = ("_ends", "_hash", "_text", "terms")

    def __init__(self, terms: dict):
        self.terms = {k: c for k, c in terms.items() if c} if 0 in terms.values() else terms
        self._ends = self._hash = self._text = None  # computed when they are needed

    def like(self, terms: dict, *parents) -> Polynomial:
        """A polynomial of this kind with other terms, computed from this one and `parents`."""
        return Polynomial(terms)

    def __eq__(self, other) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = format_terms(self.terms)
        return self._text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    @property
    def ends(self) -> tuple:
        """Its bounds, computed once."""
        if self._ends is None:
            self._ends = bounds(self)
        return self._ends

    @property
    def low(self):
        """The least value that it can have."""
        return self.ends[0]

    @property
    def high(self):
        """The greatest value that it can have."""
        return self.ends[1]

    @property
    def atoms(self) -> set[Symbol]:
        """The symbols in its terms."""
        return set().union(*self.terms)

    @property
    def loops(self) -> frozenset:
        """The loop variables it depends on."""
        return frozenset().union(*map(LOOPS, set().union(*self.terms)))

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other):
        if type(other) is float:
            return self.as_float() + other
        if not isinstance(other, NUMBERS):
            return NotImplemented
        theirs = terms_of(other) if isinstance(other, int) else other.terms
        return self.like(plus(self.terms, theirs), other) if theirs else self

    def __mul__(self, other):
        if type(other) is int:
            return self.like(scale(self.terms, other)) if other != 1 else self
        if type(other) is float:
            return self.as_float() * other
        if not isinstance(other, NUMBERS):
            return NotImplemented
        ours, theirs = self.terms, terms_of(other)
        if len(ours) * len(theirs) > MOST_TERMS:
            raise too_large()
        return self.like(times(ours, theirs), other)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other if isinstance(other, int | float | Polynomial) else NotImplemented

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other):
        return divide(self, other)[0]

    def __rfloordiv__(self, other):
        return divide(other, self)[0]

    def __mod__(self, other):
        return divide(self, other)[1]

    def __rmod__(self, other):
        return divide(other, self)[1]

    def __divmod__(self, other):
        return divide(self, other)

    def __rdivmod__(self, other):
        return divide(other, self)

    @slot("index.divide_by")
    def divide_by(self, n: int) -> tuple:
        """(quotient, remainder) by n ≥ 1 of a polynomial whose bounds are known."""
        quotient, rest = (self.like(terms) for terms in split(self.terms, {(): n}))
        low, high = bounds(rest)
        if low // n == high // n:  # the rest stays within one multiple of n
            return quotient + low // n, rest - low // n * n
        common = math.gcd(n, *rest.terms.values())
        if common > 1:
            rest = self.like({k: c // common for k, c in rest.terms.items()})
            n, low = n // common, low // common
        if low < 0:  # C's division rounds to 0: keep it positive
            up = -(low // n)
            rest, quotient = rest + up * n, quotient - up
        return quotient + composite("//", rest, n), composite("%", rest, n) * common

    def no_number_error(self) -> TypeError:
        message = teach(
            f"the size {self} is known only when the program runs: it is no number yet",
            hint="give InputSpec a number there, or write the loop in a function that to_static "
            "converts",
        )
        return note_refusal(TypeError(message))


NUMBERS = (int, Polynomial)

MOST_TERMS, HIGHEST_DEGREE = 1000, 64
"""No real size needs more; a product of sums could have millions."""


def too_large() -> Exception:
    message = f"a size of more than {MOST_TERMS} terms, or of a degree above {HIGHEST_DEGREE}"
    return note_refusal(OverflowError(message))


def as_polynomial(x) -> Polynomial:
    """A number or a symbol as a plain polynomial; a polynomial as it is."""
    if isinstance(x, Polynomial):
        return x
    return Polynomial({(x,): 1} if isinstance(x, Symbol) else {(): +x})


ZERO = as_polynomial(0)


def loop(name: str, extent: int) -> Polynomial:
    """A loop variable; one with a single iteration is 0."""
    return as_polynomial(Loop(name, extent)) if extent != 1 else ZERO


def scale(terms: dict, n: int) -> dict:
    return {k: c * n for k, c in terms.items()}


def plus(a: dict, b: dict) -> dict:
    """The terms of a sum, where n·(w // n) + w % n is w again: rows that are merged and split."""
    terms = dict(a)
    for monomial, c in b.items():
        terms[monomial] = terms.get(monomial, 0) + c
    for monomial, c in terms.items():
        atom = monomial[0] if len(monomial) == 1 else None
        if type(atom) is Composite and atom.sign == "%" and isinstance(atom.under, int):
            quotient = (composite_text("//", atom.over, atom.under),)
            if c and terms.get(quotient) == c * atom.under:
                rest = {k: d for k, d in terms.items() if k not in (monomial, quotient)}
                return plus(rest, scale(atom.over.terms, c))
    return terms


@slot("dim.times")
def times(a: dict, b: dict) -> dict:
    """The terms of a product: each of a with each of b."""
    terms: dict = {}
    for j, c in a.items():
        for k, d in b.items():
            monomial = tuple(sorted(j + k))
            terms[monomial] = terms.get(monomial, 0) + c * d
    return terms


def divide(over, under) -> tuple:
    """(over // under, over % under). What does not come out even is a symbol of its own."""
    if not isinstance(over, NUMBERS) or not isinstance(under, NUMBERS):
        return NotImplemented, NotImplemented
    if isinstance(under, int):
        if not under:
            raise ZeroDivisionError(f"{over} // 0")
        if under > 0 and None not in over.ends:
            return over.divide_by(under)
    like = (over if isinstance(over, Polynomial) else under).like
    parts = split(terms_of(over), terms_of(under))
    quotient, rest = (like(terms, over, under) for terms in parts)
    if isinstance(rest, int) and (rest == 0 or (isinstance(under, int) and 0 <= rest < under)):
        return quotient, rest
    return quotient + composite("//", rest, under), composite("%", rest, under)


@slot("dim.divided")
def split(over: dict, under: dict) -> tuple[dict, dict]:
    """(quotient, rest) with over = quotient · under + rest, by terms where that is exact."""
    if len(under) != 1:
        return ({(): 1}, {}) if over == under else ({}, over)
    ((monomial, c),) = under.items()
    quotient, rest = {}, {}
    for k, coefficient in over.items():
        left = remove_symbols(k, monomial) if monomial else k
        if left is not None and coefficient % c == 0:
            quotient[left] = coefficient // c
        elif not k and not monomial:
            quotient[()], rest[()] = divmod(coefficient, c)
        else:
            rest[k] = coefficient
    return quotient, rest


def remove_symbols(symbols: tuple, taken: tuple):
    """`symbols` with those of `taken` removed; None if one of them is not there."""
    left = list(symbols)
    for a in taken:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def composite(sign: str, over, under) -> Polynomial:
    like, other = (over, under) if isinstance(over, Polynomial) else (under, over)
    return like.like({(Composite(sign, over, under),): 1}, other)


def format_terms(terms: dict) -> str:
    """`2*n - 1`: monomials by degree and name, the number last."""
    text = ""
    for monomial, c in sorted(terms.items(), key=lambda t: (-len(t[0]), t[0])):
        number = [str(abs(c))] if abs(c) != 1 or not monomial else []
        minus, sign = ("-", " - ") if c < 0 else ("", " + ")
        text += (sign if text else minus) + "*".join([*number, *monomial])
    return text or "0"


def rename(x, names: dict):
    """The same polynomial with other names, sizes or loops for its symbols."""
    if not isinstance(x, Polynomial) or not names.keys() & symbols(x):
        return x
    out = x.like({})
    for monomial, c in x.terms.items():
        for a in monomial:
            c = c * rename_symbol(a, names, x)
        out = out + c
    return out


def rename_symbol(a: Symbol, names: dict, x: Polynomial):
    """The polynomial or number that replaces a symbol of x."""
    if type(a) is Composite:
        return JOIN[a.sign](rename(a.over, names), rename(a.under, names))
    new = names.get(a, a)
    if type(new) is str:
        new = Symbol(new, a.hint)
    return x.like({(new,): 1}) if isinstance(new, Symbol) else new


def larger(a, b):
    """`max(a, b)`, for every size."""
    return extreme("max", a, b)


def smaller(a, b):
    """`min(a, b)`, for every size."""
    return extreme("min", a, b)


def extreme(sign: str, a, b):
    low, high = bounds(a - b)
    if low is not None and low >= 0:
        return a if sign == "max" else b
    if high is not None and high <= 0:
        return b if sign == "max" else a
    return composite(sign, *sorted((a, b), key=str, reverse=True))


JOIN = {"//": operator.floordiv, "%": operator.mod, "max": larger, "min": smaller}


def ravel(i, shape):
    """The row-major position of index `i` in an array of `shape`."""
    flat = 0
    for k, n in zip(i, shape, strict=True):
        flat = flat * n + k
    return flat


def unravel(flat, shape):
    """The index at row-major position `flat` in an array of `shape`."""
    out = []
    for n in reversed(shape):
        flat, k = divmod(flat, n)
        out.append(k)
    return out[::-1]
