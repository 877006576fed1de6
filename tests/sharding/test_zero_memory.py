"""What ZeRO's stages promise, in the memory plan of the compiled step: bytes for a weight."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed.auto_parallel.stages import bytes_held
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.ops.marks import after
from minipaddle.engine.passes.manager import optimized
from minipaddle.nn import functional as F
from minipaddle.passes.collective_order import in_order
from minipaddle.viz.zero_stages import bytes_of_stage, count_bytes

from .models import GPT

pytestmark = pytest.mark.sweep(one_in=3)

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")
HALF = "float16"
KINDS = ("weights", "gradients", "states")


def deep(depth: int, width: int, stage: int, ranks: int, dtype: str = "float32"):
    """A model of equal layers in that stage, its optimizer in mixed precision, and a batch."""
    paddle.seed(3)
    layers = [(nn.Linear(width, width, bias_attr=False), nn.Tanh()) for _ in range(depth)]
    net = nn.Sequential(*[each for pair in layers for each in pair])
    net.to(dtype=dtype)
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters(), multi_precision=True)
    mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
    net, adam = dist.parallelize(net, adam, mesh, {"dp_config": {"sharding_level": stage}})
    return net, adam, dist.shard_tensor(paddle.ones([4, width], dtype), mesh, [dist.Shard(0)])


def train(net, adam, x, steps=2, **switches):
    """The losses of some steps as one program each, and the program."""
    strategy = paddle.static.BuildStrategy()
    for name, value in switches.items():
        setattr(strategy, name, value)

    @paddle.jit.to_static(backend="native", build_strategy=strategy)
    def step(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    losses = []
    for _ in range(steps):
        losses.append(float(step(x)))
        adam.clear_grad(set_to_zero=False)
    return losses, step


@needs_compiler
@pytest.mark.parametrize("ranks", [2, 4])
def test_bytes_of_a_weight(ranks):
    """16, 4 + 12/n, 2 + 14/n and 16/n: weights and gradients of 2 bytes; in 4 bytes each a master
    weight and two moments. 2 MB in one process, of which activations are none.
    """
    size = 2 * 256 * 256

    def work():
        found = []
        for stage in (0, 1, 2, 3):
            losses, step = train(*deep(2, 256, stage, ranks, HALF))
            count = count_bytes(step)
            found.append((losses, sum(count[kind] for kind in KINDS) / size))
        return found

    n = ranks
    for found in dist.spawn(work, nprocs=ranks).results:
        whole, first, second, third = (nbytes for _, nbytes in found)
        assert whole == pytest.approx(16, rel=0.03)
        assert second == pytest.approx(2 + 14 / n, rel=0.03)
        assert third == pytest.approx(16 / n, rel=0.03)
        assert first == second  # the step leaves of a gradient what it needs; eager mode all of it
        assert bytes_of_stage(1, n) == {"weights": 2, "gradients": 2, "states": 12 / n}
        for losses, _ in found:
            np.testing.assert_allclose(losses, found[0][0], rtol=2e-3)


def test_bytes_of_the_first_stage():
    """4 + 12/n, with gradients whole, as a backward leaves them."""

    def work():
        net, adam, x = deep(2, 256, 1, 2, HALF)
        (net(x) ** 2).mean().backward()
        adam.step()
        return bytes_held(net, adam)

    for held in dist.spawn(work, nprocs=2).results:
        assert sum(held.values()) / (2 * 256 * 256) == pytest.approx(4 + 12 / 2, rel=0.03)


ONE_BY_ONE = {"gathers_megabytes": 0, "fuse_all_reduce_ops": False}
"""Weights of some kilobytes would all travel in one message."""


@needs_compiler
def test_weights_are_whole_around_their_uses():
    """The working memory does not grow with the layers. Kept from the first use to the last,
    weights would need 4 bytes each.
    """
    width = 128

    def work():
        found = {}
        for depth in (6, 12):
            for switches in ({}, {"gathers_ahead": 1}, {"gathers": False})[
                :: 1 if depth > 6 else 2
            ]:
                losses, step = train(*deep(depth, width, 3, 2), **ONE_BY_ONE, **switches)
                found[depth, str(switches)] = losses, count_bytes(step)["working memory"]
        return found

    layer = 4 * width * width
    for found in dist.spawn(work, nprocs=2).results:
        for depth, switches, whole in (
            (6, "{}", 6), (12, "{}", 6), (12, "{'gathers_ahead': 1}", 5),
        ):  # fmt: skip
            losses, nbytes = found[depth, switches]
            assert losses == found[depth, "{'gathers': False}"][0]
            assert nbytes < whole * layer
        assert found[12, "{'gathers': False}"][1] > 12 * layer


@pytest.mark.parametrize("stage", [1, 3])
def test_recomputation_holds_up_no_collective(stage):
    """What a collective sends waits for nothing that has to start later."""

    def work():
        paddle.seed(3)
        net = GPT(dropout=0.0, blocks=2)
        mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
        adam = paddle.optimizer.AdamW(0.1, parameters=net.parameters())
        net, adam = dist.parallelize(net, adam, mesh, {"dp_config": {"sharding_level": stage}})
        words = dist.shard_tensor(paddle.ones([4, 8], "int64"), mesh, [dist.Shard(0)])

        @paddle.jit.to_static(backend="interpreter")
        def step(words):
            net(words).mean().backward()
            adam.step()
            adam.clear_grad()

        step(words)
        ((part, _),) = step.concrete_program.executables.parts.values()
        switches = {"budget": 0.3, "price": 1.0, "least": 0, "gathers_least": 0}
        again = optimized(part, switches, until="epilogue")
        assert any(r.op is after for r in again.program.records)
        return in_order(again.program), len(optimized(part, switches).program.records)

    for held, _ in dist.spawn(work, nprocs=2).results:
        assert held


def test_gathers_are_few_at_a_time():
    """Tied weights, norms, unequal pieces: the numbers are the same, and so is the order of
    collectives in all ranks.
    """

    ranks = 3

    def work(ahead):
        paddle.seed(3)
        net = GPT(dropout=0.0, blocks=1)
        mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
        sgd = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
        net, sgd = dist.parallelize(net, sgd, mesh, {"dp_config": {"sharding_level": 3}})
        words = paddle.to_tensor(np.random.default_rng(0).integers(0, 32, (5, 8)))
        words = dist.shard_tensor(words, mesh, [dist.Shard(0)])
        switches = {"gathers_ahead": ahead, "gathers_least": 0} if ahead else {"gathers": False}
        switches |= ONE_BY_ONE
        strategy = paddle.static.BuildStrategy()
        for name, value in switches.items():
            setattr(strategy, name, value)

        @paddle.jit.to_static(build_strategy=strategy)
        def step(words):
            scores = net(words)
            loss = F.cross_entropy(scores.reshape([-1, 32]), words.reshape([-1]))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            return loss

        losses = [float(step(words)) for _ in range(3)]
        ((part, _),) = step.concrete_program.executables.parts.values()
        names, most, waiting = [], 0, set()
        for record in optimized(part, switches).program.records:
            if record.attrs.get("collective") == "all_gather":
                waiting.add(record)
            names += [record.op.name + str(record.attrs.get("collective"))] * record.op.effect
            waiting.difference_update(record.inputs)
            most = max(most, len(waiting))
        return losses, names, most

    results = {k: dist.spawn(work, args=(k,), nprocs=ranks).results for k in (0, 1, 3)}
    for ahead, found in results.items():
        for losses, names, most in found:
            np.testing.assert_allclose(losses, results[0][0][0], rtol=1e-6)
            assert names == found[0][1]
            assert ahead == 0 or most <= ahead + 3  # fused, two are used at once
    gathers = [names.count("start_collectiveall_gather") for (_, names, _), *_ in results.values()]
    assert gathers[1] >= gathers[2] > gathers[0]
    assert results[0][0][2] > 10
