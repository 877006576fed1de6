"""What a loop can run over if only the program knows the number of iterations."""

from __future__ import annotations

from ..core.dim import Dim
from ..core.dispatch import current
from ..eager.aliases import one_of
from ..eager.control_flow import is_static
from ..ops import gather, movement
from .leaves import scalar
from .refusal import refusal
from .rest import Rest, has_grown, stack_items


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


def sequence(items):
    """The sequence of the items if only the program knows their number; None otherwise."""
    if isinstance(items, Sequence):
        return items
    if has_grown(items):
        return rows(stack_items(items))
    if is_static(items) and items.ndim and isinstance(items.shape[0], Dim):
        return rows(items)
    return None


def as_condition(x):
    """x as a condition: a list that grew in a loop of the program is true if it has items."""
    if type(x) is not list or not all(type(each) is Rest for each in x) or not has_grown(x):
        return x
    return current.top.constant(stack_items(x).shape[0]) > 0


def pick(items, k):
    """`items[k]` of a Python list whose items are alike, where `k` is a tensor."""
    if has_grown(items):
        return stack_items(items)[k]
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
