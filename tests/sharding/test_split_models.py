"""A model for one process, whose program is cut into stages: `parallelize` and `dist.to_static`."""

from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed.pipeline.splitting import cut_at
from minipaddle.engine.core.dispatch import Recording
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.nn import functional as F

from .models import GPT

BEGINNING, END = dist.SplitPoint.BEGINNING, dist.SplitPoint.END
MEGATRON = {
    "blocks.*.qkv": dist.ColWiseParallel(),
    "blocks.*.out": dist.RowWiseParallel(),
    "blocks.*.up": dist.ColWiseParallel(),
    "blocks.*.down": dist.RowWiseParallel(),
}
WORDS, ROWS = 11, 8


def build(dropout=0.0):
    paddle.seed(3)
    net = GPT(words=WORDS, width=8, heads=2, blocks=4, time=5, dropout=dropout)
    clip = nn.ClipGradByGlobalNorm(0.5)
    return net, paddle.optimizer.Momentum(0.1, parameters=net.parameters(), grad_clip=clip)


def loss_of(scores, label):
    return F.cross_entropy(scores.reshape([-1, WORDS]), label.reshape([-1]))


def train(model, rows=slice(None)):
    """The losses of two steps, that of an evaluation, and the weights of all stages."""
    x = paddle.to_tensor(np.random.default_rng(0).integers(0, WORDS, [ROWS, 5]))[rows]
    losses = [float(model(x, (x + 1) % WORDS)) for _ in range(2)]
    model.eval()
    losses.append(float(model(x, (x + 1) % WORDS)))
    return losses, {name: x.numpy() for name, x in model.state_dict("param").items()}


@cache
def alone():
    net, momentum = build()
    return train(dist.to_static(net, None, loss_of, momentum))


def in_stages(axes: dict, mode: str, spec, dropout=0.0):
    """A `DistModel` on a mesh with an axis pp."""
    net, momentum = build(dropout)
    mesh = dist.ProcessMesh(np.arange(np.prod([*axes.values()])).reshape([*axes.values()]), [*axes])
    config = {"pp_config": {"split_spec": spec}}
    if "mp" in axes:
        config["mp_config"] = {"parallelize_plan": MEGATRON}
    net, momentum = dist.parallelize(net, momentum, mesh, config)
    size = ROWS // 4 // axes.get("dp", 1)
    how = {"enable": True, "schedule_mode": mode, "micro_batch_size": size, "accumulate_steps": 4}
    return dist.to_static(net, None, loss_of, momentum, dist.Strategy({"pipeline": how}))


@pytest.mark.parametrize(
    ("axes", "mode", "spec"),
    [
        ({"pp": 2}, "ZBH1", {"blocks.1": END}),
        ({"pp": 2}, "VPP", {f"blocks.{k}": BEGINNING for k in (1, 2, 3)}),
        ({"pp": 2}, "ZBV", {f"blocks.{k}": END for k in (0, 1, 2)}),
        ({"pp": 4}, "1F1B", "blocks"),
        ({"pp": 2, "mp": 2}, "1F1B", "blocks"),
        ({"pp": 2, "dp": 2}, "FThenB", "blocks"),
    ],
    ids=str,
)
def test_trains_as_one_process(axes, mode, spec):
    """The embedding is the last layer, too: the first and the last stage share it."""

    def work():
        own = dist.get_rank() % axes.get("dp", 1)
        share = ROWS // axes.get("dp", 1)
        return train(in_stages(axes, mode, spec), slice(own * share, (own + 1) * share))

    expected, weights = alone()
    for losses, found in dist.spawn(work, nprocs=int(np.prod([*axes.values()]))).results:
        np.testing.assert_allclose(losses, expected, rtol=2e-6)
        for name, x in weights.items():
            np.testing.assert_allclose(found[name], x, atol=2e-6, err_msg=name)


def test_draws_do_not_depend_on_the_stages():
    def work():
        return train(in_stages({"pp": dist.get_world_size()}, "1F1B", "blocks", dropout=0.3))[0]

    first, *others = [dist.spawn(work, nprocs=n).results for n in (2, 4)]
    for losses in [*first, *others[0]]:
        np.testing.assert_allclose(losses, first[0], rtol=2e-6)


def test_results_are_those_of_the_last_stage():
    def work():
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        mesh = dist.ProcessMesh([0, 1], ["pp"])
        net, _ = dist.parallelize(net, None, mesh, {"pp_config": {"split_spec": {"1": END}}})
        y = dist.to_static(net)(paddle.ones([4, 2]))
        return None if y is None else np.abs(y.numpy() - net(paddle.ones([4, 2])).numpy()).max()

    assert dist.spawn(work, nprocs=2).results == [None, 0.0]


# ---- the cut ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_parts_one_after_the_other_are_the_program(seed):
    """Cut at any records, with values that pass several parts, and items."""
    numbers = np.random.default_rng(seed)

    def function(x, y):
        a = x * 2 + 1
        values, places = a.topk(2)
        b = (a @ y).tanh() + values.sum() * 0.5
        return [(b * x).sum(0), places, a.mean() + y.sum()]

    xs = [paddle.to_tensor(numbers.standard_normal([3, 3], "float32")) for _ in range(2)]
    with Recording(True):
        program = trace(function, [x.spec for x in xs]).program
    run = lambda p, arrays: Run(xs[0].place.module)(p, arrays)
    expected = run(program, [x.array for x in xs])
    count = len(program.records)
    positions = sorted(numbers.choice(np.arange(1, count), 3, replace=False).tolist())
    found = []
    for part in cut_at(program, positions):
        verify(part.program)
        found = run(part.program, [*found, *(xs[k].array for k in part.inputs)])
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


# ---- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("words", "0 layers in 2 stages"),
        ({"blocks.9": END}, "split_spec has 'blocks.9'"),
        ({"blocks.1": "END"}, "SplitPoint.END or BEGINNING"),
        ({"blocks.1": END, "blocks.0": END, "blocks.2": END}, "the order in which they are called"),
        ({"blocks.0": END, "blocks.1": END}, "3 parts of a model in 2 stages"),
        (None, "without pp_config"),
    ],
)
def test_refused_by_name(spec, message):
    def work():
        train(in_stages({"pp": 2}, "1F1B", spec))

    with pytest.raises(ValueError, match=message):
        dist.spawn(work, nprocs=2)


def test_a_pipeline_of_one_part_is_refused():
    net, momentum = build()
    strategy = dist.Strategy({"pipeline": {"enable": True}})
    with pytest.raises(ValueError, match="for a model in one part"):
        dist.to_static(net, None, loss_of, momentum, strategy)
    mesh, config = dist.ProcessMesh([0], ["dp"]), {"pp_config": {"split_spec": "blocks"}}
    with pytest.raises(ValueError, match="expected: an axis named pp"):
        dist.parallelize(net, momentum, mesh, config)
