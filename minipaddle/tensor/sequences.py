"""Sequences for loops whose trip count only the program knows."""

from ..engine.core.dim import Dim, never
from ..engine.core.dispatch import current
from ..engine.eager.control_flow import is_static
from ..engine.jit.journal import Binding
from ..engine.jit.leaves import CONDITIONS
from ..engine.jit.looping import KINDS, LOOPS
from ..engine.jit.refusal import refusal
from ..engine.jit.truth import none


class LazySequence:
    """`length` items (a tensor, a size, or an int); `at(k)` gives item `k`, a tensor."""

    def __init__(self, length, at, what="a sequence whose length a tensor says"):
        self.length, self.at, self.what = length, at, what

    def __iter__(self):
        raise refusal(
            f"{self.what} cannot become Python's: its length is known when the program runs",
            hint="loop over it with `for`",
        )

    __len__ = __iter__


def rows(x) -> LazySequence:
    """The slices of a tensor along its first axis."""
    return LazySequence(x.shape[0], lambda k: x[k], "a tensor of unknown length")


SEQUENCES: list = []
"""Functions that give the Sequence of some items of Python, or None if they are no such items."""


def sequence(items):
    """The sequence of the items if only the program knows their number; None otherwise."""
    if isinstance(items, LazySequence):
        return items
    for find in SEQUENCES:
        if (form := find(items)) is not None:
            return form
    if is_static(items) and items.ndim and isinstance(items.shape[0], Dim):
        return rows(items)
    return None


def length_as_condition(x: list):
    """A list is true if it has items, how many these may be."""
    items = sequence(x)
    if items is None or never(items.length, "==", 0):
        return x
    return current.top.constant(items.length) > 0


def loop_over_sequence(iterable, body, groups, flags) -> bool:
    """Write a loop over a sequence whose length only the program knows."""
    items = sequence(iterable)
    if items is not None:
        loop_by_index(items, body, groups, flags)
    return items is not None


def loop_by_index(items, body, groups, flags) -> None:
    """A loop over a sequence whose length only the program knows."""
    k = Box("the number of the iteration", 0)

    def test():
        return k.value < items.length

    def stop_test():
        going = none([flag.get() for flag in flags])
        return (going & test()) if is_static(going) else going and test()

    def step():
        body(items.at(k.value))
        k.value = k.value + 1

    live_out, loop_carried, local = groups
    loop = KINDS[-1](stop_test(), stop_test, step, live_out, [*loop_carried, k], local)
    loop.iterations = items.length if isinstance(items.length, Dim) and not flags else None
    loop.write()


class Box(Binding):
    """A variable of the runtime."""

    def __init__(self, name: str, value):
        self.name, self.value, self.key = name, value, ("box", id(self))

    def get(self):
        return self.value

    def set(self, value):
        self.value = value

    assign = set  # nobody outside the loop reads it


LOOPS.append(loop_over_sequence)
CONDITIONS.append(length_as_condition)
