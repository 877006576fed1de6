"""`fleet`: what a strategy says is done, or refused by name."""

from copy import copy

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.model import chosen
from minipaddle.distributed.fleet.strategy import HINTS, KNOWN, OTHERS
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.distributed.reducer import build_buckets
from tests.distributed import programs


@pytest.fixture(autouse=True)
def alone_again():
    """Forget what a test has set in `fleet` in this thread."""
    yield
    chosen.now = None
    dist.destroy_process_group()


def strategy_of(**options):
    strategy = fleet.DistributedStrategy()
    for name, value in options.items():
        setattr(strategy, name, value)
    return strategy


def begun(**options):
    """`fleet.init` with a strategy."""
    fleet.init(is_collective=True, strategy=strategy_of(**options))


# ---- what is done ----------------------------------------------------------------------------


def test_what_a_model_and_its_rank_are():
    def rank():
        begun(sync_batch_norm=True, fuse_all_reduce_ops=False, hybrid_configs={"dp_degree": 2})
        net = fleet.distributed_model(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3)))
        opt = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, net.parameters()))
        net(paddle.rand([4, 2])).sum().backward()
        opt.step()
        fleet.barrier_worker()
        kinds = [type(layer).__name__ for layer in net.sublayers()[1:]]
        identity = fleet.worker_index(), fleet.worker_num(), fleet.is_first_worker()
        return type(net), type(opt), kinds, len(net.reducer.buckets), identity

    (*found, first), (*_, second) = dist.spawn(rank, nprocs=2).results
    kinds = ["Linear", "SyncBatchNorm"]
    assert found == [paddle.DataParallel, paddle.optimizer.SGD, kinds, 4]
    assert (first, second) == ((0, 2, True), (1, 2, False))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[40, 5, 20, 30, 10]]),
        ({"fuse_grad_size_in_MB": 45 * 4 / 2**20, "last_comm_group_size_MB": 12 * 4 / 2**20},
         [[40, 5], [20], [30], [10]]),
        ({"fuse_all_reduce_ops": False}, [[40], [5], [20], [30], [10]]),
    ],
)  # fmt: skip
def test_gradients_travel_as_the_strategy_says(options, expected):
    """In buckets of a backward, and of the pass."""

    class Weights(nn.Layer):
        def __init__(self):
            super().__init__()
            sizes = [10, 30, 20, 5, 40]
            self.all = nn.ParameterList([self.create_parameter([n]) for n in sizes])

        def forward(self, x):
            return x

    def rank():
        begun(**options)
        net = fleet.distributed_model(Weights())
        marks = [p.averaged["bucket_mb"] for p in net.parameters()]
        return [[p.size for p in b.parameters] for b in net.reducer.buckets], set(marks)

    for buckets, (bucket_mb,) in dist.spawn(rank, nprocs=2).results:
        assert buckets == expected
        limit = options.get("fuse_grad_size_in_MB", KNOWN["fuse_grad_size_in_MB"])
        assert bucket_mb == (limit if options.get("fuse_all_reduce_ops", True) else 0)


@pytest.mark.parametrize("find", [False, True])
def test_parameters_without_a_gradient(find):
    def rank():
        begun(find_unused_parameters=find)
        layers = nn.LayerList([nn.Linear(1, 1), nn.Linear(1, 1)])
        fleet.distributed_model(layers)
        layers[0](paddle.ones([1, 1])).sum().backward()
        return [p.grad is None for p in layers.parameters()]

    if find:
        assert dist.spawn(rank, nprocs=2).results == [[False, False, True, True]] * 2
    else:
        with pytest.raises(RuntimeError, match="find_unused_parameters=True"):
            dist.spawn(rank, nprocs=2)


# ---- gradient merge --------------------------------------------------------------------------

BATCHES = programs.batches("mlp", 6, 8)
SIZES = 0.005, 0.001
"""The MB of gradients that travel together, and last."""


def optimizer(net):
    clip = nn.ClipGradByGlobalNorm(0.5)
    return paddle.optimizer.Adam(0.01, parameters=net.parameters(), grad_clip=clip)


def merged(ranks, k, static=None, *, avg=True, last=False):
    """For each rank the weights after all batches, k of which are an update, and the step.

    last: is the model wrapped behind the optimizer?
    """

    def rank():
        paddle.seed(3 + dist.get_rank())
        how = {"k_steps": k, "avg": avg}
        sizes = dict(zip(("fuse_grad_size_in_MB", "last_comm_group_size_MB"), SIZES))
        begun(gradient_merge=True, gradient_merge_configs=how, **sizes)
        net = programs.mlp()
        wrap = fleet.distributed_optimizer
        opt = wrap(optimizer(net)) if last else None
        model = fleet.distributed_model(net)
        step = programs.plain(model, opt or wrap(optimizer(net)))
        step = paddle.jit.to_static(step, backend=static) if static else step
        for batch in BATCHES:
            step(*(paddle.to_tensor(a[dist.get_rank() :: ranks]) for a in batch))
        return [p.numpy() for p in net.parameters()], step

    return dist.spawn(rank, nprocs=ranks, timeout=30).results


def alone(k, avg=True):
    """The weights after updates on k batches joined, in one process that merges nothing."""
    paddle.seed(3)
    net = programs.mlp()
    opt = optimizer(net)
    for first in range(0, len(BATCHES), k):
        x, y = (np.concatenate(each) for each in zip(*BATCHES[first : first + k], strict=True))
        loss = F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(y))
        (loss if avg else k * loss).backward()
        opt.step()
        opt.clear_grad()
    return [p.numpy() for p in net.parameters()]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("static", [None, "interpreter", "native"])
