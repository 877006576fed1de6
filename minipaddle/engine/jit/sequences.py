"""What a loop may run over when only the program knows how many rounds that is.

Each has a `length` (a tensor, a size, or an int) and gives its item number `k`, a tensor.
"""

from __future__ import annotations

from ..core.dim import Dim
from ..core.dispatch import current
from ..eager.aliases import one_of
from ..eager.control_flow import is_static
from ..ops import gather, movement
from .leaves import scalar
from .refusal import refusal
from .rest import Rest, grown, stacked


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


class Rows(Sequence):
    """The slices of a tensor along its first axis."""

    what = "a tensor of unknown length"

    def __init__(self, x):
        self.x, self.length = x, x.shape[0]

    def at(self, k):
        return self.x[k]


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
    return one_of(gather.take(whole, k, axis=0), *items)


def as_tensor(x):
    return x if hasattr(x, "spec") else current.top.constant(x)
