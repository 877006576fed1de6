"""All-reduce as messages on links, and steps on clusters: against formulas, sums, and by hand."""

from itertools import count
from math import ceil, log2
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed.simulator import (
    ETHERNET,
    INFINIBAND,
    NVLINK,
    PCIE,
    Cluster,
    Link,
    TimelinePiece,
    best_of,
    carry_out,
    fit_link,
    hierarchical,
    measure_step,
    measuring,
    ring,
    seconds,
    simulate,
    slow_down,
    tree,
)  # fmt: skip
from minipaddle.distributed.simulator.timeline import Half, pieces_of
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record
from tests.distributed.programs import batches, mlp, plain

SCHEDULES = [
    *(ring(n) for n in (1, 2, 3, 5)),
    *(tree(n) for n in (1, 2, 3, 6, 7, 8)),
    *(hierarchical(a, b) for a, b in ((1, 4), (4, 1), (2, 2), (3, 4), (2, 5))),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: f"{s.name} {s.size}")
@pytest.mark.parametrize("size", [0, 3, 37])
def test_every_rank_ends_with_the_sum(schedule, size):
    rng = np.random.default_rng(size)
    given = [rng.integers(-9, 9, size) for _ in range(schedule.size)]
    states = carry_out(schedule, given)
    assert len(states) == 1 + len(schedule.rounds)
    for before, array in zip(states[0], given, strict=True):
        np.testing.assert_array_equal(before, array)
    for after in states[-1]:
        np.testing.assert_array_equal(after, sum(given))


@pytest.mark.parametrize("n", [2, 3, 8, 64])
def test_a_ring_takes_what_the_formula_says(n):
    link, size = Link(7e9, 3e-6), 5e7
    expected = 2 * (n - 1) * (link.latency + size / n / link.bandwidth)
    assert seconds(ring(n), size, Cluster(1, n, link)) == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 3, 8, 100])
def test_a_tree_takes_what_the_formula_says(n):
    link, size = Link(7e9, 3e-6), 5e7
    expected = 2 * ceil(log2(n)) * (link.latency + size / link.bandwidth)
    assert seconds(tree(n), size, Cluster(1, n, link)) == pytest.approx(expected)


def test_rings_in_rings_take_what_the_formula_says():
    nodes, devices, size = 6, 4, 3e7
    a, b = Link(9e9, 1e-6), Link(2e9, 5e-5)
    inside = 2 * (devices - 1) * (a.latency + size / devices / a.bandwidth)
    share = size / devices / nodes * devices  # all devices of a machine send at once
    between = 2 * (nodes - 1) * (b.latency + share / b.bandwidth)
    cluster = Cluster(nodes, devices, a, b)
    found = seconds(hierarchical(nodes, devices), size, cluster)
    assert found == pytest.approx(inside + between)


def test_what_shares_a_link_shares_its_bandwidth():
    cluster = Cluster(2, 2, Link(4.0, 0.0), Link(1.0, 0.0))
    assert cluster.seconds([(0, 1), (1, 0)], 8) == 2  # both ways at once
    assert cluster.seconds([(0, 1), (0, 1)], 8) == 4
    assert cluster.seconds([(0, 2), (1, 3)], 8) == 16  # one link between the machines
    assert cluster.seconds([(0, 2), (2, 0)], 8) == 8
    assert cluster.seconds([], 8) == 0


def test_small_messages_want_few_rounds_and_large_ones_full_links():
    eight = Cluster(1, 8, PCIE)
    assert seconds(tree(8), 1e3, eight) < seconds(ring(8), 1e3, eight)
    assert seconds(ring(8), 1e8, eight) < seconds(tree(8), 1e8, eight)
    large = Cluster(128, 8, NVLINK, INFINIBAND)
    assert seconds(hierarchical(128, 8), 1e8, large) < seconds(ring(1024), 1e8, large)
    assert best_of(large).name == "hierarchical"


# ---- a step ----------------------------------------------------------------------------------

TWO = Cluster(1, 2, Link(1.0, 0.0))  # a ring of two moves its bytes once: a byte a second
STEP = [
    TimelinePiece("forward", 4.0),
    TimelinePiece("late layers", 3.0, starts=(0,)),
    TimelinePiece("early layers", 2.0, starts=(1,)),
    TimelinePiece("update", 1.0, waits=(0,)),
    TimelinePiece("update", 1.0, waits=(1,)),
]


def test_communication_hides_behind_computing():
    """Bucket 0 travels from 7 to 10, bucket 1 from 10 to 11: the updates are at 10 and 11."""
    found = simulate(STEP, [3.0, 1.0], TWO)
    assert (found.seconds, found.compute) == (12.0, 11.0)
    assert found.efficiency == pytest.approx(11 / 12)
    assert found.total("communication") == 4
    assert found.total("idle") == 1
    spans = [(s.start, s.end) for s in found.spans if s.device == 1 and s.kind == "communication"]
    assert spans == [(7.0, 10.0), (10.0, 11.0)]


def test_without_overlap_all_of_it_is_waited_for():
    found = simulate(STEP, [3.0, 1.0], TWO, overlap=False)
    assert found.seconds == 11 + 3 + 1
    assert found.total("idle") == 4


