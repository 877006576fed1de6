"""Polynomials with whole coefficients, in sizes that are known only when a program runs.

What simplifies to a number is a number: `n - n` is 0, `6*n // (2*n)` is 3. What does not come out
even is an atom of its own: `(n + 1)//2`, `max(n + -2, 0)`. `Dim` (in `dim.py`) adds what decides.
"""

from __future__ import annotations

import math
import operator
import re

from . import dtype as dt
from .dispatch import current, note_refusal
from .errors import teach
from .slots import slot

Monomial = tuple  # of atoms, sorted by their text; () is the number 1


class Symbol:
    """An unknown size called `name`; `hint` is the size it stands for while something decides."""

    def __init__(self, name: str, hint: int):
        self.name, self.hint = name, hint

    def __str__(self) -> str:
        return self.name

    def value(self, sizes):
        return sizes[self.name]

    def bounds(self) -> tuple:
        return (0 if UNSEEN.match(self.name) else 1), None


UNSEEN = re.compile(r"[?u]\d+$")
"""Names of sizes that values decide (`u0`): they may be 0, others are at least 1."""


class Joined:
    """`over // under`, `over % under`, `max(over, under)` or the min, where it stays as it is."""

    def __init__(self, sign: str, over, under):
        self.sign, self.over, self.under = sign, over, under
        self.hint = APPLY[sign](hint_of(over), hint_of(under))

    def __str__(self) -> str:
        if self.sign in ("max", "min"):
            return f"{self.sign}({self.over}, {self.under})"
        over, under = (
            f"({x})" if isinstance(x, Polynomial) else x for x in (self.over, self.under)
        )
        return f"({over}{self.sign}{under})"

    def value(self, sizes):
        return JOIN[self.sign](at(self.over, sizes), at(self.under, sizes))

    def bounds(self) -> tuple:
        (a, b), (c, d) = bounds(self.over), bounds(self.under)
        if self.sign in ("max", "min"):
            return BOUND[self.sign, 0](a, c), BOUND[self.sign, 1](b, d)
        if a is None or c is None or min(a, c) < 0:
            return None, None
        if self.sign == "%":
            return 0, None if d is None else d - 1
        return (0 if d is None else a // max(d, 1)), (None if b is None else b // max(c, 1))


def either(fold):
    """The bound that one of two gives, where one is enough."""
    return lambda *ends: fold((x for x in ends if x is not None), default=None)


def both(fold):
    """The bound that two give together."""
    return lambda *ends: None if None in ends else fold(ends)


BOUND = {
    ("max", 0): either(max), ("max", 1): both(max),
    ("min", 0): both(min), ("min", 1): either(min),
}  # fmt: skip
APPLY = {"//": operator.floordiv, "%": operator.mod, "max": max, "min": min}


class Polynomial:
    """{monomial: coefficient}, monomials being tuples of names of `atoms`."""

    __slots__ = ("atoms", "terms", "text")

    def __init__(self, terms: dict, atoms: dict):
        self.terms, self.atoms, self.text = terms, atoms, written(terms)

    def like(self, terms: dict, atoms: dict, parents) -> Polynomial:
        """Another one, made of `parents`."""
        return type(self)(terms, atoms)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other):
        if type(other) is float:
            return self.as_float() + other
        return combined(self, other, plus)

    def __mul__(self, other):
        if type(other) is float:
            return self.as_float() * other
        return combined(self, other, times)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other if isinstance(other, int | float | Polynomial) else NotImplemented

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other):
        return quotient(self, other, "//")

    def __rfloordiv__(self, other):
        return quotient(other, self, "//")

    def __mod__(self, other):
        return quotient(self, other, "%")

    def __rmod__(self, other):
        return quotient(other, self, "%")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __truediv__(self, other):
        return self.as_float() / other

    def __rtruediv__(self, other):
        return other / self.as_float()

    def __pow__(self, n):
        if not isinstance(n, int) or n < 0:
            return self.as_float() ** n
        out = 1
        for _ in range(n):
            out = self * out
        return out

    def __pos__(self):
        return self

    def __abs__(self):
        return larger(self, -self)

    def as_float(self):
        """What is no whole number any more is a tensor of the program."""
        if not current.top.tracing:
            raise self.unknown_yet()
        return current.top.constant(self, dt.default())

    def unknown_yet(self) -> TypeError:
        message = teach(
            f"the size {self} is known only when the program runs: it is no number yet",
            hint="give InputSpec a number there, or write the loop in a function that to_static "
            "converts",
        )
        return note_refusal(TypeError(message))


MOST_TERMS, HIGHEST_DEGREE = 1000, 64
"""No real size needs more; a product of sums could have millions."""


def too_large() -> Exception:
    message = f"a size of more than {MOST_TERMS} terms, or of a degree above {HIGHEST_DEGREE}"
    return note_refusal(OverflowError(message))


def terms_of(x) -> dict:
    return x.terms if isinstance(x, Polynomial) else {(): int(x)} if x else {}


def combined(a, b, rule):
    """A Polynomial or a number from the terms that `rule` makes of those of a and b."""
    if not isinstance(b, int | Polynomial):
        return NotImplemented
    ours, theirs = terms_of(a), terms_of(b)
    if rule is times and len(ours) * len(theirs) > MOST_TERMS:
        raise too_large()
    return simplest(rule(ours, theirs), a, b)


def plus(a: dict, b: dict) -> dict:
    """The terms of a sum."""
    return collected([*a.items(), *b.items()])


@slot("dim.times")
def times(a: dict, b: dict) -> dict:
    """The terms of a product: each of a with each of b."""
    return collected((tuple(sorted(k + j)), c * d) for k, c in a.items() for j, d in b.items())


