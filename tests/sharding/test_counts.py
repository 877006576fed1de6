"""The collectives of one block are Megatron's, counted in the program of a rank.

Sources: Shoeybi et al., "Megatron-LM", 2019 (two all-reduces forward, two backward); Korthikanti et
al., "Reducing Activation Recomputation in Large Transformer Models", 2022 (four all-gathers, four
reduce-scatters).
"""

from collections import Counter

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.nn import functional as F

from .models import GPT, R, first_axis, megatron

pytestmark = pytest.mark.sweep(one_in=3)

BATCH, TIME, WIDTH = 2, 8, 64


def collectives(step) -> list[tuple]:
    """(name, bytes of the larger side) of each collective of activations in the one program of a
    captured function. (Those of one axis are gradients of biases and norms.)
    """
    ((captured,),) = step.cache.entries.values()
    ((part, _),) = captured.executables.parts.values()
    names = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_fold")
    found = [r for r in part.records if r.op.name in names and r.spec.ndim > 1]
    return [(r.op.name, max(r.spec.nbytes, r.inputs[0].spec.nbytes)) for r in found]


def lies(way: str, name: str, spec) -> list:
    """The placements of a weight."""
    if way == "zero":
        return first_axis(name, spec)
    return [R] if "words" in name else megatron(name, spec)


def count_in_step(blocks: int, ranks: int, way: str):
    """The collectives of a training step of a GPT: tensor or sequence parallel with weights that
    are larger than the activations, or each weight in pieces (ZeRO-3) with a batch of like size.
    """
    paddle.seed(3)
    net = GPT(words=64, width=WIDTH, heads=4, blocks=blocks, time=TIME, dropout=0.1)
    mesh = dist.ProcessMesh([*range(ranks)])
    for name, p in net.named_parameters():
        dist.shard_tensor(p, mesh, lies(way, name, p.spec))
    if way == "sequence":
        cut = [dist.Shard(1)]
        for block in net.blocks:
            for layer in (block.norm1, block.norm2):
                layer.register_forward_pre_hook(lambda _, x: (dist.reshard(x[0], mesh, cut),))
            for layer in (block.qkv, block.up):
                layer.register_forward_pre_hook(lambda _, x: (dist.reshard(x[0], mesh, [R]),))
            for layer in (block.out, block.down):
                bias, layer.bias = layer.bias, None
                layer.register_forward_post_hook(
                    lambda _, x, y, bias=bias: dist.reshard(y, mesh, cut) + bias
                )
    tokens = np.random.default_rng(0).integers(0, 64, (2, 16 if way == "zero" else BATCH, TIME))
    rows = [dist.Shard(0)] if way == "zero" else []
    x, y = (dist.shard_tensor(paddle.to_tensor(each), mesh, rows) for each in tokens)
    sgd = paddle.optimizer.SGD(0.1, net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, 64]), y.reshape([-1]))
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    step(x, y)
    return collectives(step)


def count_of_a_block(ranks: int, way: str) -> Counter:
    """Of two blocks less one: what stands around them is left out."""
    (one, *_), (two, *_) = (
        dist.spawn(count_in_step, args=(blocks, ranks, way), nprocs=ranks).results
        for blocks in (1, 2)
    )
    assert not Counter(one) - Counter(two)
    return Counter(two) - Counter(one)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("way", ["tensor", "sequence"])
def test_a_block_has_the_collectives_of_megatron(ranks, way):
    activation = BATCH * TIME * WIDTH * 4
    found = count_of_a_block(ranks, way)
    if way == "tensor":
        assert found == {("all_reduce", activation): 4}
    else:
        assert found == {("all_gather", activation): 4, ("reduce_scatter", activation): 4}
    factor = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
    received = sum(
        factor[name] * n * (ranks - 1) // ranks * k for (name, n), k in found.items()
    )  # both ways are equal: an all-reduce is a reduce-scatter and an all-gather
    assert received == 8 * activation * (ranks - 1) // ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_weights_come_to_the_batch(ranks):
    """With weights in pieces each is gathered for the forward and for the backward, its gradient is
    scattered, and no activation moves: the rows of the batch stay where they are.
    """
    weights = [4 * WIDTH * n for n in (3 * WIDTH, WIDTH, 4 * WIDTH, 4 * WIDTH)]
    found = count_of_a_block(ranks, "zero")
    assert found == Counter(
        [("all_gather", n) for n in 2 * weights] + [("reduce_scatter", n) for n in weights]
    )
