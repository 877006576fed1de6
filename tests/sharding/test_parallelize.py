"""`dist.parallelize` and sequences in pieces train as one process does."""

import inspect
import json
from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.nn import functional as F

from .models import Block
from .test_meta_parallel import SIGNATURES
from .test_topology import begin

COLUMNS_AND_ROWS = {
    "words": dist.RowWiseParallel,
    "blocks.*.qkv": dist.ColWiseParallel,
    "blocks.*.up": dist.ColWiseParallel,
    "blocks.*.out": dist.RowWiseParallel,
    "blocks.*.down.weight": dist.RowWiseParallel,
}
IN_SEQUENCE = {
    "blocks.*.norm1": lambda: dist.SequenceParallelEnable(),
    "blocks.*.norm2": lambda: dist.SequenceParallelEnable(),
}


class GPT(nn.Layer):
    def __init__(self, words=33, width=24, heads=6):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.LayerList([Block(width, heads, 0.1)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for block in [y := self.words(x), *self.blocks][1:]:
            y = block(y)
        return self.norm(y) @ self.words.weight.t()


def train(mesh=None, plans=None, steps=8):
    paddle.seed(3)
    net = GPT()
    x, y = map(paddle.to_tensor, np.random.default_rng(0).integers(0, 33, (2, 4, 8)))
    adam = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=net.parameters())
    if mesh is not None:
        config = {"mp_config": {"parallelize_plan": {k: make() for k, make in plans.items()}}}
        net, adam = dist.parallelize(net, adam, mesh, config)
        cut = [dist.Shard(0) if n == "dp" else dist.Replicate() for n in mesh.dim_names]
        x, y = (dist.shard_tensor(each, mesh, cut) for each in (x, y))

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return [float(step(x, y)) for _ in range(steps)]


one_process = cache(train)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("plans", [COLUMNS_AND_ROWS, COLUMNS_AND_ROWS | IN_SEQUENCE])
@pytest.mark.parametrize("ranks", [[0, 1], [0, 1, 2], [[0, 1], [2, 3]]])
def test_training(ranks, plans):
    mesh = dist.ProcessMesh(ranks, dim_names=["dp", "mp"][-np.ndim(ranks) :])
    expected = one_process()
    for found in dist.spawn(train, args=(mesh, plans), nprocs=np.size(ranks)).results:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


NAMES = (
    "parallelize ColWiseParallel ColWiseParallel.gather_output_hook RowWiseParallel "
    "RowWiseParallel.split_input_hook SequenceParallelBegin SequenceParallelEnd "
    "SequenceParallelBegin.sequence_parallel_begin SequenceParallelEnd.sequence_parallel_end "
    "SequenceParallelEnable SequenceParallelEnable.sequence_parallel_begin "
    "SequenceParallelEnable.sequence_parallel_end SequenceParallelDisable "
    "SequenceParallelDisable.sequence_parallel_begin PrepareLayerInput PrepareLayerOutput "
    "SequenceParallelDisable.sequence_parallel_end"
)
UTILS = (
    "scatter all_gather reduce_scatter mark_as_sequence_parallel_parameter "
    "is_sequence_parallel_parameter register_sequence_parallel_allreduce_hooks "
    "ColumnSequenceParallelLinear RowSequenceParallelLinear"
)
EVERY = [f"paddle.distributed.{n}" for n in NAMES.split(" ")] + [
    f"paddle.distributed.fleet.utils.sequence_parallel_utils.{n}" for n in UTILS.split(" ")
]


@pytest.mark.parametrize("name", EVERY)
def test_signatures_are_those_of_paddle(name):
    given, found = json.loads(SIGNATURES.read_text())["signatures"][name], paddle
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    own = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    assert [p.name for p in own] == [p["name"] for p in given]
    assert [repr(p.default) for p in own if p.default is not p.empty] == [
        p["default"] for p in given if "default" in p
    ]


def test_plans_move_what_they_say():
    def rank():
        mesh, seen = dist.ProcessMesh([0, 1], dim_names=["mp"]), []
        for first, second in (
            (dist.SequenceParallelBegin(), dist.SequenceParallelEnd()),
            (dist.SequenceParallelBegin(False), dist.SequenceParallelEnd(False)),
        ):
            net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            note = dist.PrepareLayerInput(lambda mesh: lambda _, x: seen.append(x[0]._local_shape))
            plans = {"0": first, "1": note, "2": second}
            dist.parallelize(net, None, mesh, {"mp_config": {"parallelize_plan": plans}})
            seen.append(net(paddle.ones([2, 6, 4]))._local_shape)
        gather = {"0": dist.ColWiseParallel(gather_output=True)}
        net = nn.Sequential(nn.Linear(4, 6))
        dist.parallelize(net, None, mesh, {"mp_config": {"parallelize_plan": gather}})
        return seen, net(paddle.ones([2, 4])).placements

    for seen, gathered in dist.spawn(rank, nprocs=2).results:
        assert seen == [[3, 2, 4], [2, 6, 4], [2, 3, 4], [2, 6, 4]]
        assert gathered == [dist.Replicate()]


@pytest.mark.parametrize(
    ("config", "error", "match"),
    [
        ({"pp_config": {"split_spec": "0"}}, ValueError, "an axis named pp"),
        ({"dp_config": {"sharding_level": 5}}, (NotImplementedError, ValueError), "sharding_level"),
        ({"cp_config": {}}, ValueError, "cp_config"),
        ({"mp_config": {"parallelize_plan": {"nobody": dist.ColWiseParallel()}}},
         ValueError, "'nobody', which is no layer"),
        ({"mp_config": {"parallelize_plan": {"0": "columns"}}}, ValueError, "'columns' for '0'"),
        ({"mp_config": {"parallelize_plan": {"1": dist.ColWiseParallel()}}},
         ValueError, "ColWiseParallel for ReLU, which has no weight"),
    ],
)  # fmt: skip
def test_what_is_refused(config, error, match):
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    mesh = dist.ProcessMesh([0], dim_names=["mp"])
    with pytest.raises(error, match=match):
        dist.parallelize(net, None, mesh, config)


def test_layers_in_sequence_parallel():
    """Their values and gradients are those of one process."""

    def rank(width=4):
        group, utils = begin(mp_degree=2), fleet.utils.sequence_parallel_utils
        paddle.seed(5)
        up = utils.ColumnSequenceParallelLinear(width, 8, has_bias=True, gather_output=False)
        down = utils.RowSequenceParallelLinear(8, width, input_is_parallel=True)
        x = dist.shard_tensor(
            paddle.arange(40, dtype="float32").reshape([5, 2, width]), group.mesh, [],
            stop_gradient=False,
        )  # fmt: skip
        y = down(F.gelu(up(utils.scatter(x))))
        z = utils.all_gather(y)
        (z * z).mean().backward()
        shapes = y._local_shape, z._local_shape
        return shapes, z.numpy(), [p.grad.numpy() for p in (x, up.weight, down.weight, down.bias)]

    paddle.seed(5)
    up, down = nn.Linear(4, 8), nn.Linear(8, 4)
    x = paddle.arange(40, dtype="float32").reshape([5, 2, 4])
    x.stop_gradient = False
    z = down(F.gelu(up(x)))
    (z * z).mean().backward()
    expected = [p.grad.numpy() for p in (x, up.weight, down.weight, down.bias)]
    for k, (shapes, value, grads) in enumerate(dist.spawn(rank, nprocs=2).results):
        assert shapes == ([3 - k, 2, 4], [5, 2, 4])
        np.testing.assert_allclose(value, z.numpy(), rtol=1e-5)
        for found, own in zip(grads, expected, strict=True):
            np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-5)
