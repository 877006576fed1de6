"""Moves between placements: the chain is as cheap as any, and the pieces arrive."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import viz
from minipaddle.distributed.tensors.dist_tensor import view_of
from minipaddle.engine.sharding.array import cut_whole
from minipaddle.engine.sharding.moves import cost_of_move, is_allowed, may_follow, steps_between
from minipaddle.engine.sharding.placements import (
    Partial,
    ProcessMesh,
    Replicate,
    Shard,
    local_shape,
    piece_of,
)

R, P = Replicate(), Partial()
ALONG = [R, P, Shard(0), Shard(1)]


def held(shape, placements, mesh_shape, place) -> set:
    """The elements that a rank holds."""
    ranges = [range(a, a + n) for a, n in piece_of(shape, placements, mesh_shape, place)]
    return set(product(*ranges))


def cheapest(shape, before, after, mesh_shape, longest: int = 4):
    """(collectives, bytes) of the best chain of at most `longest` moves, by trying all."""

    @cache
    def search(now, left):
        if now == after:
            return 0, 0
        found = [(np.inf, np.inf)]
        for axis, new in product(range(len(now)), ALONG) if left else ():
            if new == now[axis] or not is_allowed(now[axis], new) or not may_follow(now, axis, new):
                continue
            pieces = [n for k, n in enumerate(mesh_shape) if k != axis and now[k].is_shard()]
            lie = Fraction(np.prod(shape, dtype=int) * 4, int(np.prod(pieces, dtype=int)))
            length, cost = search((*now[:axis], new, *now[axis + 1 :]), left - 1)
            cost += cost_of_move(lie, mesh_shape[axis], now[axis], new)
            found.append((length + (now[axis] != R), cost))
        return min(found)

    return search(before, longest)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("mesh_shape", [(2,), (3,), (2, 2), (3, 2)])
def test_no_chain_is_better(mesh_shape):
    pairs = product(product(ALONG, repeat=len(mesh_shape)), repeat=2)
    for before, after in pairs:
        if any(b.is_partial() and not (a.is_partial() or a.is_replicated())
               for a, b in zip(before, after)):  # fmt: skip
            continue  # pieces would have to be joined, only to become terms
        cost, steps = steps_between(4 * 144, before, after, mesh_shape)
        length, now = 0, list(before)
        for axis, new in steps:
            length += now[axis] != R
            now[axis] = new
        assert (length, cost) == cheapest((12, 12), before, after, mesh_shape), (before, after)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_one_move_receives_what_is_missing(n):
    """Without terms a rank cannot receive less than the elements that it lacks."""
    for before, after in product([R, Shard(0), Shard(1)], repeat=2):
        cost, _ = steps_between(4 * 144, (before,), (after,), (n,))
        missing = [
            len(held((12, 12), (after,), (n,), (k,)) - held((12, 12), (before,), (n,), (k,)))
            for k in range(n)
        ]
        assert cost == 4 * max(missing)


def test_few_collectives():
    chain = steps_between(256, (P,), (R,), (4,))[1]
    assert chain == ((0, R),)  # an all_reduce, not a reduce_scatter and an all_gather
    chain = steps_between(256, (Shard(0), Shard(0)), (R, R), (2, 2))[1]
    assert chain == ((1, R), (0, R))  # what was cut last is joined first


def moved_everywhere(ranks, shape):
    """Pairs of placements for which a rank gets another piece than its own of the whole."""
    mesh, wrong = ProcessMesh(ranks), []
    view = view_of(mesh)
    whole = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    choices = [*ALONG, Partial("avg")]
    for before, after in product(product(choices, repeat=mesh.ndim), repeat=2):
        if any(b.is_partial() and b != a for a, b in zip(before, after)):
            continue
        averages = Partial("avg") in before
        if averages and P in before:
            continue
        given = cut_whole(whole, before, view)
        if averages:
            given.local[...] = whole[np.ix_(*(range(a, a + n) for a, n in
                                    piece_of(shape, before, view.shape, view.place)))]  # fmt: skip
        found = given.move_to(after)
        assert found.local.shape == local_shape(shape, after, view.shape, view.place)
        if not np.array_equal(found.get(), whole):
            wrong.append(f"{before} -> {after}")
    return wrong


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("shape", [(4, 6), (5, 2), (13, 1)], ids=str)
@pytest.mark.parametrize("ranks", [[0, 1], [0, 1, 2, 3], [[0, 1], [2, 3]]], ids=str)
def test_pieces_arrive(ranks, shape):
    if np.ndim(ranks) == 2 and shape == (13, 1):
        shape = (3, 3)
    for wrong in dist.spawn(moved_everywhere, args=(ranks, shape), nprocs=np.size(ranks)).results:
        assert not wrong


def test_the_ranks_of_a_mesh_stand_in_any_order():
    """A piece is where the mesh says, and a gather puts it there again."""

    def work():
        mesh = ProcessMesh([[3, 1], [0, 2]])
        x = dist.shard_tensor(paddle.arange(4), mesh, [Shard(0), Shard(0)])
        first = mesh.get_rank_by_dim_and_process_id(0, dist.get_rank())
        place = 2 * first + mesh.get_rank_by_dim_and_process_id(1, dist.get_rank())
        return x._local_value().tolist() == [place], x.tolist()

    assert dist.spawn(work, nprocs=4).results == [(True, [0, 1, 2, 3])] * 4


def gather_inside():
    """A rank whose mesh is first used in a function that is traced, and the program as text."""
    mesh, w = dist.ProcessMesh([0, 1], dim_names=["x"]), paddle.ones([4, 2])

    def forward(x):
        pieces = dist.shard_tensor(w, mesh, [dist.Shard(0)])
        return (x @ dist.reshard(pieces, mesh, [dist.Replicate()])).sum()

    f = paddle.jit.to_static(forward, backend="interpreter")
    total = f(paddle.ones([3, 4])).item()
    return total, str(f.main_program), str(viz.program(f))


@pytest.mark.timeout(60)
def test_a_mesh_that_a_traced_function_is_first_to_use():
    """Each rank traces alone: one that waited for the others would wait for ever."""
    for total, text, drawn in dist.spawn(gather_inside, nprocs=2).results:
        assert total == 24
        assert "placements=(Replicate(),)" in text
        assert "reshard" in drawn


class Gathered(paddle.nn.Layer):
    def forward(self, x):
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        return dist.reshard(dist.shard_tensor(x, mesh, [dist.Shard(0)]), mesh, [dist.Replicate()])


@pytest.mark.timeout(60)
def test_a_file_holds_no_mesh(tmp_path):
    def save():
        spec = [paddle.static.InputSpec([4, 2])]
        path = f"{tmp_path}/{dist.get_rank()}"
        with pytest.raises(TypeError, match=r"jit.save: reshard with mesh="):
            paddle.jit.save(Gathered(), path, input_spec=spec)

    dist.spawn(save, nprocs=2)
    assert not [*tmp_path.iterdir()]