def test_one_device_talks_to_nobody():
    assert simulate(STEP, [3.0, 1.0], Cluster(1, 1, PCIE)).efficiency == 1


def test_all_wait_for_the_slowest():
    step = [TimelinePiece("backward", 9.0, starts=(0,)), TimelinePiece("update", 1.0, waits=(0,))]
    found = simulate(step, [0.0], Cluster(1, 8, NVLINK), spread=0.1)
    factors = np.maximum(1 + 0.1 * np.random.default_rng(0).standard_normal(8), 0.1)
    assert found.seconds == pytest.approx(10 * factors.max(), rel=1e-3)
    idle = [found.total("idle", device) for device in range(8)]
    np.testing.assert_allclose(idle, 9 * (factors.max() - factors), atol=1e-3)


def test_measured_costs_stand_instead_of_the_links():
    found = simulate(STEP, [3.0, 1.0], TWO, cost=lambda nbytes: 0.5)
    assert found.total("communication") == 1


def test_gathers_and_scatters_are_half_a_sum():
    found = simulate(STEP, [Half(3), 1.0], TWO)
    assert found.total("communication") == 1.5 + 1


def test_a_program_says_what_is_gathered_and_scattered():
    def made(name, *inputs, size=1, **attrs):
        return Record(OPS[name], inputs, attrs, (size,), np.dtype("float32"))

    x, g = made("exp", size=4), made("exp", size=8)
    gather = made("start_collective", x, collective="all_gather", group=3)
    gathered = made("finish_collective", gather, size=8)
    added = made("add", g, gathered, size=8)
    scatter = made("start_collective", added, collective="reduce_scatter", group=0)
    records = [gather, g, gathered, added, scatter, made("finish_collective", scatter, size=4)]
    program, times = SimpleNamespace(records=records), [(2.0, g), (2.0, added)]
    pieces, sizes = pieces_of(program, times)
    assert [(p.name, p.starts, p.waits) for p in pieces] == [
        ("begin", (0,), ()), ("exp", (), ()), ("add", (1,), (0,)), ("end", (), (1,)),
    ]  # fmt: skip
    assert [(type(n), n, n.group) for n in sizes] == [(Half, 32, 3), (Half, 32, 0)]


def test_a_schedule_must_be_for_so_many():
    with pytest.raises(ValueError, match="ring of 4 ranks on 2 devices"):
        simulate(STEP, [3.0, 1.0], TWO, schedule=ring(4))


def test_a_slow_network_is_seen_at_a_thousand_devices():
    fast, slow = (Cluster(128, 8, NVLINK, between) for between in (INFINIBAND, ETHERNET))
    step = [TimelinePiece("backward", 0.1, starts=(0,)), TimelinePiece("update", 0.001, waits=(0,))]
    assert simulate(step, [1e8], slow).seconds > simulate(step, [1e8], fast).seconds > 0.1


# ---- what is measured --------------------------------------------------------------------------


def test_the_pieces_of_a_step_are_its_kernels_and_buckets():
    net = mlp()
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    step = plain(net, opt)
    x, y = (paddle.to_tensor(a) for a in batches("mlp")[0])
    pieces, nbytes = measure_step(step, net.parameters(), [x, y], bucket_mb=0.005)
    assert sum(nbytes) == sum(p.array.nbytes for p in net.parameters())
    starts = [k for p in pieces for k in p.starts]
    waits = [k for p in pieces for k in p.waits]
    assert starts == waits == [*range(len(nbytes))]
    assert len(nbytes) > 2
    assert 0 < sum(p.seconds for p in pieces) < 1
    assert all(p.averaged is None for p in net.parameters())


def test_a_link_is_found_from_times(monkeypatch):
    """By a clock that only the collectives move: a ring of three, once in four runs held up."""
    link, now, runs = Link(2e6, 2e-3), [0.0], count()

    def all_reduce(array):
        now[0] += 4 * link.latency + 4 / 3 * array.nbytes / link.bandwidth
        now[0] += 9.0 * (next(runs) % 4 == 0)

    group = SimpleNamespace(size=3, barrier=lambda: None, all_reduce=all_reduce)
    monkeypatch.setattr(measuring, "perf_counter", lambda: now[0])
    found = fit_link(group, [1000, 8000, 64000], runs=5)
    assert found.bandwidth == pytest.approx(link.bandwidth, rel=1e-6)
    assert found.latency == pytest.approx(link.latency, rel=1e-6)


def test_a_slowed_group_keeps_its_time():
    def rank():
        world = paddle.distributed.get_group()
        with slow_down(world, Cluster(1, 2, Link(1e6, 0.0))):
            begin = perf_counter()
            works = [world.all_reduce(np.full(2500, k, "float32"), wait=False) for k in range(3)]
            done = [(w.wait()[0], perf_counter() - begin) for w in works]
        return done

    for done in paddle.distributed.spawn(rank, nprocs=2).results:
        assert [value for value, _ in done] == [0, 2, 4]
        assert all(spent >= 0.01 * (k + 1) for k, (_, spent) in enumerate(done))  # one by one
