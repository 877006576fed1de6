"""From one placement to another: the shortest chain of moves, and each move as collectives.

A move changes the placement on one axis of the mesh:

| from      | to             | collective             | bytes that a rank receives |
|-----------|----------------|------------------------|----------------------------|
| Replicate | Shard, Partial | none: a slice, zeros   | 0                          |
| Shard     | Replicate      | all_gather             | n·(p-1)/p                  |
| Partial   | Shard          | reduce_scatter         | n·(p-1)/p                  |
| Partial   | Replicate      | all_reduce             | 2n·(p-1)/p                 |
| Shard     | other axis     | all_to_all             | n/p·(p-1)/p                |

p are the ranks along the axis of the mesh, n the bytes of the tensor over the number of its pieces
on the other axes.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count, product
from math import prod

from ..core import slots
from ..core.op import OPS
from ..core.slots import slot
from ..ops.creation import full
from ..ops.movement import WHOLE, concat, reshape, slice_, transpose, unslice
from .buckets import BUCKET_MB
from .placements import REPLICATE, Placements, Shard, cut, local_shape

Steps = tuple[tuple[int, object], ...]
"""Moves one after the other: (axis of the mesh, new placement)."""


@slot("sharding.cost_of_move")
def cost_of_move(nbytes: int, parts: int, before, after) -> Fraction | int:
    """The bytes that each of `parts` ranks receives when a tensor of `nbytes` gets another
    placement on their axis of the mesh.
    """
    others = Fraction(nbytes * (parts - 1), parts)
    if before.is_replicated():
        return 0
    if before.is_shard() and after.is_shard():
        return others / parts
    return 2 * others if before.is_partial() and after.is_replicated() else others


def may_follow(placements: Placements, axis: int, new) -> bool:
    """Whether a move on one axis of the mesh leaves the pieces of the other axes where they are:
    of several axes that cut one axis of the tensor, only the last is undone or added.
    """
    dims = {p.dim for p in (placements[axis], new) if p.is_shard()}
    return not any(p.is_shard() and p.dim in dims for p in placements[axis + 1 :])


@lru_cache(maxsize=4096)
def steps_between(
    nbytes: int, before: Placements, after: Placements, mesh_shape: tuple, epoch: int = 0
) -> tuple[Fraction | int, Steps]:
    """For a tensor of `nbytes` the chain of the fewest collectives, among these the one that
    receives the fewest bytes (by Dijkstra's algorithm), and these bytes. `epoch`: of the slots.
    """
    dims = {p.dim for p in (*before, *after) if p.is_shard()}
    choices = dict.fromkeys((REPLICATE, *after, *map(Shard, sorted(dims))))
    number, waiting, done = count(1), [(0, 0, 0, before, ())], set()
    while waiting:
        length, cost, _, now, steps = heapq.heappop(waiting)
        if now == after:
            return cost, steps
        if now in done:
            continue
        done.add(now)
        for axis, new in product(range(len(now)), choices):
            old = now[axis]
            if new == old or not is_allowed(old, new) or not may_follow(now, axis, new):
                continue
            cut = (n for k, (n, p) in enumerate(zip(mesh_shape, now)) if k != axis and p.is_shard())
            price = cost_of_move(Fraction(nbytes, prod(cut)), mesh_shape[axis], old, new)
            reached = (*now[:axis], new, *now[axis + 1 :])
            longer, dearer = length + (not old.is_replicated()), cost + price
            heapq.heappush(waiting, (longer, dearer, next(number), reached, (*steps, (axis, new))))
    raise ValueError(f"no way from {before} to {after}")


def is_allowed(old, new) -> bool:
    """Whether there is a move between two placements. Only a whole tensor becomes terms."""
    if new.is_partial():
        return old.is_replicated()
    return not (old.is_shard() and new.is_shard() and old.dim == new.dim)


# ---- moves as collectives ------------------------------------------------------------------------


def move_local(x, shape: tuple, before: Placements, after: Placements, view, time=(0, 0)):
    """The local tensor x of a rank after the moves from `before` to `after`.

    view: how this rank sees the mesh: `shape`, its coordinates `place`, `groups` by axis
    time: when x was computed, in a program: collectives start in this order
    """
    nbytes = prod(shape) * x.spec.dtype.itemsize
    _, steps = steps_between(nbytes, before, after, view.shape, slots.epoch)
    now = before
    for number, (axis, new) in enumerate(steps):
        x = move(x, shape, now, axis, new, view, (*time, number))
        now = (*now[:axis], new, *now[axis + 1 :])
    return x


@slot("sharding.move")
def move(x, shape: tuple, now: Placements, axis: int, new, view, time=(0, 0, 0)):
    """The local tensor x after a move on one axis of the mesh.

    shape: of the whole tensor; now: its placements before; time: see `move_local`
    """
    old, parts, k = now[axis], view.shape[axis], view.place[axis]
    group = along(view, axis, x, shape, time)
    whole = local_shape(shape, (*now[:axis], REPLICATE, *now[axis + 1 :]), view.shape, view.place)

    def cuts(shard):  # the pieces along this axis of the mesh, of what this line of ranks has
        return [cut(whole[shard.dim], parts, j, shard.unit) for j in range(parts)]

    if old.is_replicated():
        return keep_term(x, k) if new.is_partial() else part(x, new.dim, *cuts(new)[k])
    if old.is_partial():
        if new.is_replicated():
            return reduce_all(x, old.op, group)
        return reduce_scatter(x, old.op, new.dim, cuts(new), k, group)
    if new.is_replicated():
        return all_gather(x, old.dim, [n for _, n in cuts(old)], group)
    return all_to_all(x, old.dim, [n for _, n in cuts(old)], new.dim, cuts(new), k, group)


def along(view, axis: int, x, shape: tuple, time) -> dict:
    """The attributes of a collective along an axis of the mesh."""
    early = time, prod(shape) * x.spec.dtype.itemsize, BUCKET_MB
    return {"group": view.groups[axis], "early": early}


def part(x, dim: int, start: int, n: int):
    """Rows of x along an axis."""
    if n == x.spec.shape[dim]:
        return x
    return slice_(x, index=(*WHOLE[:dim], (start, start + n, 1)))


def keep_term(x, k: int):
    """x in the first rank, zeros in the others: their sum is x."""
    return x if k == 0 else full(shape=x.spec.shape, value=0, dtype=x.spec.dtype)


def reduce_all(x, op: str, group: dict):
    """The sum (maximum, …) of the local tensors."""
    return OPS["all_reduce" if op in ("sum", "avg") else "all_fold"](x, op=op, **group)


def to_front(x, dim: int):
    """x with an axis in front."""
    n = x.spec.ndim
    return x if dim == 0 else transpose(x, perm=(dim, *(d for d in range(n) if d != dim)))


def from_front(x, dim: int):
    """x with its first axis at `dim`."""
    n = x.spec.ndim
    return x if dim == 0 else transpose(x, perm=(*range(1, dim + 1), 0, *range(dim + 1, n)))


def pad_rows(x, n: int):
    """x with zeros after its rows, so that there are n."""
    rows, *others = x.spec.shape
    return x if rows == n else unslice(x, shape=(n, *others), index=((0, rows, 1),))


def all_gather(x, dim: int, rows: list[int], group: dict):
    """The pieces of all ranks, of `rows` each, joined along an axis."""
    x, most = to_front(x, dim), max(rows)
    y = OPS["all_gather"](pad_rows(x, most), nranks=len(rows), **group)
    if min(rows) < most:
        y = concat(*(part(y, 0, most * j, n) for j, n in enumerate(rows) if n), axis=0)
    return from_front(y, dim)


def reduce_scatter(x, op: str, dim: int, cuts: list, k: int, group: dict):
    """This rank's piece of the sum along an axis."""
    x, most = to_front(x, dim), max(n for _, n in cuts)
    if min(n for _, n in cuts) < most:
        x = concat(*(pad_rows(part(x, 0, *each), most) for each in cuts), axis=0)
    y = OPS["reduce_scatter"](x, nranks=len(cuts), op=op, **group)
    return from_front(part(y, 0, 0, cuts[k][1]), dim)


def all_to_all(x, old: int, rows: list[int], new: int, cuts: list, k: int, group: dict):
    """From pieces along the axis `old` to pieces along the axis `new`."""
    shape = [*x.spec.shape]
    sent = [part(x, new, *each) for each in cuts]
    shape[new] = cuts[k][1]
    shapes = [(*shape[:old], n, *shape[old + 1 :]) for n in rows]
    sizes = [prod(s) for s in shapes]
    flat = concat(*(reshape(y, shape=(y.spec.size,)) for y in sent), axis=0)
    y = OPS["all_to_all"](
        flat, sent=tuple(y.spec.size for y in sent), received=tuple(sizes), **group
    )
    starts = [0, *accumulate(sizes)]
    pieces = [reshape(part(y, 0, a, n), shape=s) for a, n, s in zip(starts, sizes, shapes)]
    return concat(*pieces, axis=old)
