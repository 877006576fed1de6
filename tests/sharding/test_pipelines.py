"""Pipelines train as one process does: every schedule, stages of several ranks, refusals."""

import json
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet import elastic
from minipaddle.distributed.fleet.meta_parallel import (
    ColumnParallelLinear,
    LayerDesc,
    PipelineLayer,
    RowParallelLinear,
    SharedLayerDesc,
)
from minipaddle.distributed.pipeline import parts
from minipaddle.distributed.pipeline.schedules import SCHEDULES, build_schedule
from minipaddle.distributed.pipeline.segments import cut_by_cost, cut_layers
from minipaddle.nn import functional as F

from .models import Block

RECORDED = json.loads((Path(__file__).parents[1] / "data/pipeline_segments.json").read_text())
WORDS, WIDTH, ROWS = 11, 8, 8


def begin(pipe: int, micro_batches: int = 4, mode: str = "1F1B", rows: int = ROWS, **degrees):
    """`fleet.init` with stages; `degrees` are those of other axes."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"pp_degree": pipe} | degrees
    strategy.pipeline_configs = {
        "accumulate_steps": micro_batches,
        "micro_batch_size": rows // micro_batches,
        "schedule_mode": mode,
    }
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(3)


def head(words, x):
    return paddle.matmul(x, words.weight, transpose_y=True)


class Feedforward(nn.Layer):
    """A hidden layer in pieces along mp, and dropout."""

    def __init__(self, width, dropout):
        super().__init__()
        self.up = ColumnParallelLinear(width, 2 * width, has_bias=True, gather_output=False)
        self.down = RowParallelLinear(2 * width, width, input_is_parallel=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.gelu(self.up(x))))


def row(block, dropout: float) -> list:
    """A GPT with tied weights as a row of layers."""
    words = "weight", WORDS, WIDTH
    blocks = [LayerDesc(Block, WIDTH, 2, dropout) for _ in range(6)]
    if block is Feedforward:
        blocks = [LayerDesc(Feedforward, WIDTH, dropout) for _ in range(6)]
    return [
        SharedLayerDesc("words", nn.Embedding, None, *words),
        *blocks,
        LayerDesc(nn.LayerNorm, WIDTH),
        SharedLayerDesc("words", nn.Embedding, head, *words),
    ]


def loss_of(y, label):
    return F.cross_entropy(y.reshape([-1, WORDS]), label.reshape([-1]))


def train(chunks=None, interval=0, block=Block, dropout=0.2, samples=1):
    """The losses of two steps, and the weights after them by name, on this rank. `samples` is
    along how many ranks the batch is cut.
    """
    net = PipelineLayer(
        row(block, dropout),
        loss_fn=loss_of,
        recompute_interval=interval,
        num_virtual_pipeline_stages=chunks,
    )
    model = fleet.distributed_model(net)
    clip = nn.ClipGradByGlobalNorm(0.5)
    momentum = paddle.optimizer.Momentum(0.1, parameters=model.parameters(), grad_clip=clip)
    momentum = fleet.distributed_optimizer(momentum)
    group, losses = fleet.get_hybrid_communicate_group(), []
    mine = group.get_data_parallel_rank() + group.get_sharding_parallel_rank()
    numbers = np.random.default_rng(0)
    for _ in range(2):  # each micro-batch has rows of every rank
        x = numbers.integers(0, WORDS, [4, samples, ROWS // 4 // samples, 5])
        x = paddle.to_tensor(x[:, mine].reshape(-1, 5))
        losses.append(model.train_batch((x, (x + 1) % WORDS), momentum).item())
    return losses, {name: x.numpy() for name, x in net.state_dict().items()}


@cache
def alone(micro_batches: int, block=Block, dropout=0.2, interval=0):
    """What one process finds."""

    def work():
        begin(1, micro_batches)
        return train(block=block, dropout=dropout, interval=interval)

    return dist.spawn(work, nprocs=1).results[0]


def assert_same(found, expected, atol=2e-6):
    """All ranks have the same losses; together they have all weights, which are the same."""
    losses, weights = expected
    names = set()
    for own, some in found:
        np.testing.assert_allclose(own, losses, rtol=2e-6)
        for name in some.keys() & weights.keys():
            np.testing.assert_allclose(some[name], weights[name], atol=atol, err_msg=name)
        names |= some.keys()
    assert names >= weights.keys()


@pytest.mark.parametrize(
    ("mode", "stages", "micro_batches", "interval"),
    [(mode, 2, 4, 0) for mode in SCHEDULES]
    + [(mode, 4, 8, 0) for mode in ("1F1B", "VPP", "ZBH1", "ZBV")]
    + [("1F1B", 3, 2, 0), ("ZBH1", 2, 1, 0), ("ZBV", 3, 1, 0)]
    + [("1F1B", 2, 4, 2), ("ZBH1", 2, 4, 1)],
)
def test_every_schedule_trains_as_one_process(mode, stages, micro_batches, interval):
    def work():
        begin(stages, micro_batches, mode)
        return train(2 if mode == "VPP" else None, interval)

    found = dist.spawn(work, nprocs=stages).results
    assert_same(found, alone(micro_batches, interval=interval))


def test_one_stage_is_an_ordinary_loop():
    """Without dropout: the draws of a row of layers are its own."""

    def work():
        begin(1, 4)
        net, losses = PipelineLayer(row(Block, 0.0)), []
        clip = nn.ClipGradByGlobalNorm(0.5)
        momentum = paddle.optimizer.Momentum(0.1, parameters=net.parameters(), grad_clip=clip)
        numbers = np.random.default_rng(0)
        for _ in range(2):
            x = paddle.to_tensor(numbers.integers(0, WORDS, [ROWS, 5]))
            loss = loss_of(net(x), (x + 1) % WORDS)
            loss.backward()
            momentum.step()
            momentum.clear_grad()
            losses.append(loss.item())
        return losses, {name: x.numpy() for name, x in net.state_dict().items()}

    assert_same(dist.spawn(work, nprocs=1).results, alone(4, dropout=0.0))


@pytest.mark.parametrize(
    ("mode", "pipe", "degrees"),
    [
        ("1F1B", 2, {"mp_degree": 2}),
        ("ZBV", 2, {"mp_degree": 2}),
        ("ZBH1", 2, {"dp_degree": 2}),
        ("1F1B", 2, {"dp_degree": 2, "mp_degree": 2}),
        ("1F1B", 2, {"sharding_degree": 2}),
    ],
    ids=str,
)
def test_stages_of_several_ranks(mode, pipe, degrees):
    """Tensor parallel layers, samples and the optimizer's states lie in pieces in each stage."""
    samples = degrees.get("dp_degree", 1) * degrees.get("sharding_degree", 1)

    def work():
        begin(pipe, 4, mode, ROWS // samples, **degrees)
        return train(block=Feedforward, samples=samples)

    found = dist.spawn(work, nprocs=pipe * int(np.prod([*degrees.values()]))).results
    assert_same(found, alone(4, Feedforward))


def test_a_checkpoint_changes_its_stages(tmp_path):
    """Written by two stages of two ranks, read by one process, and the other way round: weights,
    tied ones among them, and the states of the optimizer.
    """

    def work(folder, total):
        begin(*((2, 4, "1F1B", ROWS) if dist.get_world_size() > 1 else (1,)),
              **({"mp_degree": 2} if dist.get_world_size() > 1 else {}))  # fmt: skip
        model = fleet.distributed_model(PipelineLayer(row(Feedforward, 0.1), loss_fn=loss_of))
        adam = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=model.parameters())
        adam = fleet.distributed_optimizer(adam)
        x = paddle.to_tensor(np.random.default_rng(0).integers(0, WORDS, [ROWS, 5]))
        state = {"model": model, "optimizer": adam}
        steps = elastic.steps(total, 2, state, str(folder))
        return [model.train_batch((x, (x + 1) % WORDS), adam).item() for _ in steps]

    expected = dist.spawn(work, args=(tmp_path / "a", 6), nprocs=1).results[0]
    for before, after in ((4, 1), (1, 4)):
        folder = tmp_path / f"{before}"
        first = dist.spawn(work, args=(folder, 4), nprocs=before).results
        last = dist.spawn(work, args=(folder, 6), nprocs=after).results
        for losses, others in zip(first, last):
            np.testing.assert_allclose([*losses, *others], expected, rtol=2e-6)


