"""Layers of `fleet.meta_parallel` train as the ordinary ones do in one process."""

import inspect
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet import meta_parallel as mp
from minipaddle.nn import functional as F

from .models import Block
from .test_topology import begin

SIGNATURES = Path(__file__).parents[1] / "data/distributed_signatures.json"


def in_pieces(block: Block, width: int) -> None:
    """Give a block layers with its weights, columns and rows in pieces."""
    for name, layer in (
        ("qkv", mp.ColumnParallelLinear(width, 3 * width, has_bias=True, gather_output=False)),
        ("out", mp.RowParallelLinear(width, width, input_is_parallel=True)),
        ("up", mp.ColumnParallelLinear(width, 4 * width, has_bias=True, gather_output=False)),
        ("down", mp.RowParallelLinear(4 * width, width, input_is_parallel=True)),
    ):
        layer.set_state_dict(getattr(block, name).state_dict())
        setattr(block, name, layer)


class GPT(nn.Layer):
    """A GPT with tied weights, its vocabulary in pieces if it is parallel."""

    def __init__(self, parallel: bool, words: int, width: int, heads: int):
        super().__init__()
        self.words, self.block = nn.Embedding(words, width), Block(width, heads, 0.1)
        self.norm = nn.LayerNorm(width)
        if parallel:
            table = mp.VocabParallelEmbedding(words, width)
            table.set_state_dict(self.words.state_dict())
            self.words = table
            in_pieces(self.block, width)

    def forward(self, x):
        return self.norm(self.block(self.words(x))) @ self.words.weight.t()


def mlp(parallel: bool):
    """A perceptron; the hidden layer has 7 units, which no number of ranks here divides."""
    if not parallel:
        return nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 5))
    paddle.seed(3)
    return nn.Sequential(
        mp.ColumnParallelLinear(6, 7, has_bias=True),
        nn.ReLU(),
        mp.RowParallelLinear(7, 5),
    )


def train(kind: str, static: bool, degrees=None, words=33, steps=8):
    """The losses of some steps, with dropout and a clipped AdamW."""
    group = degrees and begin(**degrees)
    paddle.seed(3)
    net = mlp(bool(group)) if kind == "mlp" else GPT(bool(group), words, 24, 6)
    paddle.seed(4)
    rng = np.random.default_rng(0)
    if kind == "mlp":
        x, y = rng.normal(size=(8, 6)).astype("float32"), rng.integers(0, 5, 8)
    else:
        x, y = rng.integers(0, words, (2, 4, 8))
    x, y = paddle.to_tensor(x), paddle.to_tensor(y)
    loss_of = nn.CrossEntropyLoss(reduction="none")
    if group:
        net, loss_of = fleet.distributed_model(net), mp.ParallelCrossEntropy()
        x, y = (dist.shard_tensor(each, group.mesh, [
            dist.Shard(0) if name == "dp" else dist.Replicate() for name in group.mesh.dim_names
        ]) for each in (x, y))  # fmt: skip
    clip = nn.ClipGradByGlobalNorm(1.0)
    adam = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=net.parameters(), grad_clip=clip)

    def step(x, y):
        loss = loss_of(net(x), y).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    step = paddle.jit.to_static(step) if static else step
    return [float(step(x, y)) for _ in range(steps)]


MESHES = {
    "2": {"mp_degree": 2},
    "3": {"mp_degree": 3},
    "4": {"mp_degree": 4},
    "2x2": {"dp_degree": 2, "mp_degree": 2},
}


CASES = [(mesh, kind, True) for mesh in MESHES for kind in ("mlp", "gpt")]
EAGER = [*((mesh, "mlp", False) for mesh in MESHES), ("2", "gpt", False)]
one_process = cache(train)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(("mesh", "kind", "static"), CASES + EAGER)
def test_training_has_the_losses_of_one_process(mesh, kind, static):
    expected, degrees = one_process(kind, static), MESHES[mesh]
    ranks = int(np.prod([*degrees.values()]))
    for found in dist.spawn(train, args=(kind, static, degrees), nprocs=ranks).results:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


