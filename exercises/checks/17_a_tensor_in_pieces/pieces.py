"""Checks of 17_a_tensor_in_pieces/pieces."""

from itertools import chain, product

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Pieces: which rows a rank has",
    level="easy",
    minutes=15,
    slots={"sharding.cut": "cut", "sharding.piece_of": "piece_of"},
    hints=(
        "13 rows, four ranks, and no piece may be larger than the first. How many rows must the "
        "first have, so that four such pieces are enough?",
        "Count blocks, not rows: how many are there, and how many go to each piece, rounded up? "
        "Where does a piece begin that comes after the last row?",
        "cut: rows = unit · ceil(n / (unit · parts)); first = k · rows, but at most n\n"
        "    (first, the lesser of rows and n - first)\n"
        "piece_of: all axes whole; for each axis of the mesh that cuts axis d: cut what was found\n"
        "    for d so far, and add where that begins",
    ),
    wrong={
        "pieces that differ by one row, as numpy.array_split cuts": (
            "rows = -(-n // (unit * parts)) * unit → rows = n // parts + (k < n % parts)"
        ),
        "rounded down: rows are left over": "-(-n // (unit * parts)) → n // (unit * parts)",
        "blocks torn": "-(-n // (unit * parts)) * unit → -(-n // parts)",
        "the last piece as large as the first": "min(rows, n - first) → rows",
        "an empty piece that begins after the end": "min(k * rows, n) → k * rows",
        "blocks forgotten on a mesh": "cut(n, parts, k, p.unit) → cut(n, parts, k)",
        "pieces of the whole, not of the piece": "begin, n = found[p.dim] → begin, n = 0, "
                                                 "shape[p.dim]",
        "the first row counted in the piece": "begin + first → first",
        "always the tensor's first axis": "found[p.dim] = begin + first, rows → "
                                          "found[0] = begin + first, rows",
        "a term is a piece, too": "p.is_shard() → not p.is_replicated()",
    },
)  # fmt: skip


def dealt(rows: list, parts: int, unit: int) -> list[list]:
    """Rows dealt to ranks block by block, by hand."""
    blocks = [rows[a : a + unit] for a in range(0, len(rows), unit)]
    each = 0
    while each * parts < len(blocks):
        each += 1
    return [[*chain(*blocks[each * k : each * (k + 1)])] for k in range(parts)]


def is_pair(found) -> bool:
    return type(found) is tuple and [type(x) for x in found] == [int, int]


@exercise.example
def in_the_task(yours):
    """13 rows on four ranks, blocks of 4, an empty piece."""
    for args, expected in (
        ((13, 4, 0), (0, 4)), ((13, 4, 3), (12, 1)), ((12, 3, 1, 4), (4, 4)), ((5, 4, 3), (5, 0)),
        ((5, 4, 2), (4, 1)), ((0, 3, 2), (0, 0)), ((7, 1, 0), (0, 7)), ((10, 2, 1, 4), (8, 2)),
    ):  # fmt: skip
        found = yours.cut(*args)
        expect_that(is_pair(found), "a pair of whole numbers", given={"cut": args}, got=found)
        expect(found, expected, given={"cut": args})


@exercise.property(
    n=st.integers(0, 40), parts=st.integers(1, 6), unit=st.integers(1, 5), examples=60
)
def every_row_once(yours, n, parts, unit):
    """Rows dealt out by hand, block by block."""
    for k, rows in enumerate(dealt([*range(n)], parts, unit)):
        given = {"n": n, "parts": parts, "k": k, "unit": unit}
        expect(yours.cut(n, parts, k, unit), (rows[0] if rows else n, len(rows)), given=given)


WAYS = [Replicate(), Partial(), Shard(0), Shard(1), Shard(0, 2), Shard(1, 3)]


@exercise.property(
    shape=st.tuples(st.integers(0, 13), st.integers(1, 9)),
    mesh=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    ways=st.lists(st.sampled_from(WAYS), min_size=3, max_size=3),
    examples=60,
)
def arrays_really_cut(yours, shape, mesh, ways):
    """The rows and columns of the piece of each rank, cut one axis of the mesh after the other."""
    ways = ways[: len(mesh)]
    for place in product(*map(range, mesh)):
        whole = [[*range(n)] for n in shape]
        starts = [0, 0]
        for way, parts, k in zip(ways, mesh, place):
            if way.is_shard():
                pieces = dealt(whole[way.dim], parts, way.unit)
                starts[way.dim] += sum(map(len, pieces[:k]))
                whole[way.dim] = pieces[k]
        given = {"shape": shape, "placements": ways, "mesh_shape": mesh, "place": place}
        found = yours.piece_of(shape, tuple(ways), tuple(mesh), place)
        expect_that(type(found) is list and all(map(is_pair, found)), "a list of pairs",
                    given=given, got=found)  # fmt: skip
        expect(found, [*zip(starts, map(len, whole))], given=given)


@exercise.example
def other_axes(yours):
    """A tensor of three axes on a mesh of one axis, and one without axes."""
    found = yours.piece_of((2, 3, 8), (Shard(2),), (4,), (1,))
    expect(found, [(0, 2), (0, 3), (2, 2)], given="Shard(2) of [2, 3, 8], rank 1 of 4")
    expect(yours.piece_of((), (Replicate(),), (4,), (1,)), [], given="no axes")
    expect(yours.piece_of((4,), (), (), ()), [(0, 4)], given="a mesh without axes")
    ways, last = (Replicate(),) * 8 + (Shard(8),), (0,) * 8 + (1,)
    found = yours.piece_of((1,) * 8 + (5,), ways, (1,) * 8 + (2,), last)
    expect(found, [(0, 1)] * 8 + [(3, 2)], given="nine axes, the last one cut")


def on_rank(x, w):
    """A product of 7 rows on 2 by 2 ranks, its gradients, and the rows that the rank has."""
    mesh = dist.ProcessMesh([[0, 1], [2, 3]])
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(0), Shard(0)], stop_gradient=False)
    w = dist.shard_tensor(paddle.to_tensor(w), mesh, [Replicate(), Shard(1)], stop_gradient=False)
    y = x @ w
    (y * y).sum().backward()
    wholes = [dist.unshard_dtensor(t).numpy() for t in (y, x.grad, w.grad)]
    return x._local_value().numpy(), *wholes


@exercise.example
def the_engine_on_it(yours):
    """Seven rows on 2 by 2 ranks: pieces of 2, 2, 2 and 1; a product and its gradients."""
    x, w = np.arange(21.0).reshape(7, 3), np.linspace(-1, 1, 15).reshape(3, 5)
    with exercise.plugged(yours):
        found = dist.spawn(on_rank, args=(x, w), nprocs=4, timeout=20.0).results
    for rank, (own, y, gx, gw) in enumerate(found):
        expect(own, x[2 * rank : 2 * rank + 2], given=f"x in rank {rank}")
        expect(y, x @ w, given="x @ w")
        expect((gx, gw), (2 * x @ w @ w.T, 2 * x.T @ (x @ w)), given="the gradients of x and w")
