"""Checks of 19_less_memory/states."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import ProcessMesh, Replicate, Shard
from minipaddle.distributed.auto_parallel.stages import bytes_held
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Shard the states: which part each rank keeps",
    level="medium",
    minutes=30,
    before=("16_data_parallel",),
    slots={"zero.pieces": "pieces"},
    hints=(
        "A parameter [8, 6] on a mesh of 2 by 3 ranks is cut along its axis 0 by the two. Into how "
        "many pieces would its axis 0 be cut if the three cut it as well?",
        "For one axis d of the parameter: the numbers of ranks along all axes of the mesh that cut "
        "d, with the stage's own. Do the rows divide by their product?",
        "found = the placements, each shard without its mark\n"
        "cut along the stage's axis already, or no axes → found\n"
        "equal = [d for which rows % (product of the ranks that cut d, and the stage's) == 0]\n"
        "found[axis] = Shard(the first of them, or 0)",
    ),
    wrong={
        "whole states on all ranks": "found[axis] = Shard(equal[0] if equal else 0) → pass",
        "always the first axis": "equal[0] if equal else 0 → 0",
        "the last axis that fits": "equal[0] → equal[-1]",
        "what does not divide stays whole": (
            "found[axis] = Shard(equal[0] if equal else 0) → "
            "found[axis] = Shard(equal[0]) if equal else found[axis]"
        ),
        "other axes of the mesh do not count": ("k == axis or found[k].is_shard(d) → k == axis"),
        "all axes of the mesh count": "k == axis or found[k].is_shard(d) → True",
        "the axes that cut anything count": "found[k].is_shard(d) → found[k].is_shard()",
        "only those that cut it already": (
            "k == axis or found[k].is_shard(d) → found[k].is_shard(d)"
        ),
        "the sum of the ranks, not their product": "prod(cutting) → sum(cutting)",
        "cut twice along one axis of the mesh": (
            "found[axis].is_shard() or not param.ndim → not param.ndim"
        ),
        "scalars cut": "found[axis].is_shard() or not param.ndim → found[axis].is_shard()",
        "the mark stays": "Shard(p.dim, p.unit) if p.is_shard() else p → p",
        "the blocks forgotten": "Shard(p.dim, p.unit) → Shard(p.dim)",
        "always axis 0 of the mesh": "mesh.axis(self.axis) → 0",
    },
)
MESH = ProcessMesh(np.arange(4).tolist(), dim_names=["dp"])
GRID = ProcessMesh(np.arange(6).reshape(2, 3).tolist(), dim_names=["dp", "mp"])


def placed(yours, axis, shape, placements, mesh):
    """What the reader's function says of a parameter, and whether shards are marked as stored."""
    given = {"axis": axis, "shape": shape, "placements": placements, "mesh": mesh}
    param = SimpleNamespace(
        process_mesh=mesh, placements=[*placements], shape=[*shape], ndim=len(shape)
    )
    got = yours.pieces(SimpleNamespace(axis=axis), param)
    expect_that(type(got) is tuple and len(got) == mesh.ndim, "a tuple with a placement for each "
                "axis of the mesh", given=given, got=got)  # fmt: skip
    expect_that(not any(p.stored for p in got), "no shard is stored", given=given, got=got)
    expect_that(param.placements == [*placements], "the parameter's own list is as it was",
                given=given, got=param.placements)  # fmt: skip
    return got, given


@exercise.example
def one_axis_of_ranks(yours):
    """Four ranks: [6, 8] along axis 1, [6, 10] along axis 0 in unequal pieces, a scalar whole."""
    for shape, expected in (
        ([8, 8], Shard(0)),
        ([6, 8], Shard(1)),
        ([6, 10], Shard(0)),
        ([3], Shard(0)),
        ([3, 5, 12], Shard(2)),
        ([], Replicate()),
        ([0, 5], Shard(0)),
    ):
        got, given = placed(yours, "dp", shape, [Replicate()], MESH)
        expect(got, (expected,), given=given)
    many = [5] * 9 + [4]
    got, given = placed(yours, 0, many, [Replicate()], MESH)
    expect(got, (Shard(9),), given=given)


@exercise.example
def what_is_cut_already(yours):
    """A shard on the stage's axis stays, without the mark that it is only stored."""
    for p in (Shard(1), Shard(1, stored=True), Shard(0, 2)):
        got, given = placed(yours, "dp", [8, 8], [p], MESH)
        expect(got, (Shard(p.dim, p.unit),), given=given)
    expect(got[0].unit, 2, given="cut between blocks of two rows")


