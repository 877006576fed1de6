"""Sizes that are known only when a program runs: `n`, `2*n + 1`, `(n + 1)//2`, `max(n + -2, 0)`.

A `Dim` is a polynomial with whole coefficients in symbols, in quotients of polynomials and in the
larger or smaller of two. What simplifies to a number is a number: `n - n` is 0, `6*n // (2*n)` is
3. Two Dims are equal if they are the same polynomial. The order of two Dims is that of their hints,
the sizes a symbol was seen with; a `guarded` Dim (what user code gets from `x.shape`) notes each
answer that another size might change, so that a program is used only where its decisions hold.
Two sizes that must be equal, or an operator makes no sense, are taken to be (`same`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import contextmanager
from itertools import count

from .polynomial import (
    UNSEEN,
    Polynomial,
    Symbol,
    at,
    bounds,
    hint_of,
    larger,
    renamed,
    smaller,
    symbols,
    terms_of,
)
from .slots import slot

__all__ = [
    "COMPARE", "HINT", "UNSEEN", "Dim", "Matching", "as_guarded", "assume", "assumed", "assuming",
    "at", "bounds", "decided", "hint_of", "hinted", "is_one", "is_one_beside", "larger", "never",
    "notes", "renamed", "same", "same_shape", "settled", "smaller", "suppose", "symbol", "symbols",
    "unknown",
]  # fmt: skip


class Dim(Polynomial):
    """A size: a polynomial that can be compared. A guarded one notes what is decided by it."""

    __slots__ = ("guarded",)

    def __init__(self, terms: dict, atoms: dict, guarded: bool = False):
        super().__init__(terms, atoms)
        self.guarded = guarded

    def like(self, terms: dict, atoms: dict, parents) -> Dim:
        return Dim(terms, atoms, any(map(guarded, parents)))

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other):
        if isinstance(other, Dim) and self.text == other.text:
            return True
        if isinstance(other, int | float | Dim) and (self.guarded or guarded(other)):
            return decided(self, other, "==")
        if not isinstance(other, int | Dim):
            return NotImplemented
        if assumed and not terms_of(settled(self - other)):
            return True
        return Matching.on and not (isinstance(other, int) and other < 2) and same(self, other)

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

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

    def __format__(self, spec: str) -> str:
        return format(self.text, spec.rstrip("d"))

    def __index__(self) -> int:
        raise self.unknown_yet()

    __int__ = __float__ = __index__


# ---- sizes by name -----------------------------------------------------------------------------


def symbol(name: str, hint: int, guarded: bool = False) -> Dim:
    """An unknown size."""
    return Dim({(name,): 1}, {name: Symbol(name, hint)}, guarded)


def unknown() -> Dim:
    """A size that nobody knows before some values are: a builder gives it its name."""
    return symbol(f"?{next(fresh)}", HINT)


fresh = count()


class Unhinted(int):
    """The hint of a size that nobody has seen."""


HINT = Unhinted(480)
"""Stands for a size nobody has seen: many small numbers divide it."""


def unhinted(x) -> bool:
    """Does a size hold one that nobody has seen?"""
    return any(
        type(a.hint) is Unhinted if type(a) is Symbol else unhinted(a.over) or unhinted(a.under)
        for a in getattr(x, "atoms", {}).values()
    )


def hinted(x, sizes: dict):
    """The same size, its symbols having these sizes as hints."""
    return renamed(x, {name: symbol(name, hint) for name, hint in sizes.items()})


def guarded(x) -> bool:
    return isinstance(x, Dim) and x.guarded


def as_guarded(x, yes: bool):
    """The same size, guarded or not."""
    return Dim(x.terms, x.atoms, yes) if isinstance(x, Dim) and x.guarded != yes else x


# ---- decisions ---------------------------------------------------------------------------------

COMPARE = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

notes: list[Callable] = []
"""Who wants to know of decisions: functions (left, sign, right, answer). A trace adds itself."""


assumed: dict[str, int | Dim] = {}
"""Sizes that the program being traced takes to be other sizes; see `same`."""


facts: dict[tuple, bool] = {}
"""What was decided for the program being traced: (difference, sign) -> answer."""


@contextmanager
def assuming(guards=()):
    """Sizes are taken to be what these guards say, and what the block goes on to assume."""
    global assumed, facts
    before = assumed, facts
    assumed, facts = dict(assumed), dict(facts)
    try:
        for left, sign, right, answer in guards:
            learn(left, sign, right, answer)
        yield
    finally:
        assumed, facts = before


def learn(a, sign: str, b, answer: bool) -> None:
    """From now on `a sign b` is answered so."""
    facts[str(a - b), sign] = answer
    if sign == "==" and answer:
        facts[str(b - a), sign] = answer
        assume(a, b)


def assume(a, b) -> None:
    """From now on two sizes are the same: one of their symbols is what follows from that."""
    difference = settled(as_guarded(a - b, False))
    for name in sorted(symbols(difference), key=lambda name: (not UNSEEN.match(name), name)):
        c = terms_of(difference).get((name,))
        rest = difference - (c or 0) * symbol(name, 1)
        if c and name not in symbols(rest) and not any(k % c for k in terms_of(rest).values()):
            found = {name: rest // -c}
            for other, x in assumed.items():
                assumed[other] = renamed(x, found)
            assumed.update(found)
            return


def settled(x):
    """The size in terms of those that are not taken to be others."""
    return renamed(x, assumed) if assumed else x


def same(a, b) -> bool:
    """Are two sizes equal that must be? If only the hints say so, the program relies on it; so it
    does where nobody has seen one of them: it fails in a run in which they differ.
    """
    if isinstance(a, Dim) or isinstance(b, Dim):
        return decided(as_guarded(a, True), as_guarded(b, True), "==", must=True)
    return a == b


class Matching:
    """While an operator's shape rule is asked, `==` of two sizes means `same`, but against 0 and 1.

    >>> from minipaddle.engine.core.dim import Matching, symbol
    >>> n = symbol("n", hint=3)
    >>> with Matching():
    ...     (2, n) == (2, 3), n == 1
    (True, False)
    """

    on = False

    def __enter__(self):
        self.before, Matching.on = Matching.on, True

    def __exit__(self, *exc):
        Matching.on = self.before


def is_one(n) -> bool:
    """Is a size 1? For an open one it is its hint that says so, and the program relies on it."""
    return bool(as_guarded(n, True) == 1)


def is_one_beside(n, other) -> bool:
    """Is a size that was seen 1, the `other` being one that nobody has seen?"""
    return unhinted(other) and isinstance(n, Dim) and not unhinted(n) and is_one(n)


def same_shape(a, b) -> bool:
    """Are two shapes equal that must be?"""
    return len(a) == len(b) and all(map(same, a, b))


def decided(a, b, sign: str, must: bool = False):
    """Whether `a sign b`: for every size if that can be shown, else for the hints; where one of
    these is none, what `must` be is.
    """
    if isinstance(b, float):
        if not math.isfinite(b) or (sign == "==" and not b.is_integer()):
            return COMPARE[sign](hint_of(a), b)
        b = math.ceil(b) if sign in ("<", ">=") else math.floor(b)
    if not isinstance(b, int | Dim):
        return NotImplemented
    difference = settled(a - b)
    if isinstance(difference, int):
        return COMPARE[sign](difference, 0)
    answer = certain(*bounds(difference), sign)
    answer = facts.get((str(a - b), sign)) if answer is None else answer
    if answer is not None:
        return answer
    answer = COMPARE[sign](hint_of(difference), 0) or (must and unhinted(difference))
    note_all(a, sign, b, answer)
    return answer


def note_all(a, sign: str, b, answer: bool) -> None:
    """What was decided holds from now on, and whoever traces is told."""
    if notes:
        learn(a, sign, b, answer)
    for note in notes:
        note(a, sign, b, answer)


def never(a, sign: str, b) -> bool:
    """Is `a sign b` wrong for every size? What may be right is left to the run."""
    difference = settled(a - b)
    if isinstance(difference, int):
        return not COMPARE[sign](difference, 0)
    return certain(*bounds(difference), sign) is False


def suppose(a, sign: str, b) -> None:
    """Take `a sign b` for granted, whatever the hints say; the program fails where it is not so."""
    difference = settled(a - b)
    if isinstance(difference, int) or certain(*bounds(difference), sign) is None:
        note_all(a, sign, b, True)


@slot("dim.certain")
def certain(low, high, sign: str) -> bool | None:
    """Whether every number between the bounds is `sign` 0, none of them is (False), or some."""
    if sign in (">", ">="):
        low, high = (None if x is None else -x for x in (high, low))
        sign = sign.replace(">", "<")
    if sign == "==":
        outside = (low is not None and low > 0) or (high is not None and high < 0)
        return False if outside else None
    if high is not None and COMPARE[sign](high, 0):
        return True
    return False if low is not None and not COMPARE[sign](low, 0) else None