def test_moments_of_a_batch_norm_are_those_of_micro_batches():
    """As in one process that adds up gradients."""

    def work():
        begin(dist.get_world_size(), 4, rows=16)
        layers = [LayerDesc(nn.Linear, 4, 6), LayerDesc(nn.BatchNorm1D, 6), nn.ReLU(),
                  LayerDesc(nn.Linear, 6, 6), LayerDesc(nn.BatchNorm1D, 6)]  # fmt: skip
        net = PipelineLayer(layers, loss_fn=nn.MSELoss())
        model = fleet.distributed_model(net)
        sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        x = paddle.to_tensor(np.random.default_rng(1).standard_normal([16, 4], "float32"))
        losses = [model.train_batch((x, x[:, :1] * paddle.ones([6])), sgd).item() for _ in range(3)]
        return losses, {name: x.numpy() for name, x in net.state_dict().items()}

    expected, found = (dist.spawn(work, nprocs=n).results for n in (1, 2))
    assert any("_mean" in name for name in expected[0][1])
    assert_same(found, expected[0])


def regress(widths=(4, 6, 6, 1), **options):
    layers = [LayerDesc(nn.Linear, *pair) for pair in pairwise(widths)]
    return PipelineLayer(layers, loss_fn=nn.MSELoss(), **options)


