"""Views with permuted axes: axis d of `PermutedView(base, perm)` is axis perm[d] of the base."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import NamedTuple

from ..engine.core.record import Record
from ..engine.ops.movement import inverse


class PermutedView(NamedTuple):
    """A record of the new program, and a permutation of its axes."""

    base: Record
    perm: tuple

    @property
    def shape(self) -> tuple:
        return tuple(self.base.shape[d] for d in self.perm)

    @property
    def is_identity(self) -> bool:
        """Whether the axes are in the order of the base."""
        return self.perm == tuple(range(len(self.perm)))

    def transpose(self, perm) -> PermutedView:
        """The view, transposed."""
        return PermutedView(self.base, tuple(self.perm[d] for d in perm))


def plain(record: Record) -> PermutedView:
    """The view of a record that permutes nothing."""
    return PermutedView(record, tuple(range(len(record.shape))))


def keeps_order(perm, shape) -> bool:
    """Whether a transpose moves no axis longer than 1, so that it is a reshape."""
    long = [d for d in perm if shape[d] != 1]
    return long == sorted(long) or 0 in shape


def perm_for(view: PermutedView, target: tuple) -> tuple:
    """The transpose of the base of `view` that an operator reads if its result is a view with the
    permutation `target`: axis e of the result's base is axis inverse(target)[e] of both views.
    """
    return tuple(view.perm[d] for d in inverse(target))


def without(perm, gone) -> tuple:
    """The permutation without the axes `gone` of the view, which its base loses too."""
    left = [d for k, d in enumerate(perm) if k not in set(gone)]
    rank = {d: k for k, d in enumerate(sorted(left))}
    return tuple(rank[d] for d in left)


# ---- reshapes of views ------------------------------------------------------------------------


def blocks(old, new) -> list[tuple[list[int], list[int]]]:
    """The axes of two shapes (without sizes 1) in groups with equally many elements."""
    ends = [{int(size): d for d, size in enumerate(accumulate(s, mul), 1)} for s in (old, new)]
    groups, start = [], (0, 0)
    for size in sorted(ends[0].keys() & ends[1].keys()):
        stop = ends[0][size], ends[1][size]
        groups.append(tuple([*range(a, b)] for a, b in zip(start, stop)))
        start = stop
    return groups


def reshape_view(view: PermutedView, shape) -> tuple[tuple, tuple] | None:
    """(shape for the base, perm) with which a reshape of a view is a view of a reshaped base; None
    if elements would have to move.
    """
    if 0 in shape:
        return None
    old = [d for d, n in enumerate(view.shape) if n != 1]
    new = [d for d, n in enumerate(shape) if n != 1]
    groups = blocks([view.shape[d] for d in old], [shape[d] for d in new])
    rank = {d: k for k, d in enumerate(sorted(view.perm[d] for d in old))}
    order = {}
    for left, right in groups:
        places = [rank[view.perm[old[d]]] for d in left]
        if places != list(range(places[0], places[0] + len(places))):
            return None
        order[places[0]] = [new[d] for d in right]
    axes: list[int] = []  # axes of the result in the order of the new base
    for place in sorted(order):
        axes += order[place]
    for d, n in enumerate(shape):  # an axis of size 1 follows its neighbour
        if n == 1:
            axes.insert(axes.index(d - 1) + 1 if d else 0, d)
    return tuple(shape[d] for d in axes), inverse(tuple(axes))


def before_reshape(record: Record, perm: tuple) -> tuple | None:
    """The transpose of a reshape's input that becomes the transpose `perm` of its result; None if
    there is none.
    """
    source = record.inputs[0].shape
    long = [d for d, n in enumerate(source) if n != 1]
    own = [d for d, n in enumerate(record.shape) if n != 1]
    groups = blocks([record.shape[d] for d in own], [source[d] for d in long])
    if any(len(left) > 1 for left, _ in groups):
        return None
    parts = {own[left[0]]: [long[d] for d in right] for left, right in groups}
    ones = [d for d, n in enumerate(source) if n == 1]
    return (*ones, *(d for axis in perm for d in parts.get(axis, ())))
