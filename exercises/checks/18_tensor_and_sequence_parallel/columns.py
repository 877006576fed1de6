"""Checks of 18_tensor_and_sequence_parallel/columns."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard, fleet
from minipaddle.distributed.fleet import meta_parallel as mp
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Columns: each rank computes some columns of a layer",
    level="easy",
    minutes=20,
    before=("16_data_parallel",),
    slots={"fleet.cut_columns": "build_layout", "fleet.columns": "forward"},
    hints=(
        "Column j of x @ weight: which numbers of the weight does it need, and which of the bias?",
        "Which axis of [in_features, out_features] counts the columns of the result? The bias has "
        "one axis alone.",
        "build_layout: axis 1 of the weight, axis 0 of the bias\n"
        "forward: y = self.apply_linear(self.require_pieces(x), self.bias)\n"
        "    if self.gather_output: y along mp as Replicate()\n"
        "    return y",
    ),
    unkillable={
        "return LayerLayout({'weight': 1, 'bias': 0}) → "
        "return LayerLayout({'weight': 1, 'bias': -1})": "a bias has one axis",
    },
    wrong={
        "rows instead of columns": '{"weight": 1, "bias": 0} → {"weight": 0, "bias": 0}',
        "a whole weight": '{"weight": 1, "bias": 0} → {"weight": None, "bias": 0}',
        "a whole bias": '{"weight": 1, "bias": 0} → {"weight": 1, "bias": None}',
        "a bias that is on no mesh": '{"weight": 1, "bias": 0} → {"weight": 1}',
        "no bias": (
            "self.apply_linear(self.require_pieces(x), self.bias) → "
            "self.apply_linear(self.require_pieces(x), None)"
        ),
        "always all columns": (
            "self.move_along_mp(y, Replicate()) if self.gather_output else y → "
            "self.move_along_mp(y, Replicate())"
        ),
        "never all columns": (
            "self.move_along_mp(y, Replicate()) if self.gather_output else y → y"
        ),
        "the other way round": (
            "self.move_along_mp(y, Replicate()) if self.gather_output else y → "
            "y if self.gather_output else self.move_along_mp(y, Replicate())"
        ),
        "whatever this rank was given": "self.require_pieces(x) → x",
    },
)  # fmt: skip


@exercise.mistake("gathered before the bias")
def forward(self, x):
    y = self.apply_linear(self.require_pieces(x), None)
    y = self.move_along_mp(y, Replicate()) if self.gather_output else y
    return y if self.bias is None else y + self.move_along_mp(self.bias, Replicate())


def begin(**degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group().mesh


def on_rank(x, weight, bias, gather):
    """What a rank has: weight, bias, result, placements, and its pieces of the gradients."""
    mesh = begin(mp_degree=dist.get_world_size())
    layer = mp.ColumnParallelLinear(*weight.shape, has_bias=bias is not None, gather_output=gather)
    layer.weight.set_value(weight)
    if bias is not None:
        layer.bias.set_value(bias)
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [], stop_gradient=False)
    y = layer(x)
    (y * y).sum().backward()
    found = [layer.weight, layer.weight.grad]
    found += [] if bias is None else [layer.bias, layer.bias.grad]
    pieces = [p._local_value().numpy() for p in (y, *found)]
    return y.placements, pieces, dist.unshard_dtensor(x.grad).numpy()


def tight(x) -> float:
    """The relative precision of a dtype."""
    return 1e-3 if x.dtype == np.float32 else 1e-9


def compare(yours, x, weight, bias, gather, ranks):
    """Hold all that ranks have to NumPy."""
    given = {"x": x.shape, "weight": weight.shape, "gather_output": gather, "ranks": ranks}
    given["bias"] = bias is not None
    paddle.set_default_dtype(str(x.dtype))
    try:
        with exercise.plugged(yours):
            args = x, weight, bias, gather
            results = dist.spawn(on_rank, args=args, nprocs=ranks, timeout=20.0).results
    finally:
        paddle.set_default_dtype("float32")
    y = x @ weight + (0 if bias is None else bias)
    slope = (2 * y).reshape(-1, y.shape[-1])
    wholes = [y, weight, x.reshape(-1, x.shape[-1]).T @ slope]
    wholes += [] if bias is None else [bias, slope.sum(0)]
    each = -(-weight.shape[1] // ranks)
    for rank, (placements, pieces, x_grad) in enumerate(results):
        lies = Replicate() if gather else Shard(y.ndim - 1)
        expect(placements, [lies], given=given, why="how the result lies")
        mine = slice(each * rank, each * (rank + 1))
        names = ("result", "weight", "its gradient", "bias", "its gradient")
        for k, (whole, got) in enumerate(zip(wholes, pieces, strict=True)):
            whole = whole if gather and k == 0 else whole[..., mine]
            expect(str(got.dtype), str(x.dtype), given=given, why=f"dtype: {names[k]}")
            expect(got, whole, given=given | {"rank": rank}, why=names[k], rtol=tight(x), atol=0)
        expect(x_grad, 2 * y @ weight.T, given=given, why="x.grad", rtol=tight(x), atol=0)


@exercise.example
def six_columns_on_two_ranks(yours):
    """Three columns each; gathered or not; with a bias or without."""
    for dtype in ("float32", "float64"):
        x = np.arange(8, dtype=dtype).reshape(2, 4) / 4 + 1
        weight = np.arange(24, dtype=dtype).reshape(4, 6) / 16 + 1
        for gather in (False, True):
            for bias in (np.arange(6, dtype=dtype) + 1, None):
                compare(yours, x, weight, bias, gather, 2)


@exercise.property(
    shape=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    columns=st.integers(5, 9),
    ranks=st.integers(1, 3),
    bias=st.booleans(),
    scale=st.sampled_from([0, -6]),
    gather=st.booleans(),
    examples=12,
)
def any_shape_on_any_number_of_ranks(yours, shape, columns, ranks, bias, scale, gather):
    """Columns that do not divide: the last rank has fewer."""
    draw = np.random.default_rng(columns)
    x, weight, b = (
        draw.normal(size=s) * 10.0**scale for s in ((2, *shape), (shape[-1], columns), (columns,))
    )
    compare(yours, x, weight, b if bias else None, gather, ranks)


def beside_data_parallel(gather):
    """On a mesh of 2 by 2: the result, and the error for a tensor of this rank alone."""
    mesh = begin(dp_degree=2, mp_degree=2)
    paddle.seed(1)
    layer = mp.ColumnParallelLinear(3, 4, has_bias=True, gather_output=gather)
    refused = False
    try:
        layer(paddle.ones([2, 3]))
    except ValueError as error:
        refused = "this rank alone" in str(error)
    x = dist.shard_tensor(paddle.ones([4, 3]), mesh, [Shard(0), Replicate()])
    return refused, layer(x).placements, layer.weight.placements


@exercise.example
def the_batch_cut_as_well(yours):
    """On 2 by 2 ranks the batch stays cut along dp, and what lies nowhere is refused."""
    for gather in (False, True):
        with exercise.plugged(yours):
            results = dist.spawn(beside_data_parallel, args=(gather,), nprocs=4, timeout=20.0)
        for refused, result, weight in results.results:
            lies = [Shard(0), Replicate() if gather else Shard(1)]
            expect(result, lies, given={"gather_output": gather}, why="how the result lies")
            expect(weight, [Replicate(), Shard(1)], given={}, why="how the weight lies")
            expect_that(refused, "an error for a tensor of this rank alone (self.require_pieces)",
                        given={"mesh": "dp 2, mp 2"})  # fmt: skip


def counted(gather):
    """The collectives in the program of a rank."""
    mesh = begin(mp_degree=2)
    layer = mp.ColumnParallelLinear(8, 6, has_bias=True, gather_output=gather)
    step = paddle.jit.to_static(lambda x: layer(x))
    step(dist.shard_tensor(paddle.ones([4, 8]), mesh, []))
    ((part, _),) = step.concrete_program.executables.parts.values()
    return [r.op.name for r in part.records if "group" in r.attrs]


@exercise.example
def what_travels(yours):
    """Nothing, unless all columns are asked for: then one all-gather."""
    for gather, expected in ((False, []), (True, ["all_gather"])):
        with exercise.plugged(yours):
            found = dist.spawn(counted, args=(gather,), nprocs=2, timeout=20.0).results
        expect(found[0], expected, given={"gather_output": gather}, why="collectives forward")