@exercise.example
def beside_tensor_parallel(yours):
    """A mesh of 2 by 3: the other axis keeps its placement, and its pieces are cut further."""
    whole = Replicate()
    for axis, shape, before, expected in (
        ("dp", [6, 4], [whole, Shard(0)], (Shard(0), Shard(0))),  # 6 rows make 2 x 3 pieces
        ("dp", [9, 4], [whole, Shard(0)], (Shard(1), Shard(0))),  # 9 do not, 4 columns make 2
        ("dp", [9, 3], [whole, Shard(0)], (Shard(0), Shard(0))),
        ("mp", [4, 6], [Shard(0), whole], (Shard(0), Shard(1))),
        ("mp", [4, 6], [Shard(1, stored=True), whole], (Shard(1), Shard(1))),
        ("mp", [12, 6], [Shard(0, 2), whole], (Shard(0, 2), Shard(0))),
        (1, [9, 5], [whole, whole], (whole, Shard(0))),
        ("mp", [5, 8], [Shard(1), whole], (Shard(1), Shard(0))),
        ("dp", [4, 9], [whole, Shard(1, stored=True)], (Shard(0), Shard(1))),
        ("mp", [4], [Shard(0), whole], (Shard(0), Shard(0))),
        ("mp", [], [whole, whole], (whole, whole)),
    ):
        got, given = placed(yours, axis, shape, before, GRID)
        expect(got, expected, given=given)
        expect([p.unit for p in got if p.is_shard()], [p.unit for p in expected if p.is_shard()],
               given=given, why="the rows of a block")  # fmt: skip


def sizes(n: int, parts: int) -> set[int]:
    """The numbers of rows of `parts` pieces: as many as go round, then fewer."""
    each = -(-n // parts)
    return {max(0, min(each, n - each * k)) for k in range(parts)}


@exercise.property(
    ranks=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    shape=st.lists(st.integers(0, 12), min_size=0, max_size=4),
    seed=st.integers(0, 9999),
)
def the_first_axis_with_equal_pieces(yours, ranks, shape, seed):
    """Any mesh and shape: pieces counted one by one."""
    draw = np.random.default_rng(seed)
    mesh = ProcessMesh(np.arange(np.prod(ranks)).reshape(ranks).tolist())
    before = [
        Shard(int(draw.integers(len(shape)))) if shape and draw.random() < 0.5 else Replicate()
        for _ in ranks
    ]
    axis = int(draw.integers(len(ranks)))
    before[axis] = Replicate()
    got, given = placed(yours, axis, shape, before, mesh)
    others = [p for k, p in enumerate(got) if k != axis]
    expect(others, before[:axis] + before[axis + 1 :], given=given)
    if not shape:
        expect(got[axis], Replicate(), given=given)
        return
    fits = []
    for d, n in enumerate(shape):
        parts = ranks[axis]
        for p, k in zip(before, ranks, strict=True):
            parts *= k if p == Shard(d) else 1
        if len(sizes(n, parts)) == 1 and n // parts * parts == n:
            fits.append(d)
    expect(got[axis], Shard(fits[0] if fits else 0), given=given)


def train(stage: int, ranks: int):
    """Losses, and the bytes that this rank holds, of a perceptron under Adam."""
    paddle.seed(3)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))
    adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(8, 6)).astype("float32"))
    if stage:
        mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
        dist.shard_layer(net, mesh)
        kind = getattr(dist, f"ShardingStage{stage}")
        adam = dist.shard_optimizer(adam, kind("dp"))
        x = dist.shard_tensor(x, mesh, [dist.Shard(0)])
    losses = []
    for _ in range(3):
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(float(loss))
    return losses, bytes_held(net, adam)["states"]


@exercise.example
def a_model_trains_on_it(yours):
    """Stages 1 and 3 of two ranks: the losses of one process, and half of Adam's states."""
    expected, whole = train(0, 1)
    scalars = 4 * 2 * 4  # the powers of beta of four weights are in every rank
    for stage in (1, 3):
        with exercise.plugged(yours):
            found = dist.spawn(train, args=(stage, 2), nprocs=2, timeout=20.0).results
        for losses, _ in found:
            expect(losses, expected, given={"stage": stage}, rtol=1e-5)
        held = [states - scalars for _, states in found]
        expect(sum(held), whole - scalars, given={"stage": stage}, why="bytes of all ranks")
        expect_that(max(held) <= 0.52 * (whole - scalars), "half of the states in each rank",
                    given={"stage": stage}, got=held)  # fmt: skip