NAMES = [
    "ColumnParallelLinear",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "ParallelCrossEntropy",
    "TensorParallel",
    "get_rng_state_tracker",
    "model_parallel_random_seed",
    "RNGStatesTracker",
    "RNGStatesTracker.add",
    "RNGStatesTracker.get_states_tracker",
    "RNGStatesTracker.reset",
    "RNGStatesTracker.rng_state",
    "RNGStatesTracker.set_states_tracker",
]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_those_of_paddle(name):
    found = mp
    for part in name.split("."):
        found = getattr(found, part)
    given = json.loads(SIGNATURES.read_text())["signatures"]
    check_signature(found, given[f"paddle.distributed.fleet.meta_parallel.{name}"])


def check_signature(found, given: list) -> None:
    own = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    assert [p.name for p in own] == [p["name"] for p in given]
    assert [repr(p.default) for p in own if p.default is not p.empty] == [
        p["default"] for p in given if "default" in p
    ]


def test_ranks_begin_with_the_weights_of_the_first():
    def weights():
        begin(mp_degree=2)
        paddle.seed(dist.get_rank())
        layer = fleet.distributed_model(mp.RowParallelLinear(5, 3))
        return layer.state_dict()["weight"].numpy()

    paddle.seed(0)
    expected = nn.Linear(5, 3).weight.numpy()
    for found in dist.spawn(weights, nprocs=2).results:
        np.testing.assert_array_equal(found, expected)


def test_what_lies_where():
    def rank():
        begin(mp_degree=2)
        up = mp.ColumnParallelLinear(4, 6, gather_output=False)
        x = paddle.ones([2, 4])
        whole = mp.ColumnParallelLinear(4, 6)(x)
        loss = mp.ParallelCrossEntropy(ignore_index=1)
        losses = loss(up(x), paddle.to_tensor([[1], [5]]))
        return up.bias, up(x).placements, whole.placements, losses.shape, losses[0].item()

    for bias, cut, whole, shape, ignored in dist.spawn(rank, nprocs=2).results:
        assert (bias, cut, whole) == (None, [dist.Shard(1)], [dist.Replicate()])
        assert (shape, ignored) == ([2, 1], 0)


def test_errors_name_the_layer():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.up = mp.ColumnParallelLinear(4, 6)

        def forward(self, x):
            return self.up(x)

    def rank():
        begin(dp_degree=2, mp_degree=2)
        group, net = dist.new_group([0, 1, 2]), Net()
        with pytest.raises(
            ValueError, match=r"Net.up \(a ColumnParallelLinear\) was given float32"
        ):
            net(paddle.ones([2, 4]))
        x = dist.shard_tensor(paddle.ones([2, 5]), net.up.mesh, [dist.Shard(0)])
        with pytest.raises(
            ValueError, match=r"Net.up \(a ColumnParallelLinear\).*\n.*in_features=4"
        ):
            net(x)
        with pytest.raises(ValueError, match=r"RowParallelLinear with mp_group=\[0, 1, 2\]"):
            mp.RowParallelLinear(4, 6, mp_group=group)
        with pytest.raises(ValueError, match="Net was given float32"):
            fleet.distributed_model(net)(paddle.ones([2, 4]))

    dist.spawn(rank, nprocs=4)


def test_a_tracker_keeps_names():
    tracker = mp.RNGStatesTracker()
    tracker.add("a", 1)
    for name, seed, match in (("a", 2, "state a already"), ("b", 1, "seed 1 already")):
        with pytest.raises(ValueError, match=match):
            tracker.add(name, seed)
    with (
        pytest.raises(ValueError, match="state nobody does not exist"),
        tracker.rng_state("nobody"),
    ):
        pass
    mp.model_parallel_random_seed(5)
    first = F.dropout(paddle.ones([64])).tolist()
    mp.model_parallel_random_seed(5)
    with mp.get_rng_state_tracker().rng_state():
        assert F.dropout(paddle.ones([64])).tolist() == first
