"""ZeRO's stages give the numbers of one process, and hold the bytes that they promise."""

from contextlib import contextmanager

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed.auto_parallel.stages import bytes_held
from minipaddle.distributed.collectives.operators import COLLECTIVES
from minipaddle.nn import functional as F

from .models import GPT, mlp

RULES = {
    "SGD": {},
    "SGD decayed": {"weight_decay": 0.1},
    "Momentum": {},
    "AdamW": {},
    "Lamb": {},
}


def staged(optimizer, layer, stage: int, ranks: int):
    """The optimizer in that stage, over all ranks."""
    mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
    dist.shard_layer(layer, mesh)
    kind = getattr(dist, f"ShardingStage{stage}")
    return dist.shard_optimizer(optimizer, kind("dp")), mesh


def train(rule: str, static: bool, stage: int = 0, ranks: int = 1, steps: int = 5):
    """The losses and the weights of some steps, and the bytes held before gradients are dropped."""
    paddle.seed(3)
    net, rng = mlp(), np.random.default_rng(0)
    x = paddle.to_tensor(rng.normal(size=(13, 6)).astype("float32"))
    y = paddle.to_tensor(rng.integers(0, 5, 13))
    optimizer = getattr(paddle.optimizer, rule.split()[0])(
        0.05, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.3), **RULES[rule]
    )
    if stage:
        optimizer, mesh = staged(optimizer, net, stage, ranks)
        x, y = (dist.shard_tensor(each, mesh, [dist.Shard(0)]) for each in (x, y))

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = paddle.jit.to_static(step) if static else step
    losses = []
    for _ in range(steps):
        losses.append(float(step(x, y)))
        held = bytes_held(net, optimizer)
        optimizer.clear_grad(set_to_zero=False)
    return losses, [p.numpy() for p in net.parameters()], held


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("rule", ["SGD decayed", "AdamW", "Lamb"])
def test_training(rule):
    """As a captured step; `test_every_optimizer` has all rules in eager mode."""
    losses, weights, _ = train(rule, static=True)
    for stage in (1, 2, 3):
        for ranks in (2, 3):
            results = dist.spawn(train, args=(rule, True, stage, ranks), nprocs=ranks).results
            for own, found, _ in results:
                np.testing.assert_allclose(own, losses, rtol=1e-6)
                for value, same, expected in zip(found, results[0][1], weights, strict=True):
                    np.testing.assert_array_equal(value, same)
                    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


# The perceptron's weights are [6, 8], [8], [8, 5], [5]. On 2 ranks all but the last have an axis
# that divides; on 3 ranks the first weight alone does, others are cut into 3, 3 and 2 rows.
LARGEST = {2: 24 + 4 + 20 + 3, 3: 16 + 3 + 15 + 2}
ALL = {2: 48 + 8 + 40 + 5, 3: 48 + 8 + 40 + 5}
STATES = {"SGD": (0, 0), "Momentum": (1, 0), "AdamW": (2, 2), "Lamb": (2, 2)}


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("rule", STATES)
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("ranks", [2, 3])
def test_bytes_held(rule, stage, ranks):
    results = dist.spawn(train, args=(rule, False, stage, ranks, 1), nprocs=ranks).results
    most, states = LARGEST[ranks], STATES[rule]
    scalars = 4 * 4 * states[1]  # powers of beta, of four weights
    assert results[0][2] == {
        "weights": 4 * (most if stage == 3 else ALL[ranks]),
        "gradients": 4 * (most if stage >= 2 else ALL[ranks]),
        "states": 4 * most * states[0] + scalars,
    }
    together = sum(held["states"] - scalars for _, _, held in results)
    assert together == 4 * ALL[ranks] * states[0]  # no element twice


