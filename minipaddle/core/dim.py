"""Sizes that are known only when a program runs: `n`, `2*n + 1`, `(n + 1)//2`.

A `Dim` is a polynomial with whole coefficients in symbols and in quotients of polynomials. What
simplifies to a number is a number: `n - n` is 0, `6*n // (2*n)` is 3. Two Dims are equal if they
are the same polynomial. The order of two Dims is that of their hints, the sizes a symbol was seen
with; a `guarded` Dim (what user code gets from `x.shape`) notes each answer that another size might
change, so that a program is used only where its decisions hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import count

from .errors import teach

Monomial = tuple  # of atoms, sorted by their text; () is the number 1


class Symbol:
    """An unknown size called `name`; `hint` is the size it stands for while something decides."""

    def __init__(self, name: str, hint: int):
        self.name, self.hint = name, hint

    def __str__(self) -> str:
        return self.name

    def value(self, sizes) -> int:
        return sizes[self.name]


class Quotient:
    """`over // under` or `over % under` that does not simplify."""

    def __init__(self, sign: str, over, under):
        self.sign, self.over, self.under = sign, over, under
        self.hint = APPLY[sign](hint_of(over), hint_of(under))

    def __str__(self) -> str:
        over, under = (f"({x})" if isinstance(x, Dim) else x for x in (self.over, self.under))
        return f"({over}{self.sign}{under})"

    def value(self, sizes) -> int:
        return APPLY[self.sign](at(self.over, sizes), at(self.under, sizes))


APPLY = {"//": operator.floordiv, "%": operator.mod}


class Dim:
    """A polynomial: {monomial: coefficient}, monomials being tuples of atoms."""

    __slots__ = ("atoms", "guarded", "terms", "text")

    def __init__(self, terms: dict, atoms: dict, guarded: bool = False):
        self.terms, self.atoms, self.guarded = terms, atoms, guarded
        self.text = written(terms)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other):
        return combined(self, other, lambda a, b: [*a.items(), *b.items()])

    def __mul__(self, other):
        def products(a, b):
            return [(tuple(sorted(k + j)), c * d) for k, c in a.items() for j, d in b.items()]

        return combined(self, other, products)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other if isinstance(other, int | Dim) else NotImplemented

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

    def __pow__(self, n: int):
        out = 1
        for _ in range(n):
            out = self * out
        return out

    # ---- decisions ---------------------------------------------------------------------------

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other):
        if isinstance(other, Dim) and self.text == other.text:
            return True
        if not isinstance(other, int | Dim) or not (self.guarded or guarded(other)):
            return False
        return decided(self, other, "==")

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return decided(self, other, "<")

    def __le__(self, other):
        return decided(self, other, "<=")

    def __gt__(self, other):
        return decided(self, other, ">")

    def __ge__(self, other):
        return decided(self, other, ">=")

    def __bool__(self) -> bool:
        return not decided(self, 0, "==")

    def __index__(self) -> int:
        raise TypeError(
            teach(
                f"the size {self} is known only when the program runs: it is no int yet",
                hint="give InputSpec a number there, or write the loop in a function that "
                "to_static converts",
            )
        )

    __int__ = __index__


COMPARE = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

notes: list[Callable] = []
"""Who wants to know of decisions: functions (left, sign, right, answer). A trace adds itself."""


def decided(a, b, sign: str) -> bool:
    """Whether `a sign b`: for every size if that can be shown, else for the hints."""
    difference = a - b
    if isinstance(difference, int):
        return COMPARE[sign](difference, 0)
    low, high = bounds(difference)
    certain = [COMPARE[sign](x, 0) for x in (low, high) if x is not None]
    if len(certain) == 2 and certain[0] == certain[1] and sign != "==":
        return certain[0]
    if low is not None and low > 0:
        return sign in (">", ">=")
    if high is not None and high < 0:
        return sign in ("<", "<=")
    if (low == 0 and sign in (">=", "<")) or (high == 0 and sign in ("<=", ">")):
        return sign in (">=", "<=")
    answer = COMPARE[sign](hint_of(difference), 0)
    if guarded(a) or guarded(b):
        for note in notes:
            note(a, sign, b, answer)
    return answer


def bounds(dim) -> tuple:
    """The least and the greatest value, sizes being at least 1; None where there is none."""
    low = high = 0
    for monomial, c in dim.terms.items():
        least = 0 if any(isinstance(dim.atoms[a], Quotient) for a in monomial) else 1
        if not monomial:
            low, high = shifted(low, c), shifted(high, c)
        elif c > 0:
            low, high = shifted(low, c * least), None
        else:
            low, high = None, shifted(high, c * least)
    return low, high


def shifted(bound, by: int):
    return None if bound is None else bound + by


# ---- how polynomials are made ------------------------------------------------------------------


def symbol(name: str, hint: int, guarded: bool = False) -> Dim:
    """An unknown size."""
    return Dim({(name,): 1}, {name: Symbol(name, hint)}, guarded)


def unknown() -> Dim:
    """A size that nobody knows before some values are: a builder gives it its name."""
    return symbol(f"?{next(fresh)}", HINT)


def renamed(x, names: dict):
    """The same size with other names for its symbols."""
    if not isinstance(x, Dim) or not names.keys() & symbols(x):
        return x
    out = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            atom = x.atoms[a]
            if isinstance(atom, Quotient):
                over, under = renamed(atom.over, names), renamed(atom.under, names)
                c = c * quotient(over, under, atom.sign)
            else:
                c = c * symbol(names.get(a, a), atom.hint, x.guarded)
        out = out + c
    return out


fresh = count()
HINT = 480
"""Stands for a size nobody has seen: many small numbers divide it."""


def terms_of(x) -> dict:
    return x.terms if isinstance(x, Dim) else {(): int(x)} if x else {}


def guarded(x) -> bool:
    return isinstance(x, Dim) and x.guarded


def combined(a, b, pairs):
    """A Dim or a number from the terms that `pairs` makes of those of a and b."""
    if not isinstance(b, int | Dim):
        return NotImplemented
    terms: dict = {}
    for monomial, c in pairs(terms_of(a), terms_of(b)):
        terms[monomial] = terms.get(monomial, 0) + c
    return simplest(terms, a, b)


def simplest(terms: dict, *parents):
    """A number if nothing unknown is left."""
    terms = {k: c for k, c in terms.items() if c}
    if not terms.keys() - {()}:
        return terms.get((), 0)
    atoms = {k: v for p in parents if isinstance(p, Dim) for k, v in p.atoms.items()}
    used = {a for monomial in terms for a in monomial}
    return Dim(terms, {a: atoms[a] for a in used}, any(map(guarded, parents)))


def quotient(over, under, sign: str):
    if not isinstance(over, int | Dim) or not isinstance(under, int | Dim):
        return NotImplemented
    if under == 0:
        raise ZeroDivisionError(f"{over} {sign} 0")
    whole, rest = divided(over, under)
    if not rest:
        return whole if sign == "//" else 0
    if isinstance(under, int) and under > 0 and isinstance(rest, int) and 0 <= rest < under:
        return whole if sign == "//" else rest
    atom = Quotient(sign, rest, under)
    parents = [p for p in (over, under) if isinstance(p, Dim)]
    left = Dim({(str(atom),): 1}, {str(atom): atom}, any(map(guarded, parents)))
    return whole + left if sign == "//" else left


def divided(over, under) -> tuple:
    """(whole, rest) with over = whole · under + rest, term by term where that comes out even."""
    below = terms_of(under)
    if len(below) != 1:
        return (1, 0) if over == under else (0, over)
    ((monomial, c),) = below.items()
    whole, rest = {}, {}
    for k, coefficient in terms_of(over).items():
        left = without(k, monomial)
        fits = left is not None and coefficient % c == 0
        if fits:
            whole[left] = coefficient // c
        elif not k and not monomial:
            whole[()], rest[()] = divmod(coefficient, c)
        else:
            rest[k] = coefficient
    return simplest(whole, over, under), simplest(rest, over, under)


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


# ---- values --------------------------------------------------------------------------------------


def at(x, sizes: dict) -> int:
    """The number that a Dim is for these sizes of its symbols; a number is itself."""
    if not isinstance(x, Dim):
        return x
    total = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            c *= x.atoms[a].value(sizes)
        total += c
    return total


def hint_of(x) -> int:
    """The number that a Dim is for the hints of its symbols."""
    if not isinstance(x, Dim):
        return x
    total = 0
    for monomial, c in x.terms.items():
        for a in monomial:
            c *= x.atoms[a].hint
        total += c
    return total


def symbols(x) -> set[str]:
    """The names of the unknown sizes in a Dim."""
    if not isinstance(x, Dim):
        return set()
    found = set()
    for name, atom in x.atoms.items():
        quotient = isinstance(atom, Quotient)
        found |= symbols(atom.over) | symbols(atom.under) if quotient else {name}
    return found


def as_guarded(x, yes: bool):
    """The same size, guarded or not."""
    return Dim(x.terms, x.atoms, yes) if isinstance(x, Dim) and x.guarded != yes else x
