"""Boxes: the part of a tensor that a rank or a file has, as (first row, rows) of each axis.

The intersection of two boxes is a box. Resharding needs no more: a rank reads from each file the
intersection of its own box and the file's, whatever mesh wrote the file.
"""

from collections import Counter
from itertools import product
from math import prod

from ...engine.core.slots import slot
from ...engine.eager.device import NUMPY
from ...engine.sharding.array import sharded
from ...engine.sharding.placements import piece_of

Box = tuple[tuple[int, int], ...]


def box_of(array) -> Box:
    """The part of an array that this rank has: all of one that is not sharded."""
    if not sharded(array):
        return tuple((0, n) for n in array.shape)
    view = array.view
    return tuple(piece_of(array.shape, array.placements, view.shape, view.place))


def volume(box: Box) -> int:
    """The number of elements of a box."""
    return prod(rows for _, rows in box)


@slot("checkpoint.intersect")
def intersect(a: Box, b: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty.

    >>> from minipaddle.distributed.checkpoint.boxes import intersect
    >>> intersect(((0, 4), (0, 3)), ((2, 4), (1, 2)))
    ((2, 2), (1, 2))
    """
    starts = [max(x[0], y[0]) for x, y in zip(a, b, strict=True)]
    ends = [min(sum(x), sum(y)) for x, y in zip(a, b, strict=True)]
    shared = tuple((start, end - start) for start, end in zip(starts, ends))
    return shared if all(rows > 0 for _, rows in shared) else None


@slot("checkpoint.index_within")
def index_within(box: Box, outer: Box) -> tuple[slice, ...]:
    """The index of a box in an array that holds the box `outer`."""
    firsts = [start - first for (start, _), (first, _) in zip(box, outer, strict=True)]
    return tuple(slice(k, k + rows) for k, (_, rows) in zip(firsts, box))


@slot("checkpoint.plan_reads")
def plan_reads(box: Box, pieces: list) -> list[tuple]:
    """The parts that a rank with the box `box` of a tensor reads from pairs (file, its box): for
    each file that has some of it (file, its box, index in the file's array, index in the rank's).

    >>> from minipaddle.distributed.checkpoint.boxes import plan_reads
    >>> plan_reads(((2, 3),), [("a", ((0, 4),)), ("b", ((4, 4),))])
    [('a', ((0, 4),), (slice(2, 4, None),), (slice(0, 2, None),)), \
('b', ((4, 4),), (slice(0, 1, None),), (slice(2, 3, None),))]
    """
    parts = [(file, outer, intersect(box, outer)) for file, outer in pieces]
    return [
        (file, outer, index_within(part, outer), index_within(part, box))
        for file, outer, part in parts
        if part is not None
    ]


@slot("checkpoint.assemble")
def assemble(box: Box, dtype, pieces: list, rows):
    """The part `box` of a tensor, as an array. The tensor is in `pieces`, pairs (file, its box);
    `rows(file, outer, index)` reads rows of a file with the box `outer`, only those needed.
    """
    array = NUMPY.empty([n for _, n in box], dtype)
    for file, outer, there, here in plan_reads(box, pieces):
        array[here] = rows(file, outer, there)
    return array


def fills(boxes: list[Box], box: Box) -> bool:
    """Whether boxes inside of `box` cover it, each element once.

    They do if all corners but the corners of `box` cancel: a corner counts 1, or -1 if an odd
    number of its coordinates are ends. The time is proportional to the number of boxes.

    >>> from minipaddle.distributed.checkpoint.boxes import fills
    >>> fills([((0, 2),), ((2, 3),)], ((0, 5),)), fills([((0, 2),), ((1, 4),)], ((0, 5),))
    (True, False)
    """
    cut = [d for d, rows in enumerate(box) if any(each[d] != rows for each in boxes)]
    if len(cut) > MOST:
        raise ValueError(f"boxes that are cut along {len(cut)} axes: {MOST} are allowed")
    corners: Counter = Counter()
    for each, sign in [(box, -1), *((each, 1) for each in boxes)]:
        for ends in product((0, 1), repeat=len(cut)):
            corner = tuple(each[d][0] + end * each[d][1] for d, end in zip(cut, ends))
            corners[corner] += sign * (-1) ** sum(ends)
    return not volume(box) or not any(corners.values())


MOST = 8
"""The most axes along which boxes may be cut, as many as the dimensions of meshes."""


def choose_owners(holders: dict, weights: dict, ranks) -> dict:
    """Choose for each piece the rank that writes it, {piece: rank}: the holder with the least to
    write.

    holders: {piece: the ranks that have it}; weights: {piece: its bytes}

    >>> from minipaddle.distributed.checkpoint.boxes import choose_owners
    >>> choose_owners({"a": [0, 1], "b": [0, 1], "c": [0]}, {"a": 8, "b": 4, "c": 4}, [0, 1])
    {'c': 0, 'a': 1, 'b': 0}
    """
    load, owners = dict.fromkeys(ranks, 0), {}
    for piece in sorted(holders, key=lambda p: (len(holders[p]), -weights[p])):
        owners[piece] = min(holders[piece], key=lambda r: (load[r], r))
        load[owners[piece]] += weights[piece]
    return owners