def collected(pairs) -> dict:
    """Terms, like ones added up."""
    terms: dict = {}
    for monomial, c in pairs:
        terms[monomial] = terms.get(monomial, 0) + c
    return terms


def simplest(terms: dict, *parents):
    """A number if nothing unknown is left."""
    terms = {k: c for k, c in terms.items() if c}
    if not terms.keys() - {()}:
        return terms.get((), 0)
    if len(terms) > MOST_TERMS or max(map(len, terms)) > HIGHEST_DEGREE:
        raise too_large()
    atoms = {k: v for p in parents if isinstance(p, Polynomial) for k, v in p.atoms.items()}
    used = {a for monomial in terms for a in monomial}
    return first(parents).like(terms, {a: atoms[a] for a in used}, parents)


def first(parents) -> Polynomial:
    return next(p for p in parents if isinstance(p, Polynomial))


def quotient(over, under, sign: str):
    if not isinstance(over, int | Polynomial) or not isinstance(under, int | Polynomial):
        return NotImplemented
    if isinstance(under, int) and under == 0:
        raise ZeroDivisionError(f"{over} {sign} 0")
    parts = divided(terms_of(over), terms_of(under))
    whole, rest = (simplest(terms, over, under) for terms in parts)
    if isinstance(rest, int) and (rest == 0 or (isinstance(under, int) and 0 <= rest < under)):
        return whole if sign == "//" else rest
    left = atom_of(Joined(sign, rest, under), over, under)
    return whole + left if sign == "//" else left


def atom_of(atom: Joined, *parents) -> Polynomial:
    return first(parents).like({(str(atom),): 1}, {str(atom): atom}, parents)


@slot("dim.divided")
def divided(over: dict, under: dict) -> tuple[dict, dict]:
    """(whole, rest) with over = whole · under + rest, term by term where that comes out even."""
    if len(under) != 1:
        return ({(): 1}, {}) if over == under else ({}, over)
    ((monomial, c),) = under.items()
    whole, rest = {}, {}
    for k, coefficient in over.items():
        left = without(k, monomial)
        fits = left is not None and coefficient % c == 0
        if fits:
            whole[left] = coefficient // c
        elif not k and not monomial:
            whole[()], rest[()] = divmod(coefficient, c)
        else:
            rest[k] = coefficient
    return whole, rest


def without(atoms: tuple, taken: tuple):
    """`atoms` with those of `taken` removed; None if one of them is not there."""
    left = list(atoms)
    for a in taken:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def written(terms: dict) -> str:
    """`2*n + 1`: monomials by degree and name, the number last."""
    parts = []
    for monomial, c in sorted(terms.items(), key=lambda t: (-len(t[0]), t[0])):
        factors = [*([str(c)] if c != 1 or not monomial else []), *monomial]
        parts.append("*".join(factors))
    return " + ".join(parts)


def renamed(x, names: dict):
    """The same size with other names (or sizes) for its symbols."""
    if not isinstance(x, Polynomial) or not names.keys() & symbols(x):
        return x
    out = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            atom = x.atoms[a]
            if isinstance(atom, Joined):
                over, under = renamed(atom.over, names), renamed(atom.under, names)
                c = c * JOIN[atom.sign](over, under)
            else:
                new = names.get(a, a)
                if isinstance(new, str):
                    new = x.like({(new,): 1}, {new: Symbol(new, atom.hint)}, (x,))
                c = c * new
        out = out + c
    return out


# ---- bounds -----------------------------------------------------------------------------------


@slot("dim.bounds")
def bounds(x) -> tuple:
    """The least and the greatest value of a size; None where there is none, or it is not seen."""
    low = high = 0
    for monomial, c in terms_of(x).items():
        ends = [x.atoms[a].bounds() for a in monomial]
        if any(least is None or least < 0 for least, _ in ends) and len(ends) > 1:
            return None, None
        least, most = product_of(e[0] for e in ends), product_of(e[1] for e in ends)
        least, most = (None if e is None else c * e for e in (least, most))
        least, most = (most, least) if c < 0 else (least, most)
        low = None if None in (low, least) else low + least
        high = None if None in (high, most) else high + most
    return low, high


def product_of(ends):
    """The product of bounds; None if one of them is missing."""
    ends = list(ends)
    return None if None in ends else math.prod(ends)


def larger(a, b):
    """`max(a, b)`, for every size."""
    return joined("max", a, b)


def smaller(a, b):
    """`min(a, b)`, for every size."""
    return joined("min", a, b)


def joined(sign: str, a, b):
    difference = a - b
    low, high = (difference,) * 2 if isinstance(difference, int) else bounds(difference)
    if low is not None and low >= 0:
        return a if sign == "max" else b
    if high is not None and high <= 0:
        return b if sign == "max" else a
    return atom_of(Joined(sign, *sorted((a, b), key=str, reverse=True)), a, b)


JOIN = {"//": operator.floordiv, "%": operator.mod, "max": larger, "min": smaller}


# ---- values --------------------------------------------------------------------------------------


def at(x, sizes: dict) -> int:
    """The number that a Polynomial is for these sizes of its symbols; a number is itself."""
    if not isinstance(x, Polynomial):
        return x
    total = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            c *= x.atoms[a].value(sizes)
        total += c
    return total


def hint_of(x) -> int:
    """The number that a Polynomial is for the hints of its symbols."""
    if not isinstance(x, Polynomial):
        return x
    total = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            c *= x.atoms[a].hint
        total += c
    return total


def symbols(x) -> set[str]:
    """The names of the unknown sizes in a Polynomial."""
    if not isinstance(x, Polynomial):
        return set()
    found = set()
    for name, atom in x.atoms.items():
        inside = isinstance(atom, Joined)
        found |= symbols(atom.over) | symbols(atom.under) if inside else {name}
    return found
