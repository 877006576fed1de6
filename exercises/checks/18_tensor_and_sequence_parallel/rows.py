"""Checks of 18_tensor_and_sequence_parallel/rows."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard, fleet
from minipaddle.distributed.fleet import meta_parallel as mp
from minipaddle.distributed.fleet.utils import sequence_parallel_utils as sp
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Rows: each rank has one term of a sum",
    level="medium",
    minutes=25,
    before=("18_tensor_and_sequence_parallel/columns",),
    slots={"fleet.cut_rows": "build_layout", "fleet.rows": "forward"},
    hints=(
        "[1, 2] @ weight is 1 times the first row of the weight and 2 times the second. If two "
        "ranks have one row each, what must happen before a bias is added?",
        "Which axis of [in_features, out_features] is multiplied with the columns of x? And how "
        "often would a bias be in a sum of n terms, if each rank added it to its own?",
        "build_layout: axis 0 of the weight, None for the bias\n"
        "forward: y = self.apply_linear(self.require_pieces(x), None)\n"
        "    y along mp as self.result\n"
        "    add the bias, if there is one",
    ),
    wrong={
        "columns instead of rows": '{"weight": 0, "bias": None} → {"weight": 1, "bias": None}',
        "a whole weight": '{"weight": 0, "bias": None} → {"weight": None, "bias": None}',
        "a bias in pieces": '{"weight": 0, "bias": None} → {"weight": 0, "bias": 0}',
        "a bias that is on no mesh": '{"weight": 0, "bias": None} → {"weight": 0}',
        "no bias": "total if self.bias is None else total + self.bias → total",
        "the bias twice": "self.apply_linear(self.require_pieces(x), None) → "
                          "self.apply_linear(self.require_pieces(x), self.bias)",
        "terms that stay": "self.move_along_mp(terms, self.result) → terms",
        "always an all-reduce": (
            "self.move_along_mp(terms, self.result) → "
            "self.move_along_mp(terms, __import__('minipaddle').distributed.Replicate())"
        ),
        "the pieces of x gathered": (
            "self.apply_linear(self.require_pieces(x), None) → "
            "self.apply_linear(self.move_along_mp(self.require_pieces(x), "
            "__import__('minipaddle').distributed.Replicate()), None)"
        ),
        "whatever this rank was given": "self.require_pieces(x) → x",
    },
)  # fmt: skip


@exercise.mistake("the bias in the term of every rank")
def forward(self, x):
    y = self.apply_linear(self.require_pieces(x), self.bias)
    return self.move_along_mp(y, self.result)


@exercise.mistake("the whole sum in each rank, cut afterwards")
def forward(self, x):  # noqa: F811
    from minipaddle.distributed import Replicate

    y = self.move_along_mp(self.apply_linear(self.require_pieces(x), None), Replicate())
    y = y if self.bias is None else y + self.bias
    return self.move_along_mp(y, self.result)


def begin(**degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group().mesh


def layer_of(kind, rows, columns, bias, parallel):
    """A row layer; that of sequence parallel leaves pieces of the sum along axis 0."""
    made = mp.RowParallelLinear if kind == "rows" else sp.RowSequenceParallelLinear
    return made(rows, columns, has_bias=bias, input_is_parallel=parallel)


def on_rank(kind, x, weight, bias):
    """What a rank has: how things lie, and its pieces of the result and of the parameters."""
    mesh = begin(mp_degree=dist.get_world_size())
    layer = layer_of(kind, *weight.shape, bias is not None, True)
    layer.weight.set_value(weight)
    if bias is not None:
        layer.bias.set_value(bias)
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(x.ndim - 1)], stop_gradient=False)
    y = layer(x)
    (y * y).sum().backward()
    found = [y, layer.weight, layer.weight.grad, x.grad]
    lies = [y.placements, layer.weight.placements]
    grads = []
    if bias is not None:
        lies.append(layer.bias.placements)
        grads.append(dist.unshard_dtensor(layer.bias.grad).numpy())
    return lies, [p._local_value().numpy() for p in found], grads


def tight(x) -> float:
    """The relative precision of a dtype."""
    return 1e-3 if x.dtype == np.float32 else 1e-9


def compare(yours, kind, x, weight, bias, ranks):
    """Hold all that ranks have to NumPy."""
    given = {"layer": kind, "x": x.shape, "weight": weight.shape, "ranks": ranks}
    given["bias"] = bias is not None
    paddle.set_default_dtype(str(x.dtype))
    try:
        with exercise.plugged(yours):
            args = kind, x, weight, bias
            results = dist.spawn(on_rank, args=args, nprocs=ranks, timeout=20.0).results
    finally:
        paddle.set_default_dtype("float32")
    y = x @ weight + (0 if bias is None else bias)
    slope = (2 * y).reshape(-1, y.shape[-1])
    each, lines = -(-weight.shape[0] // ranks), -(-len(x) // ranks)
    for rank, (lies, pieces, grads) in enumerate(results):
        result = Replicate() if kind == "rows" else Shard(0)
        expect(lies, [[result], [Shard(0)], [Replicate()]][: len(lies)], given=given,
               why="how result, weight and bias lie")  # fmt: skip
        mine, first = slice(each * rank, each * (rank + 1)), slice(lines * rank, lines * (rank + 1))
        wholes = (
            y if kind == "rows" else y[first],
            weight[mine],
            (x.reshape(-1, x.shape[-1]).T @ slope)[mine],
            (2 * y @ weight.T)[..., mine],
        )
        names = ("result", "weight", "its gradient", "x.grad")
        for what, whole, got in zip(names, wholes, pieces, strict=True):
            expect(str(got.dtype), str(x.dtype), given=given, why=f"dtype: {what}")
            expect(got, whole, given=given | {"rank": rank}, why=what, rtol=tight(x), atol=0)
        for got in grads:
            expect(got, slope.sum(0), given=given, why="bias.grad", rtol=tight(x), atol=0)


@exercise.example
def six_rows_on_two_ranks(yours):
    """Three rows each; the sum whole, or in pieces of the sequence."""
    for dtype in ("float32", "float64"):
        x = np.arange(12, dtype=dtype).reshape(2, 6) / 4 + 1
        weight = np.arange(24, dtype=dtype).reshape(6, 4) / 16 + 1
        for kind in ("rows", "sequence"):
            for bias in (np.arange(4, dtype=dtype) + 1, None):
                compare(yours, kind, x, weight, bias, 2)


@exercise.property(
    shape=st.lists(st.integers(1, 3), max_size=2),
    rows=st.integers(5, 9),
    columns=st.integers(2, 5),
    ranks=st.integers(1, 3),
    bias=st.booleans(),
    scale=st.sampled_from([0, -6]),
    kind=st.sampled_from(["rows", "sequence"]),
    examples=12,
)
def any_shape_on_any_number_of_ranks(yours, shape, rows, columns, ranks, bias, scale, kind):
    """Rows that do not divide: the last rank has fewer."""
    draw = np.random.default_rng(columns)
    x, weight, b = (
        draw.normal(size=s) * 10.0**scale for s in ((5, *shape, rows), (rows, columns), (columns,))
    )
    compare(yours, kind, x, weight, b if bias else None, ranks)


def beside_data_parallel():
    """On a mesh of 2 by 2: the result, and the error for a tensor of this rank alone."""
    mesh = begin(dp_degree=2, mp_degree=2)
    paddle.seed(1)
    layer, refused = mp.RowParallelLinear(4, 3), False
    try:
        layer(paddle.ones([2, 4]))
    except ValueError as error:
        refused = "this rank alone" in str(error)
    x = dist.shard_tensor(paddle.ones([4, 4]), mesh, [Shard(0), Replicate()])
    return refused, layer(x).placements, layer.weight.placements


@exercise.example
def the_batch_cut_as_well(yours):
    """On 2 by 2 ranks the batch stays cut along dp, and what lies nowhere is refused."""
    with exercise.plugged(yours):
        results = dist.spawn(beside_data_parallel, nprocs=4, timeout=20.0).results
    for refused, result, weight in results:
        expect(result, [Shard(0), Replicate()], given={}, why="how the result lies")
        expect(weight, [Replicate(), Shard(0)], given={}, why="how the weight lies")
        expect_that(refused, "an error for a tensor of this rank alone (self.require_pieces)",
                    given={"mesh": "dp 2, mp 2"})  # fmt: skip


def counted(kind, parallel):
    """The collectives in the program of a rank."""
    mesh = begin(mp_degree=2)
    layer = layer_of(kind, 8, 6, True, parallel)
    step = paddle.jit.to_static(lambda x: layer(x))
    step(dist.shard_tensor(paddle.ones([4, 8]), mesh, [Shard(1)] if parallel else []))
    ((part, _),) = step.concrete_program.executables.parts.values()
    return [r.op.name for r in part.records if "group" in r.attrs]


@exercise.example
def what_travels(yours):
    """One all-reduce, also where x is whole; of a sequence in pieces one reduce-scatter."""
    for kind, parallel in (("rows", True), ("rows", False), ("sequence", True)):
        with exercise.plugged(yours):
            found = dist.spawn(counted, args=(kind, parallel), nprocs=2, timeout=20.0).results
        expected = ["all_reduce" if kind == "rows" else "reduce_scatter"]
        given = {"layer": kind, "x in pieces": parallel}
        expect(found[0], expected, given=given, why="collectives forward")