def test_tied_weights_of_stage_3():
    def work(stage, ranks):
        paddle.seed(3)
        net, rng = GPT(dropout=0.0), np.random.default_rng(0)
        x = paddle.to_tensor(rng.integers(0, 32, (4, 8)))
        sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        if stage:
            sgd, mesh = staged(sgd, net, stage, ranks)
            x = dist.shard_tensor(x, mesh, [dist.Shard(0)])
        losses = []
        for _ in range(3):
            scores = net(x)
            if stage:  # the weights' pieces have cut nothing
                assert scores.placements == [dist.Shard(0)]
            loss = F.cross_entropy(scores.reshape([-1, 32]), x.reshape([-1]))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            losses.append(float(loss))
        return losses

    expected = work(0, 1)
    for found in dist.spawn(work, args=(3, 2), nprocs=2).results:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_weight_that_is_cut_already():
    """Tensor parallel on one axis of the mesh, a stage on the other."""

    def work():
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
        paddle.seed(1)
        net = nn.Linear(4, 6)
        dist.shard_tensor(net.weight, mesh, [dist.Replicate(), dist.Shard(0)])
        dist.shard_tensor(net.bias, mesh, [dist.Replicate(), dist.Shard(0)])
        adam = paddle.optimizer.Adam(parameters=net.parameters())
        adam = dist.shard_optimizer(adam, dist.ShardingStage1("dp"))
        net(paddle.ones([2, 4])).sum().backward()
        adam.step()
        states = adam.state_dict()
        return [states[f"{p.name}_moment1_0"].placements for p in net.parameters()]

    shard = dist.Shard(0)  # 4 rows make 2 x 2 pieces; of 6 no axis does
    for found in dist.spawn(work, nprocs=4).results:
        assert found == [[shard, shard], [shard, shard]]


# ---- gradients of several batches ----------------------------------------------------------------


@contextmanager
def collectives():
    """The names of the collectives that all ranks run in the block."""
    names, before = [], {op: op.evaluate for op in COLLECTIVES}

    def noting(op):
        def evaluate(*args, **kwargs):
            names.append(op.name)
            return before[op](*args, **kwargs)

        return evaluate

    for op in COLLECTIVES:
        op.evaluate = noting(op)
    try:
        yield names
    finally:
        for op in COLLECTIVES:
            op.evaluate = before[op]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_terms_add_up_without_communication(stage):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(12, 6)).astype("float32")

    def work(parts, counted=None):
        paddle.seed(3)
        net = mlp()
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
        adam, mesh = staged(adam, net, stage, 2)
        counts = []
        for part in np.split(data, parts):
            x = dist.shard_tensor(part, mesh, [dist.Shard(0)])
            loss = (net(x) ** 2).mean() / parts
            before = len(counted or ())
            loss.backward()
            if counted is not None:
                dist.barrier()
                counts.append(set(counted[before:]))
        terms = [p.grad.placements for p in net.parameters()]
        adam.step()
        return [p.numpy() for p in net.parameters()], terms, counts

    whole = dist.spawn(work, args=(1,), nprocs=2).results[0][0]
    with collectives() as names:
        results = dist.spawn(work, args=(3, names), nprocs=2).results
    for weights, terms, counts in results:
        assert terms == [[dist.Partial()]] * 4
        reduces = {"all_reduce", "reduce_scatter"}
        assert not any(reduces & each for each in counts)
        assert stage == 3 or not any(counts)
        for a, b in zip(weights, whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


# ---- errors --------------------------------------------------------------------------------------

NET = nn.Linear(4, 3)
SGD = paddle.optimizer.SGD(0.1, parameters=NET.parameters())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dist.shard_optimizer(3), TypeError, "shard_optimizer of 3"),
        (lambda: dist.shard_optimizer(SGD, 3), TypeError, "shard_fn=3"),
        (lambda: dist.shard_optimizer(SGD, None, 0), ValueError, "steps=0"),
        (lambda: dist.shard_optimizer(SGD, dist.ShardingStage1("x")), ValueError, "on no mesh"),
        (lambda: dist.ShardingStage1("x", [0]), TypeError, r"ShardingStage1 of \[0\]"),
        (lambda: dist.ShardingStage3(1, dist.ProcessMesh([0])), ValueError, "no axis 1"),
        (
            lambda: dist.shard_optimizer(paddle.optimizer.LBFGS(parameters=NET.parameters())),
            NotImplementedError,
            "shard_optimizer of LBFGS",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_states_by_a_function():
    def work():
        paddle.seed(1)
        mesh = dist.ProcessMesh([0, 1])
        net = dist.shard_layer(nn.Linear(4, 6), mesh)

        def columns(name, p, state):
            assert name in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")
            place = [dist.Shard(1)] if state.ndim == 2 else []
            return dist.shard_tensor(state, mesh, place)

        adam = paddle.optimizer.Adam(parameters=net.parameters())
        net(paddle.ones([2, 4])).sum().backward()
        adam.step()  # the states that there are move too
        adam = dist.shard_optimizer(adam, columns)
        return adam.state_dict()[f"{net.weight.name}_moment1_0"]._local_shape

    assert dist.spawn(work, nprocs=2).results == [[4, 3], [4, 3]]
