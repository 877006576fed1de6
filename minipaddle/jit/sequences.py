"""`range`, `enumerate`, `zip` and `reversed` of what only the program knows the length of."""

from __future__ import annotations

import builtins

from ..engine.core.dim import Dim
from ..engine.core.errors import type_error
from ..engine.eager.control_flow import is_static
from ..engine.jit import aliasing
from ..engine.jit.leaves import scalar
from ..engine.jit.sequences import Sequence, pick, sequence
from ..engine.ops import elementwise


def whole(x):
    """x, a limit of `range`; TypeError if it is no whole number."""
    if x.spec.dtype.kind not in "iub":
        raise type_error(f"range() of {x.spec}", expected="whole numbers", hint="int(x)")
    return x


class Range(Sequence):
    """`range(start, stop, step)` with tensors."""

    what = "range() of a tensor"

    def __init__(self, *limits):
        limits = [scalar(whole(x)) if is_static(x) else x for x in limits]
        start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        self.start, self.step = start, step
        if type(step) is int and step == 1:
            self.length = stop - start
        elif type(step) is int:
            self.length = (stop - start + step - (1 if step > 0 else -1)) // step
        else:
            self.length = (stop - start + step - elementwise.sign(step)) // step

    def at(self, k):
        return self.start + (k if type(self.step) is int and self.step == 1 else k * self.step)


class Listed(Sequence):
    """A list of Python beside a sequence of the program, as in `zip`."""

    def __init__(self, items):
        self.items = (
            list(items) if isinstance(items, list | tuple) else [*aliasing.rule.items(iter(items))]
        )
        self.length = len(self.items)

    def at(self, k):
        return pick(self.items, k)


class Enumerated(Sequence):
    """`enumerate(items, start)`."""

    def __init__(self, items, start=0):
        self.items, self.start, self.length = items, start, items.length

    def at(self, k):
        return self.start + k, self.items.at(k)


class Zipped(Sequence):
    """`zip(*items)`: as long as the shortest."""

    def __init__(self, *items):
        self.items = items
        self.length = items[0].length
        for other in items[1:]:
            self.length = least(self.length, other.length)

    def at(self, k):
        return tuple([each.at(k) for each in self.items])


class Reversed(Sequence):
    """`reversed(items)`."""

    def __init__(self, items):
        self.items, self.length = items, items.length

    def at(self, k):
        return self.items.at(self.length - 1 - k)


def least(a, b):
    return elementwise.minimum(a, b) if is_static(a) or is_static(b) else min(a, b)


def range_(*limits):
    """`range`."""
    if any(is_static(x) or isinstance(x, Dim) for x in limits):
        return Range(*limits)
    return builtins.range(*limits)


def enumerate_(items, start=0):
    """`enumerate`."""
    found = sequence(items)
    if found is None and not is_static(start):
        return builtins.enumerate(items, start)
    if found is None:
        return ((start + k, item) for k, item in builtins.enumerate(items))
    return Enumerated(found, start)


def zip_(*items, strict=False):
    """`zip`."""
    found = [sequence(each) for each in items]
    if all(each is None for each in found):
        return builtins.zip(*items, strict=strict)
    return Zipped(*(Listed(each) if s is None else s for s, each in builtins.zip(found, items)))


def reversed_(items):
    """`reversed`."""
    found = sequence(items)
    if found is not None:
        return Reversed(found)
    return reversed(list(items)) if is_static(items) else builtins.reversed(items)
