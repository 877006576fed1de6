"""A rank of a mesh that does not exist: against ranks that do, and against formulas."""

import re

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed.simulator import (
    NVLINK,
    PCIE,
    Cluster,
    Device,
    Half,
    Link,
    all_reduce_along,
    carry_out,
    plan_step,
    pretend,
    seconds,
)
from minipaddle.distributed.simulator.planning import work_of

WIDTH, BATCH = 32, 4
UP, DOWN = WIDTH * 2 * WIDTH + 2 * WIDTH, 2 * WIDTH * WIDTH + WIDTH
WEIGHTS = 2 * (UP + DOWN)
DEVICE = Device(1e9, 1e9)


def plan(way: str, shape: tuple[int, ...]):
    """The plan of a step of two blocks; each rank counts as `BATCH` rows of the batch."""
    mesh = dist.ProcessMesh(np.arange(np.prod(shape)).reshape(shape), ["dp", "mp"][-len(shape) :])
    block = lambda: (nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
    net = nn.Sequential(*block(), *block())
    whole = [dist.Replicate()] * (mesh.ndim - 1)
    for k in (0, 2, 3, 5) if "tensor" in way else ():
        up = k in (0, 3)
        dist.shard_tensor(net[k].weight, mesh, [*whole, dist.Shard(1 if up else 0)])
        dist.shard_tensor(net[k].bias, mesh, [*whole, dist.Shard(0) if up else dist.Replicate()])
    dist.shard_layer(net, mesh)
    sgd = paddle.optimizer.SGD(0.1, net.parameters())
    if "ZeRO-3" in way:
        sgd = dist.shard_optimizer(sgd, dist.ShardingStage3(0, mesh))
    rows = [dist.Replicate() if way == "tensor" else dist.Shard(0), *whole]
    x = paddle.ones([BATCH * (1 if way == "tensor" else shape[0]), WIDTH])
    x = dist.shard_tensor(x, mesh, rows[: mesh.ndim])

    @paddle.jit.to_static
    def step(x):
        net(x).square().sum().backward()
        sgd.step()
        sgd.clear_grad()

    return plan_step(step, [x], DEVICE)


def travelling(found) -> list[tuple[bool, int]]:
    """(whether it is half a sum, bytes) of what is more than a loss."""
    return [(type(n) is Half, int(n)) for n in found.nbytes if n > 4]


WAYS = [("data", (4,)), ("tensor", (4,)), ("ZeRO-3", (4,)), ("data, tensor", (2, 2)),
        ("ZeRO-3, tensor", (2, 2))]  # fmt: skip


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(("way", "shape"), WAYS)
def test_a_pretended_rank_is_as_a_real_one(way, shape):
    """The same program, the same bytes."""
    real = dist.spawn(plan, (way, shape), nprocs=4).results[0]
    found = pretend(plan, (way, shape), ranks=4)
    names = re.compile(r"\b[a-z_]+_\d+\.\w+")  # of parameters: how many there were before
    shown = [names.sub("", str(each.program)) for each in (found, real)]
    assert shown[0] == shown[1]
    assert (found.nbytes, found.held) == (real.nbytes, real.held)


@pytest.mark.parametrize("n", [2, 32])
def test_bytes_that_travel_are_those_of_the_formulas(n):
    """In data parallel gradients, as sums; in ZeRO-3 weights are gathered and gradients scattered,
    half as much each; in tensor parallel an activation after each block, and one before but for the
    first.
    """
    found = pretend(plan, ("data", (n,)), ranks=n)
    loss = sum(nbytes for nbytes in found.nbytes if nbytes <= 4)
    assert found.received == pytest.approx(2 * (4 * WEIGHTS + loss) * (n - 1) / n)
    data = travelling(found)
    assert {half for half, _ in data} == {False}
    assert sum(nbytes for _, nbytes in data) == 4 * WEIGHTS
    zero = travelling(pretend(plan, ("ZeRO-3", (n,)), ranks=n))
    assert {half for half, _ in zero} == {True}
    assert sum(nbytes for _, nbytes in zero) == 2 * 4 * WEIGHTS
    tensor = travelling(pretend(plan, ("tensor", (n,)), ranks=n))
    assert tensor == [(False, 4 * BATCH * WIDTH)] * 3


def test_a_mesh_of_two_axes():
    """Along mp travel activations, along dp the gradients of this rank's pieces of weights."""
    found = pretend(plan, ("data, tensor", (8, 4)), ranks=32)
    along_dp, along_mp = (
        sum(n for n in found.nbytes if n.group == group) for group in found.view.groups
    )
    pieces = 2 * ((UP + DOWN - WIDTH) // 4 + WIDTH)
    assert 0 <= along_dp - 4 * pieces <= 8
    assert 0 <= along_mp - 3 * 4 * BATCH * WIDTH <= 8
    assert found.held == 4 * pieces + 4  # the rate


def test_the_time_of_a_step_without_overlap():
    """Computing, then rings: 2 (n - 1) messages of 1/n of the bytes."""
    n, link = 16, Link(1e6, 1e-4)
    found = pretend(plan, ("data", (n,)), ranks=n)
    rings = sum(2 * (n - 1) * (1e-4 + nbytes / n / 1e6) for nbytes in found.nbytes)
    took = found.simulate_on(Cluster(1, n, link), overlap=False)
    assert took.seconds == pytest.approx(took.compute + rings)
    assert took.compute == pytest.approx(sum(p.seconds for p in found.pieces))


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("way", ["data", "ZeRO-3"])
def test_more_devices_take_longer_and_compute_no_more(way):
    sizes = (1, 8, 32)
    plans = [pretend(plan, (way, (n,)), ranks=n) for n in sizes]
    clusters = [Cluster(-(-n // 8), min(n, 8), PCIE) for n in sizes]
    times = [found.simulate_on(cluster) for found, cluster in zip(plans, clusters)]
    took = [each.seconds for each in times]
    assert took == sorted(took)
    assert took[0] < took[-1]
    if way == "data":
        assert [each.compute for each in times] == pytest.approx([times[0].compute] * 3)
    else:  # the update is of a piece of the weights
        assert times[-1].compute < times[0].compute
        assert plans[1].held < plans[0].held / 7


def test_what_a_kernel_takes():
    found = pretend(plan, ("data", (2,)), ranks=2)
    products = [r for r in found.program.records if r.op.name == "product"]
    works = {work_of(r, {}) for r in products}
    assert (2 * BATCH * WIDTH * 2 * WIDTH, 4 * (3 * BATCH * WIDTH + 2 * WIDTH**2)) in works
    assert Device(2.0, 4.0).seconds(6, 4) == 3  # it computes
    assert Device(2.0, 4.0).seconds(6, 16) == 4  # it waits for memory


# ---- lines of a mesh -----------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "axis"), [((4, 3), 0), ((4, 3), 1), ((2, 3, 4), 1), ((12,), 0)])
def test_each_line_ends_with_its_sum(shape, axis):
    rng = np.random.default_rng(0)
    given = rng.integers(-9, 9, (*shape, 24))
    schedule = all_reduce_along(shape, axis, Cluster(np.prod(shape) // 2, 2, NVLINK))
    ends = carry_out(schedule, [*given.reshape(-1, 24)])[-1]
    expected = np.broadcast_to(given.sum(axis, keepdims=True), given.shape)
    np.testing.assert_array_equal(np.reshape(ends, given.shape), expected)


def test_lines_between_machines_share_their_link():
    """Along the first axis of a mesh of 4 machines of 8 there are eight rings over each link."""
    inside, between = Link(8e9, 1e-6), Link(1e9, 1e-5)
    cluster, size = Cluster(4, 8, inside, between), 1e8
    plans = (all_reduce_along((4, 8), k, cluster) for k in (0, 1))
    along_dp, along_mp = (seconds(each, size, cluster) for each in plans)
    assert along_dp == pytest.approx(2 * 3 * (1e-5 + 8 * size / 4 / 1e9))
    assert along_mp == pytest.approx(2 * 7 * (1e-6 + size / 8 / 8e9))