def test_a_scaler_leaves_a_step_out_in_all_stages():
    """The infinite gradient is in the last stage alone."""

    def work():
        begin(2, 2, rows=4)
        model = fleet.distributed_model(regress())
        sgd = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=model.parameters()))
        scaler = fleet.distributed_scaler(paddle.amp.GradScaler(init_loss_scaling=64.0))
        found = []
        for label in (1.0, float("inf"), 1.0):
            before = [p.numpy().copy() for p in model.parameters()]
            batch = paddle.ones([4, 4]), paddle.full([4, 1], label)
            model.train_batch(batch, sgd, scaler=scaler)
            moved = [np.any(p.numpy() != old) for p, old in zip(model.parameters(), before)]
            found.append((any(moved), scaler.get_loss_scaling().item()))
        return found

    expected = [(True, 64.0), (False, 32.0), (True, 32.0)]
    assert dist.spawn(work, nprocs=2).results == [expected, expected]


def test_losses_results_and_the_scheduler():
    def work():
        begin(2, 2, rows=4)
        model = fleet.distributed_model(regress())
        rate = paddle.optimizer.lr.StepDecay(0.1, step_size=1, gamma=0.5)
        sgd = paddle.optimizer.SGD(rate, parameters=model.parameters())
        x, y = paddle.ones([4, 4]), paddle.zeros([4, 1])
        results, loss = model.eval_batch((x, y)), model.eval_batch((x, y), compute_loss=True)
        losses = model.train_batch((x, y), sgd, rate, return_micro_batch_loss=True)
        found = model.timeline().spans
        kinds = " ".join(s.name for s in found if s.device == dist.get_rank())
        shape = None if results is None else results.shape
        return shape, loss.item(), losses.tolist(), rate.get_lr(), kinds

    first, last = dist.spawn(work, nprocs=2).results
    assert first[0] is None
    assert last[0] == [4, 1]
    assert first[1:4] == last[1:4]
    assert first[2] == pytest.approx([first[1]] * 2)
    assert first[3] == 0.05
    assert first[4] == "F0.0 F1.0 B0.0 B1.0"


def test_only_own_layers_are_built():
    built = []

    class Noted(nn.Linear):
        def __init__(self, number):
            super().__init__(2, 2)
            built.append((dist.get_rank(), number))

    def work():
        begin(2)
        PipelineLayer([LayerDesc(Noted, k) for k in range(4)])

    dist.spawn(work, nprocs=2)
    assert sorted(built) == [(0, 0), (0, 1), (1, 2), (1, 3)]


# ---- parts -------------------------------------------------------------------------------------


