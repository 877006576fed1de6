"""A model trained as a plan says has the losses of one process, whatever the layout."""

from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.fleet import elastic
from minipaddle.distributed.planner import OURS, Layout, SearchLimits, apply_plan, plan
from minipaddle.distributed.simulator import cluster_named
from minipaddle.nn import functional as F
from minipaddle.static import InputSpec

LETTERS, LENGTH, BATCH = 11, 6, 8
SAMPLE = InputSpec([LENGTH], "int64")
X = np.random.default_rng(0).integers(0, LETTERS, [BATCH, LENGTH])


def build():
    net = paddle.text.GPT(LETTERS, 8, layers=4, heads=2, context=LENGTH)
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    options = {"parameters": net.parameters(), "epsilon": 1e-4, "grad_clip": clip}
    return net, paddle.optimizer.AdamW(0.01, **options)


def loss_of(scores, next_best):
    return F.cross_entropy(scores.flatten(0, 1), next_best.flatten())


@cache
def alone() -> list[float]:
    """The losses of an ordinary loop."""
    paddle.seed(3)
    net, adam = build()
    x, losses = paddle.to_tensor(X), []
    for _ in range(6):
        loss = loss_of(net(x), (x + 1) % LETTERS)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    return losses


def planned(net, layout: Layout):
    """A plan whose best layout is this one."""
    cluster = cluster_named(f"1x{layout.ranks} CPU")
    found = plan(net, SAMPLE, *cluster, BATCH, recipe=OURS)
    return found._replace(fits=[found.job.cost(layout)])


def train(layout: Layout, steps, folder=None, seed=None) -> list[float]:
    paddle.seed(3 if seed is None else seed + dist.get_rank())
    net, adam = build()
    model = apply_plan(planned(net, layout), net, SAMPLE, loss_of, adam)
    part, parts = layout.locate_samples(dist.get_rank())
    x = paddle.to_tensor(X[BATCH * part // parts : BATCH * (part + 1) // parts])
    rest = range(steps) if folder is None else elastic.steps(steps, 2, {"model": model}, folder)
    return [float(model(x, (x + 1) % LETTERS)) for _ in rest]


@pytest.mark.parametrize("layout", [
    Layout(micro_batch=2, micro_batches=4, recompute=True),
    Layout(sharding=2, stage=3, micro_batch=4),
    Layout(pipe=2, micro_batch=2, micro_batches=4, chunks=2, halves=True),
    Layout(data=2, pipe=2, sep=2, micro_batch=2, micro_batches=2),
], ids=str)  # fmt: skip
def test_every_layout_has_the_losses_of_one_process(layout):
    for losses in dist.spawn(train, (layout, 2), nprocs=layout.ranks).results:
        np.testing.assert_allclose(losses, alone()[:2], rtol=2e-6)


PIPE_AND_MODEL = Layout(pipe=2, model=2, micro_batch=2, micro_batches=4)


def test_a_checkpoint_goes_from_one_layout_to_another_and_back(tmp_path):
    """Also weights that a stage holds and does not train, and states of the optimizer."""
    other, found = Layout(pipe=2, sharding=2, stage=1, micro_batch=4), []
    for layout, steps in ((PIPE_AND_MODEL, 3), (other, 5), (PIPE_AND_MODEL, 6)):
        losses = dist.spawn(train, (layout, steps, str(tmp_path)), nprocs=layout.ranks).results
        assert losses == [losses[0]] * layout.ranks
        found += losses[0]
    np.testing.assert_allclose(found, alone(), rtol=2e-6)


def test_ranks_begin_as_the_first():
    losses = dist.spawn(train, (PIPE_AND_MODEL, 2, None, 3), nprocs=4).results
    assert losses == [losses[0]] * 4
    np.testing.assert_allclose(losses[0], alone()[:2], rtol=2e-6)


def test_a_plan_for_other_ranks_is_refused():
    net, adam = build()
    with pytest.raises(ValueError, match="a plan for 2 devices"):
        apply_plan(planned(net, Layout(data=2, micro_batch=4)), net, SAMPLE, loss_of, adam)
    both = planned(net, Layout(data=2, sharding=2, micro_batch=2))
    with pytest.raises(NotImplementedError, match="to apply data 2 × sharding 2"):
        dist.spawn(apply_plan, (both, net, SAMPLE, loss_of, adam), nprocs=4)


def test_little_memory_asks_for_stages_of_tensor_parallel():
    """Two machines with two devices each: what the job of tests/distributed/test_elastic.py is."""
    net, _ = build()
    device, cluster = cluster_named("2x2 CPU")
    find = lambda memory: plan(net, SAMPLE, device._replace(memory=memory), cluster, BATCH,
                               recipe=OURS, limits=SearchLimits(recompute=False))  # fmt: skip
    least = min(each.memory.total for each in find(4e9).fits if each.layout.model == 2)
    assert find(least).best.layout.sizes == (1, 2, 1, 1, 2)
