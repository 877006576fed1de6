"""What a loop may run over when only the program knows how many rounds that is.

Each has a `length` (a tensor, a size, or an int) and gives its item number `k`, a tensor.
"""

from __future__ import annotations

import builtins

from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.errors import type_error
from ..engine.eager.aliases import one_of
from ..engine.eager.control_flow import is_static
from ..engine.jit.leaves import scalar
from ..engine.ops import elementwise, movement
from ..engine.ops import gather as indexing
from ..tensor.joining import grown
from ..tensor.rest import Rest, stacked
from .dy2static.utils import refusal
from .iterators import bounded


class Sequence:
    """The base of them."""

    length: object
    what = "a sequence whose length a tensor says"

    def __iter__(self):
        raise refusal(
            f"{self.what} cannot become Python's: its length is known when the program runs",
            hint="loop over it with `for`",
        )

    __len__ = __iter__


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


class Rows(Sequence):
    """The slices of a tensor along its first axis."""

    what = "a tensor of unknown length"

    def __init__(self, x):
        self.x, self.length = x, x.shape[0]

    def at(self, k):
        return self.x[k]


class Listed(Sequence):
    """A list of Python beside a sequence of the program, as in `zip`."""

    def __init__(self, items):
        self.items = list(items) if isinstance(items, list | tuple) else [*bounded(iter(items))]
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


def sequence(items):
    """A sequence for what has a length that only the program knows; None for all else."""
    if isinstance(items, Sequence):
        return items
    if grown(items):
        return Rows(stacked(items))
    if is_static(items) and items.ndim and isinstance(items.shape[0], Dim):
        return Rows(items)
    return None


def asked(x):
    """What a condition asks of x: of a list that grew in a loop of the program, has it items?"""
    if type(x) is not list or not all(type(each) is Rest for each in x) or not grown(x):
        return x
    return current.top.constant(stacked(x).shape[0]) > 0


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


def pick(items, k):
    """`items[k]` of a Python list, `k` being a tensor: its items must be alike."""
    if grown(items):
        return stacked(items)[k]
    k = scalar(k)
    count = len(items)
    specs = {x.spec if hasattr(x, "spec") else type(x) for x in items}
    if len(specs) != 1 or not count:
        raise refusal(
            f"a list of {count} items that are not all alike, indexed by a tensor",
            expected="tensors of one shape and dtype, or numbers",
        )
    whole = movement.stack(*map(as_tensor, items), axis=0)
    return one_of(indexing.take(whole, k, axis=0), *items)


def as_tensor(x):
    return x if hasattr(x, "spec") else current.top.constant(x)
