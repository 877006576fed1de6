"""Checks of 18_tensor_and_sequence_parallel/sequence."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard, fleet
from minipaddle.distributed.fleet.utils import sequence_parallel_utils as sp
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Sequence: scatter, gather, and columns of what was gathered",
    level="easy",
    minutes=25,
    before=("18_tensor_and_sequence_parallel/rows",),
    slots={
        "fleet.scatter": "scatter",
        "fleet.all_gather": "all_gather",
        "fleet.sequence_columns": "forward",
    },
    hints=(
        "A column layer needs all of x. What does a rank have of a sequence in pieces, and what "
        "has to be moved before the product?",
        "How does the result of each function lie along mp: whole, or in pieces along which axis?",
        "scatter: moved as Shard(axis); all_gather: moved as Replicate()\n"
        "forward: x along mp as Replicate(), then applied with the bias; no move afterwards",
    ),
    wrong={
        "always axis 0": "Shard(axis) → Shard(0)",
        "nothing is cut": "scatter(): move_along_mp(input, Shard(axis), 'ScatterOp') → input",
        "nothing is gathered": (
            "all_gather(): move_along_mp(input, Replicate(), 'AllGatherOp') → input"
        ),
        "gathered into other pieces": "all_gather(): Replicate() → Shard(1)",
        "a bad name": "'ScatterOp' → 'S'",
        "another bad name": "'AllGatherOp' → 'A'",
        "no bias": "self.apply_linear(self.move_along_mp(x, Replicate()), self.bias) → "
                   "self.apply_linear(self.move_along_mp(x, Replicate()), None)",
        "a sequence in pieces": "self.move_along_mp(x, Replicate()) → x",
        "all columns in each rank": (
            "self.apply_linear(self.move_along_mp(x, Replicate()), self.bias) → "
            "self.move_along_mp("
            "self.apply_linear(self.move_along_mp(x, Replicate()), self.bias), Replicate())"
        ),
    },
)  # fmt: skip


def begin():
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"mp_degree": dist.get_world_size()}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group().mesh


def piece(a, axis: int, rank: int, ranks: int):
    """What rank has of a along an axis."""
    each = -(-a.shape[axis] // ranks)
    return np.take(a, range(each * rank, min(a.shape[axis], each * (rank + 1))), axis)


def moves(x, axis):
    """Scattered along an axis, gathered again: pieces, whole, and the gradient of both."""
    mesh, ops = begin(), (sp.ScatterOp, sp.AllGatherOp)
    errors = []
    for op in ops:
        try:
            op.apply(paddle.ones([4, 2]))
            errors.append("")
        except ValueError as error:
            errors.append(str(error).split(" was given")[0])
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [], stop_gradient=False)
    y = sp.ScatterOp.apply(x, axis) if axis else sp.scatter(x)
    z = sp.all_gather(y * y)
    (z * z).sum().backward()
    pieces = [each._local_value().numpy() for each in (y, z)]
    lies = [*y.placements, *z.placements]
    return lies, pieces, dist.unshard_dtensor(x.grad).numpy(), errors


@exercise.property(
    time=st.integers(4, 9), axis=st.integers(-3, 2), ranks=st.integers(2, 3), examples=10
)
def scattered_and_gathered(yours, time, axis, ranks):
    """Pieces along any axis, the whole again, and the gradient of x⁴; errors name the operation."""
    shape = [5, 4, 6]
    shape[axis] = time
    x = np.random.default_rng(time).normal(size=shape)
    x = x.astype("float32" if time % 2 else "float64")
    given = {"shape": shape, "axis": axis, "ranks": ranks}
    with exercise.plugged(yours):
        results = dist.spawn(moves, args=(x, axis), nprocs=ranks, timeout=20.0).results
    for rank, (lies, (y, z), grad, errors) in enumerate(results):
        expect(lies, [Shard(axis % 3), Replicate()], given=given, why="how the results lie")
        expect([str(a.dtype) for a in (y, z)], [str(x.dtype)] * 2, given=given, why="dtypes")
        rtol = 1e-9 if x.dtype == np.float64 else 1e-5
        expect(y, piece(x, axis, rank, ranks), given=given, why="the piece")
        expect(z, x * x, given=given, why="gathered", rtol=rtol)
        expect(grad, 4 * x**3, given=given, why="gradient", rtol=rtol)
        expect(errors, ["ScatterOp", "AllGatherOp"], given=given,
               why="the names in errors for a tensor of this rank alone")  # fmt: skip


def columns(x, weight, bias):
    """Result and gradients of the layer for a sequence in pieces."""
    mesh = begin()
    layer = sp.ColumnSequenceParallelLinear(
        *weight.shape, has_bias=bias is not None, gather_output=False
    )
    layer.weight.set_value(weight)
    if bias is not None:
        layer.bias.set_value(bias)
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(0)], stop_gradient=False)

    @paddle.jit.to_static
    def step(x):
        y = layer(x)
        return y, paddle.grad((y * y).sum(), x)[0]

    y, slope = step(x)
    ((part, _),) = step.concrete_program.executables.parts.values()
    names = [r.op.name for r in part.records if "group" in r.attrs]
    again = layer(x)
    lies = [*y.placements, *again.placements]
    return lies, [a._local_value().numpy() for a in (y, again, slope)], sorted(names)


@exercise.example
def columns_of_a_sequence(yours):
    """Two and three ranks: gathered before the product, its gradient reduce-scattered."""
    draw = np.random.default_rng(0)
    for ranks, bias, dtype in ((2, True, "float64"), (3, False, "float64"), (2, True, "float32")):
        x, weight, b = (draw.normal(size=s).astype(dtype) for s in ((6, 2, 4), (4, 6), 6))
        b = b if bias else None
        paddle.set_default_dtype(dtype)
        try:
            with exercise.plugged(yours):
                args = x, weight, b
                results = dist.spawn(columns, args=args, nprocs=ranks, timeout=20.0).results
        finally:
            paddle.set_default_dtype("float32")
        given = {"ranks": ranks, "bias": bias}
        y = x @ weight + (b if bias else 0)
        for rank, (lies, found, names) in enumerate(results):
            expect(lies, [Shard(2)] * 2, given=given, why="how the result lies")
            own = piece(y, 2, rank, ranks)
            slope = piece(2 * y @ weight.T, 0, rank, ranks)
            for got, right, why in zip(found, (own, own, slope), ("captured", "eager", "x.grad")):
                expect(str(got.dtype), dtype, given=given, why=f"the dtype, {why}")
                rtol = 1e-9 if dtype == "float64" else 1e-3
                expect(got, right, given=given, why=why, rtol=rtol)
            expect_that(names == ["all_gather", "reduce_scatter"],
                        "one all-gather forward, one reduce-scatter backward",
                        given=given, got=names)  # fmt: skip