@pytest.mark.parametrize(
    ("ranks", "k", "avg", "last"),
    [(1, 3, True, False), (2, 2, True, False), (4, 3, False, True), (2, 1, True, False)],
)
def test_merged_steps_are_one_on_the_joined_batch(ranks, k, avg, last, static):
    expected = alone(k, avg)
    found = merged(ranks, k, static, avg=avg, last=last)
    for own, step in found:
        for a, b, first in zip(own, expected, found[0][0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)
            np.testing.assert_array_equal(a, first)  # bit by bit
        if static:
            assert bool(step.executables) == (static == "native")


def sent(work, ranks=2) -> int:
    """How many all-reduces rank 0 begins."""
    count = []

    def counting(group, array, op):
        count.append(group.rank)
        return group.start("all_reduce", array, op=op)

    with plugged("distributed.all_reduce", counting):
        work()
    return count.count(0)


@pytest.mark.parametrize(
    ("static", "last"),
    [(None, False), (None, True), ("interpreter", True), ("native", False)],
)
def test_merged_gradients_are_averaged_once(static, last):
    """Six steps are three updates, or two."""
    second, third = (sent(lambda k=k: merged(2, k, static, last=last)) for k in (2, 3))
    assert second / 3 == third / 2 == len(build_buckets(programs.mlp().parameters(), *SIZES))


def test_a_captured_step_that_merges_stays_one_program():
    ((_, step), _) = merged(2, 2, "interpreter")
    names = [r.op.name for r in step.main_program.records]
    assert names.count("cond") == 1
    assert "all_reduce" not in names  # no backward averages
    assert len(step.program_cache) <= 2  # the first may differ: states are made


def test_an_optimizer_that_does_not_merge_averages_in_every_backward():
    def rank():
        begun(gradient_merge=True, gradient_merge_configs={"k_steps": 2})
        net = fleet.distributed_model(nn.Linear(1, 1, bias_attr=False))
        net(paddle.full([1, 1], 1.0 + dist.get_rank())).backward()
        return net.parameters()[0].grad.item()

    assert dist.spawn(rank, nprocs=2).results == [1.5, 1.5]


def test_what_merges_is_the_optimizer_in_all_else():
    begun()
    w = paddle.create_parameter([2], "float32", is_bias=True)
    frozen = paddle.create_parameter([2], "float32", is_bias=True)
    inner = paddle.optimizer.Adam(0.5, parameters=[w, frozen])
    strategy = strategy_of(gradient_merge=True, gradient_merge_configs={"k_steps": 2})
    opt = fleet.distributed_optimizer(inner, strategy)
    for slope in (float("inf"), 1.0, 1.0, 3.0):
        (slope * w).sum().backward()
        opt.minimize(None)
        assert w.grad is None  # a step takes the gradients: `clear_grad` may be left out
    assert opt.get_lr() == copy(opt).get_lr() == 0.5
    assert opt.state_dict().keys() == inner.state_dict().keys()
    assert frozen.tolist() == [0.0, 0.0]
    assert opt.merged.keys() == {w}
    assert opt.merged[w].tolist() == [0.0, 0.0]  # also after what was infinite


def test_a_static_program_merges():
    x, _ = BATCHES[0]
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            given = paddle.static.data("x", [None, 16], "float32")
            loss = paddle.static.nn.fc(given, 1).mean()
            begun(gradient_merge=True, gradient_merge_configs={"k_steps": 2})
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(startup)
        found = [executor.run(main, {"x": x}, [loss])[0].item() for _ in range(5)]
    finally:
        paddle.disable_static()
    assert found[0] == found[1] > found[2] == found[3] > found[4]


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_done_is_refused_by_name(name):
    strategy = strategy_of(**{name: False})
    with pytest.raises(NotImplementedError, match=f"DistributedStrategy.{name}"):
        setattr(strategy, name, True)


def test_hints_are_kept():
    for name, value in HINTS.items():
        assert getattr(strategy_of(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("hybrid_configs", {"pp_degree": 0}, ValueError, "pp_degree=0"),
        ("hybrid_configs", {"cp_degree": 2}, NotImplementedError, "cp_degree"),
        ("fuse_all", True, AttributeError, "has no fuse_all"),
        ("gradient_merge_configs", {"k": 2}, NotImplementedError, "gradient_merge_configs with k"),
        ("gradient_merge_configs", {"k_steps": 0}, ValueError, "k_steps=0"),
        ("gradient_merge_configs", {"k_steps": 2.0}, ValueError, r"k_steps=2\.0"),
    ],
)
def test_what_a_strategy_refuses(name, value, error, message):
    with pytest.raises(error, match=message):
        strategy_of(**{name: value})


def test_a_strategy_says_what_it_is():
    text = repr(strategy_of(gradient_merge_configs={"k_steps": 4}))
    assert "fuse_grad_size_in_MB=32" in text
    assert "gradient_merge_configs={'k_steps': 4, 'avg': True}" in text


def test_what_fleet_refuses():
    def rank():
        with pytest.raises(RuntimeError, match=r"before fleet\.init"):
            fleet.distributed_model(nn.Linear(1, 1))
        merging = {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}}
        begun(find_unused_parameters=True, **merging)
        with pytest.raises(NotImplementedError, match=r"find_unused_parameters(?s:.*)no_sync"):
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, nn.Linear(1, 1).parameters()))
        begun(hybrid_configs={"dp_degree": 3})

    with pytest.raises(ValueError, match=r"dp_degree=3, .* of 2 ranks"):
        dist.spawn(rank, nprocs=2)
