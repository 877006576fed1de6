"""Sizes that are known only when a program runs: `n`, `2*n + 1`, `(n + 1)//2`, `max(n - 2, 0)`.

A `Dim` is a polynomial that can be compared. Where nothing unknown is left it becomes a number:
`n - n` is 0, `6*n // (2*n)` is 3. Two Dims are equal if they are the same polynomial. The order of
two Dims is that of their hints, the sizes with which a symbol was seen. A `guarded` Dim (user code
gets it from `x.shape`) notes each answer that could be another one for other sizes; so a program
serves only where its decisions hold. Where an operator makes sense only for equal sizes, the
program assumes that they are equal (`same`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import count

from .dispatch import current, match_sizes, setting
from .polynomial import HIGHEST_DEGREE, MOST_TERMS, Polynomial, larger, rename, smaller, too_large
from .slots import slot
from .symbols import UNSEEN, Composite, Symbol, at, bounds, hint_of, symbols, terms_of

__all__ = [
    "COMPARE", "HINT", "UNSEEN", "Assumptions", "Dim", "apply_equalities", "as_guarded",
    "assuming", "at", "bounds", "create_unknown", "decide", "hint_of", "is_one", "is_one_beside",
    "larger", "match_sizes", "never", "rename", "replace_hints", "same", "same_shape", "smaller",
    "suppose", "symbol", "symbols",
]  # fmt: skip


class Dim(Polynomial):
    """A size: a polynomial that can be compared. A guarded one notes its decisions."""

    __slots__ = ("guarded",)

    def __init__(self, terms: dict, guarded: bool = False):
        super().__init__(terms)
        self.guarded = guarded

    def like(self, terms: dict, *parents) -> Dim | int:
        """A number if nothing unknown is left, else a size."""
        size = Dim(terms, self.guarded or any(map(guarded, parents)))
        if not size.terms.keys() - {()}:
            return size.terms.get((), 0)
        if len(size.terms) > MOST_TERMS or max(map(len, size.terms)) > HIGHEST_DEGREE:
            raise too_large()
        return size

    __hash__ = Polynomial.__hash__

    def __eq__(self, other):
        if isinstance(other, Dim) and self.terms == other.terms:
            return True
        if isinstance(other, int | float | Dim) and (self.guarded or guarded(other)):
            return decide(self, other, "==")
        if not isinstance(other, int | Dim):
            return NotImplemented
        if equalities() and not terms_of(apply_equalities(self - other)):
            return True
        if not current.top.matching or (isinstance(other, int) and other < 2):
            return False
        return same(self, other)

    def __lt__(self, other):
        return decide(self, other, "<")

    def __le__(self, other):
        return decide(self, other, "<=")

    def __gt__(self, other):
        return decide(self, other, ">")

    def __ge__(self, other):
        return decide(self, other, ">=")

    def __bool__(self) -> bool:
        return not decide(self, 0, "==")

    def __format__(self, spec: str) -> str:
        return format(self.text, spec.rstrip("d"))

    def __index__(self) -> int:
        raise self.no_number_error()

    __int__ = __float__ = __index__


# ---- sizes by name -----------------------------------------------------------------------------


def symbol(name: str, hint: int, guarded: bool = False) -> Dim:
    """An unknown size."""
    return Dim({(Symbol(name, hint),): 1}, guarded)


def create_unknown() -> Dim:
    """A size that only values decide: a builder gives it its name."""
    return symbol(f"?{next(fresh)}", HINT)


fresh = count()


class Unhinted(int):
    """The hint of a size that nobody has seen."""


HINT = Unhinted(480)
"""The hint of a size that nobody has seen: many small numbers divide it."""


def has_unseen_hint(x) -> bool:
    """Whether a size depends on one that nobody has seen."""
    for a in getattr(x, "atoms", ()):
        operands = (a.over, a.under) if type(a) is Composite else ()
        if type(a.hint) is Unhinted or any(map(has_unseen_hint, operands)):
            return True
    return False


def replace_hints(x, sizes: dict):
    """The same size, with these sizes as the hints of its symbols."""
    return rename(x, {name: symbol(name, hint) for name, hint in sizes.items()})


def guarded(x) -> bool:
    return isinstance(x, Dim) and x.guarded


def as_guarded(x, yes: bool):
    """The same size, guarded or not."""
    return Dim(x.terms, yes) if isinstance(x, Dim) and x.guarded != yes else x


# ---- decisions ---------------------------------------------------------------------------------

COMPARE = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITE = {"<": ">=", ">=": "<", "<=": ">", ">": "<="}


class Assumptions:
    """The facts about sizes that a program relies on.

    They begin with the assumptions of an `outer` block and the `guards` of a program. Each further
    decision is reported to `note(left, sign, right, answer)`.
    """

    def __init__(self, guards=(), note: Callable | None = None, outer: Assumptions | None = None):
        self.equal: dict[str, int | Dim] = dict(outer.equal) if outer else {}  # size -> other size
        self.answers: dict[tuple, bool] = dict(outer.answers) if outer else {}  # (a - b, sign)
        self.note = note or (outer.note if outer else None)
        for left, sign, right, answer in guards:
            self.learn(left, sign, right, answer)

    def learn(self, a, sign: str, b, answer: bool) -> None:
        """From now on the answer to `a sign b` is this one."""
        self.answers[str(a - b), sign] = answer
        self.answers[str(a - b), OPPOSITE.get(sign)] = not answer
        if sign == "==" and answer:
            self.answers[str(b - a), sign] = answer
            self.equate(a, b)

    def equate(self, a, b) -> None:
        """From now on two sizes are the same: solve the equation for one of their symbols."""
        difference = rename(as_guarded(a - b, False), self.equal)
        for name in sorted(symbols(difference), key=lambda name: (not UNSEEN.match(name), name)):
            c = terms_of(difference).get((name,))
            rest = difference - (c or 0) * symbol(name, 1)
            if c and name not in symbols(rest) and not any(k % c for k in terms_of(rest).values()):
                solution = {name: rest // -c}
                self.equal = {k: rename(x, solution) for k, x in self.equal.items()} | solution
                return


def assuming(guards=(), note: Callable | None = None):
    """Within the block the guards hold, and each decision that is made there."""
    top = current.top
    return setting(top, assumptions=Assumptions(guards, note, top.assumptions))


def equalities() -> dict:
    """{name of a symbol: the size that it is assumed to equal}."""
    assumptions = current.top.assumptions
    return assumptions.equal if assumptions else {}


def apply_equalities(x):
    """The size with each symbol replaced that is assumed to equal another size."""
    equal = equalities()
    return rename(x, equal) if equal else x


def same(a, b) -> bool:
    """Whether two sizes are equal, where anything else would be an error.

    If only the hints say so, or if nobody has seen one of them, the program relies on it and fails
    in a run in which they differ.
    """
    if isinstance(a, Dim) or isinstance(b, Dim):
        return decide(as_guarded(a, True), as_guarded(b, True), "==", must=True)
    return a == b


def is_one(n) -> bool:
    """Whether a size is 1. For an open size the hint decides, and the program relies on it."""
    return bool(as_guarded(n, True) == 1)


def is_one_beside(n, other) -> bool:
    """Whether a size that was seen is 1, beside an `other` that nobody has seen."""
    return has_unseen_hint(other) and isinstance(n, Dim) and not has_unseen_hint(n) and is_one(n)


def same_shape(a, b) -> bool:
    """Whether two shapes are equal, where anything else would be an error."""
    return len(a) == len(b) and all(map(same, a, b))


def decide(a, b, sign: str, must: bool = False):
    """Whether `a sign b` holds: for every size if that can be shown, else for the hints.

    With `must` it also holds where a size has no hint.
    """
    if isinstance(b, float):
        if not math.isfinite(b) or (sign == "==" and not b.is_integer()):
            return COMPARE[sign](hint_of(a), b)
        b = math.ceil(b) if sign in ("<", ">=") else math.floor(b)
    if not isinstance(b, int | Dim):
        return NotImplemented
    difference = apply_equalities(a - b)
    answer = prove(difference, sign)
    assumptions = current.top.assumptions
    if answer is None and assumptions:
        answer = assumptions.answers.get((str(a - b), sign))
    if answer is not None:
        return answer
    answer = COMPARE[sign](hint_of(difference), 0) or (must and has_unseen_hint(difference))
    note_decision(a, sign, b, answer)
    return answer


def prove(difference, sign: str) -> bool | None:
    """Whether `difference sign 0` holds for every size; None if it does for some of them."""
    if isinstance(difference, int):
        return COMPARE[sign](difference, 0)
    return certain(*bounds(difference), sign)


def note_decision(a, sign: str, b, answer: bool) -> None:
    """From now on this decision holds in the trace, and the program notes it."""
    assumptions = current.top.assumptions
    if assumptions and assumptions.note:
        assumptions.learn(a, sign, b, answer)
        assumptions.note(a, sign, b, answer)


def never(a, sign: str, b) -> bool:
    """Whether `a sign b` is false for every size. Otherwise the run decides."""
    return prove(apply_equalities(a - b), sign) is False


def suppose(a, sign: str, b) -> None:
    """Assume `a sign b`, whatever the hints say. The program fails in a run where it is false."""
    if not prove(a - b, sign):
        note_decision(a, sign, b, True)


@slot("dim.certain")
def certain(low, high, sign: str) -> bool | None:
    """Whether `x sign 0` holds for all x between the bounds; None if it does for some of them."""
    if sign in (">", ">="):
        low, high = (None if x is None else -x for x in (high, low))
        sign = sign.replace(">", "<")
    if sign == "==":
        outside = (low is not None and low > 0) or (high is not None and high < 0)
        return False if outside else None
    if high is not None and COMPARE[sign](high, 0):
        return True
    return False if low is not None and not COMPARE[sign](low, 0) else None
