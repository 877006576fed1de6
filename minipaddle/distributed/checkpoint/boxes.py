"""Boxes: the part of a tensor that a rank has, or a file, as (first row, rows) of each axis.

Two boxes have a box in common. That is all of resharding: a rank reads from each file what its own
box and the file's have in common, whatever meshes they come from.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

from ...engine.core.slots import slot
from ...engine.eager.device import NUMPY
from ...engine.sharding.array import sharded
from ...engine.sharding.placements import piece_of

Box = tuple[tuple[int, int], ...]


def box_of(array) -> Box:
    """The part of the whole that this rank has of an array; a plain array is whole."""
    if not sharded(array):
        return tuple((0, n) for n in array.shape)
    view = array.view
    return tuple(piece_of(array.shape, array.placements, view.shape, view.place))


def volume(box: Box) -> int:
    """How many elements a box has."""
    return prod(rows for _, rows in box)


@slot("checkpoint.common")
def common(a: Box, b: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty.

    >>> from minipaddle.distributed.checkpoint.boxes import common
    >>> common(((0, 4), (0, 3)), ((2, 4), (1, 2)))
    ((2, 2), (1, 2))
    """
    starts = [max(x[0], y[0]) for x, y in zip(a, b, strict=True)]
    ends = [min(sum(x), sum(y)) for x, y in zip(a, b, strict=True)]
    found = tuple((start, end - start) for start, end in zip(starts, ends))
    return found if all(rows > 0 for _, rows in found) else None


@slot("checkpoint.within")
def within(box: Box, outer: Box) -> tuple[slice, ...]:
    """The index of a box in an array that holds the box `outer`."""
    firsts = [start - first for (start, _), (first, _) in zip(box, outer, strict=True)]
    return tuple(slice(k, k + rows) for k, (_, rows) in zip(firsts, box))


@slot("checkpoint.reads")
def reads(box: Box, pieces: list) -> list[tuple]:
    """The parts that a rank with the part `box` of a tensor reads from pairs (file, its box): of
    each file that has something of it (file, its box, index in the file's array, index in the
    rank's).

    >>> from minipaddle.distributed.checkpoint.boxes import reads
    >>> reads(((2, 3),), [("a", ((0, 4),)), ("b", ((4, 4),))])
    [('a', ((0, 4),), (slice(2, 4, None),), (slice(0, 2, None),)), \
('b', ((4, 4),), (slice(0, 1, None),), (slice(2, 3, None),))]
    """
    parts = [(file, outer, common(box, outer)) for file, outer in pieces]
    return [
        (file, outer, within(part, outer), within(part, box))
        for file, outer, part in parts
        if part is not None
    ]


@slot("checkpoint.assemble")
def assemble(box: Box, dtype, pieces: list, rows):
    """The part `box` of a tensor, as an array. The tensor is in `pieces`, pairs (file, its box);
    `rows(file, outer, index)` reads rows of a file with the box `outer`, only those needed.
    """
    found = NUMPY.empty([n for _, n in box], dtype)
    for file, outer, there, here in reads(box, pieces):
        found[here] = rows(file, outer, there)
    return found


def fills(boxes: list[Box], box: Box) -> bool:
    """Whether boxes that lie inside of `box` cover it, each element once.

    They do if their corners cancel but for those of `box`: a corner counts 1, or -1 if an odd
    number of its coordinates are ends. The time is proportional to the number of boxes.

    >>> from minipaddle.distributed.checkpoint.boxes import fills
    >>> fills([((0, 2),), ((2, 3),)], ((0, 5),)), fills([((0, 2),), ((1, 4),)], ((0, 5),))
    (True, False)
    """
    cut = [d for d, whole in enumerate(box) if any(each[d] != whole for each in boxes)]
    if len(cut) > MOST:
        raise ValueError(f"boxes that are cut along {len(cut)} axes: {MOST} are allowed")
    corners: Counter = Counter()
    for each, sign in [(box, -1), *((each, 1) for each in boxes)]:
        for ends in product((0, 1), repeat=len(cut)):
            corner = tuple(each[d][0] + end * each[d][1] for d, end in zip(cut, ends))
            corners[corner] += sign * (-1) ** sum(ends)
    return not volume(box) or not any(corners.values())


MOST = 8
"""Along how many axes boxes may be cut: as many as meshes have."""


def owners(holders: dict, weights: dict, ranks) -> dict:
    """{piece: the rank that writes it}: of the ranks that hold it the one with the least to write.

    holders: {piece: the ranks that have it}; weights: {piece: its bytes}

    >>> from minipaddle.distributed.checkpoint.boxes import owners
    >>> owners({"a": [0, 1], "b": [0, 1], "c": [0]}, {"a": 8, "b": 4, "c": 4}, [0, 1])
    {'c': 0, 'a': 1, 'b': 0}
    """
    load, found = dict.fromkeys(ranks, 0), {}
    for piece in sorted(holders, key=lambda p: (len(holders[p]), -weights[p])):
        found[piece] = min(holders[piece], key=lambda r: (load[r], r))
        load[found[piece]] += weights[piece]
    return found