def test_halves_of_a_backward(monkeypatch):
    """The first half has no more than the gradients of inputs need, and both are all of it."""
    seen = []

    def split(backward, inputs):
        seen.append((backward, inputs, *real(backward, inputs)))
        return seen[-1][2:]

    real = parts.split_weights
    monkeypatch.setattr(parts, "split_weights", split)

    def work():
        begin(2, 2, "ZBH1", rows=4)
        model = fleet.distributed_model(regress())
        sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        model.train_batch((paddle.ones([4, 4]), paddle.ones([4, 1])), sgd)

    dist.spawn(work, nprocs=2)
    middle = [each for each in seen if each[1]]
    assert len(middle) == 1  # the first stage's input wants no gradient
    backward, _, first, second = middle[0]
    names = [r.op.name for r in first.records]
    assert names.count("linear") == 2
    assert {r.op.name for r in second.records} == {"summed_outer", "sum"}
    assert {*backward.records} <= {*first.records, *second.records}


@pytest.mark.parametrize("key", RECORDED["uniform"])
def test_uniform_parts_are_paddles(key):
    layers, count = map(int, key.split(","))
    assert cut_layers(["Linear"] * layers, count) == RECORDED["uniform"][key]


@pytest.mark.parametrize("key", RECORDED["layer"])
def test_parts_by_class_are_paddles(key):
    kind, count = key.split(",")
    expected = RECORDED["layer"][key]
    if expected is None:
        with pytest.raises(ValueError, match=f"a multiple of {count}"):
            cut_layers(RECORDED["row"], int(count), f"layer:{kind}")
    else:
        assert cut_layers(RECORDED["row"], int(count), f"layer:{kind}") == expected


def test_parts_by_cost_are_the_best():
    """Beside all ways to cut."""
    numbers = np.random.default_rng(0)
    for _ in range(50):
        n, count = numbers.integers(4, 9), numbers.integers(1, 5)
        costs = numbers.integers(1, 9, n).tolist()
        cuts = ([0, *inner, n] for inner in combinations(range(1, n), count - 1))
        slowest = lambda bounds, costs=costs: max(sum(costs[a:b]) for a, b in pairwise(bounds))
        found = cut_by_cost(costs, count)
        assert len(found) == count + 1
        assert slowest(found) == min(map(slowest, cuts))


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: regress(num_stages=3), "a PipelineLayer of 3 stages"),
        (lambda: regress(widths=(4, 1)), "1 layers in 2 parts"),
        (lambda: regress(seg_method="layer:Conv"), "0 of 3 layers are of that class"),
        (lambda: regress(seg_method="best"), 'expected: "uniform"'),
        (lambda: regress(seg_method=[1.0]), "a cost for each layer"),
        (lambda: regress(use_dualpipev=True), "use_dualpipev with the schedule 1F1B"),
        (lambda: regress()(paddle.ones([1, 4])), "train_batch"),
        (lambda: PipelineLayer([3, 4]), "a row of layers with 3"),
        (lambda: LayerDesc(F.relu), "a class of layers"),
        (lambda: fleet.distributed_model(nn.Linear(2, 2)), "a PipelineLayer"),
        (lambda: fit(paddle.ones([3, 4])), "4 rows: accumulate_steps=2 of micro_batch_size=2"),
        (lambda: fit(None), r"\(inputs, labels\)|a batch of"),
        (lambda: fit(paddle.ones([4, 4]), loss_fn_idx=1), "loss_fn_idx=1"),
    ],
)
def test_refused_by_name(given, message):
    def work():
        begin(2, 2, rows=4)
        given()

    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        dist.spawn(work, nprocs=2)


def fit(x, **options):
    model = fleet.distributed_model(regress())
    sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    model.train_batch(x if x is None else (x, paddle.ones([4, 1])), sgd, **options)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"schedule_mode": "GPipe"}, "schedule_mode='GPipe'"),
        ({"accumulate_steps": 0}, "accumulate_steps=0"),
        ({"p2p_cache_shape": True}, "pipeline_configs with p2p_cache_shape"),
    ],
)
def test_settings_are_checked(configs, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        fleet.DistributedStrategy().pipeline_configs = configs


def test_the_schedule_is_that_of_the_strategy():
    def work():
        begin(2, 4, "ZBV")
        return str(PipelineLayer([LayerDesc(nn.Linear, 2, 2)] * 4).schedule)

    assert dist.spawn(work, nprocs=2).results[0] == str(build_schedule("ZBV", 2, 4, 2))
