"""What a loop can run over if only the program knows the number of iterations."""

from __future__ import annotations

from ..core.dim import Dim, never
from ..core.dispatch import current
from ..eager.control_flow import is_static
from .refusal import refusal


class Sequence:
    """`length` items (a tensor, a size, or an int); `at(k)` gives item `k`, a tensor."""

    def __init__(self, length, at, what="a sequence whose length a tensor says"):
        self.length, self.at, self.what = length, at, what

    def __iter__(self):
        raise refusal(
            f"{self.what} cannot become Python's: its length is known when the program runs",
            hint="loop over it with `for`",
        )

    __len__ = __iter__


def rows(x) -> Sequence:
    """The slices of a tensor along its first axis."""
    return Sequence(x.shape[0], lambda k: x[k], "a tensor of unknown length")


SEQUENCES: list = []
"""Functions that give the Sequence of some items of Python, or None if they are no such items."""


def sequence(items):
    """The sequence of the items if only the program knows their number; None otherwise."""
    if isinstance(items, Sequence):
        return items
    for find in SEQUENCES:
        if (found := find(items)) is not None:
            return found
    if is_static(items) and items.ndim and isinstance(items.shape[0], Dim):
        return rows(items)
    return None


def as_condition(x):
    """x as a condition: a list is true if it has items, how many these may be."""
    found = sequence(x) if type(x) is list else None
    if found is None or never(found.length, "==", 0):
        return x
    return current.top.constant(found.length) > 0
