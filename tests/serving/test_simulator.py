"""The simulator against closed forms of queueing theory, and against the server."""

import asyncio
import math
import random
import time
from statistics import median

import pytest

from minipaddle.serving.app import Settings
from minipaddle.serving.batcher import BatchPolicy
from minipaddle.serving.repository import ServingOptions
from minipaddle.serving.simulator import Costs, simulate

from .serving import infer, save_affine, serving


def costs(run, **more):
    return Costs(**{"arrive": 0.0, "answer": 0.0, "batch": 0.0} | more, run=run)


def poisson(rate, count, seed=0):
    """Times of arrivals at random."""
    draw, now, times = random.Random(seed), 0.0, []
    for _ in range(count):
        now += draw.expovariate(rate)
        times.append(now)
    return times


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_at_a_time_waits_as_pollaczek_and_khinchine_say(load):
    """M/D/1: the mean wait is load / (2 (1 - load)) runs."""
    found = simulate(poisson(load, 12_000), BatchPolicy(1, capacity=10**6), costs(lambda rows: 1.0))
    mean = sum(found.latencies) / len(found.latencies)
    assert mean == pytest.approx(1 + load / (2 * (1 - load)), rel=0.1)


@pytest.mark.sweep
def test_a_full_queue_refuses_as_erlang_says():
    """M/M/1/K refuses (1 - r) r^K / (1 - r^(K + 1)) of what arrives; here K = 5, r = 0.9."""
    draw, r, k = random.Random(1), 0.9, 5
    run = lambda rows: draw.expovariate(1.0)
    policy = BatchPolicy(1, capacity=k - 1)
    found = simulate(poisson(r, 20_000), policy, costs(run))
    assert found.refused / 20_000 == pytest.approx((1 - r) * r**k / (1 - r ** (k + 1)), rel=0.1)


@pytest.mark.sweep
def test_batches_carry_what_single_runs_cannot():
    """A run costs 1 whatever its rows: one at a time serves 1 a second, eight together 8."""
    times, run = poisson(6.0, 6000), lambda rows: 1.0
    alone = simulate(times, BatchPolicy(1, capacity=50), costs(run))
    batches = simulate(times, BatchPolicy(8, capacity=50), costs(run))
    assert alone.throughput == pytest.approx(1.0, rel=0.02)
    assert batches.throughput == pytest.approx(6.0, rel=0.05)
    assert batches.refused < 60 < alone.refused


def test_a_window_costs_its_time_when_nobody_else_comes():
    for window in (0.0, 0.5, 2.0):
        found = simulate([0.0, 100.0], BatchPolicy(8, window), costs(lambda rows: 1.0))
        assert found.latencies == [1 + window] * 2


def test_the_loop_is_a_server_too():
    """Two requests at once: the first answer waits until the second has come."""
    found = simulate([0.0, 0.0], BatchPolicy(1), costs(lambda rows: 0.0, arrive=1.0, answer=2.0))
    assert found.latencies == [4.0, 6.0]


def test_every_request_is_counted_once():
    found = simulate(
        poisson(9.0, 3000), BatchPolicy(4, 0.1, capacity=8), costs(lambda rows: 1.0), timeout=2.5
    )
    assert len(found.latencies) + found.refused + found.late == 3000
    assert found.refused
    assert found.late
    assert max(found.latencies) <= 2.5 + 1e-9
    assert math.isnan(simulate([], BatchPolicy(), costs(lambda rows: 1.0)).quantile(0.5))


@pytest.mark.sweep
def test_two_workers_serve_twice_as_much():
    times, run = poisson(9.0, 3000), lambda rows: 1.0
    one, two = (
        simulate(times, BatchPolicy(2, capacity=20), costs(run), workers=n).throughput
        for n in (1, 2)
    )
    assert two == pytest.approx(2 * one, rel=0.02)


def test_the_server_does_what_the_simulator_says(tmp_path):
    """Runs sleep, so that a busy machine disturbs them little."""
    save_affine(tmp_path)
    options = ServingOptions(largest=8, window_ms=30, queue=40)
    times, run = poisson(120.0, 150), lambda rows: 0.03 + 0.004 * rows
    wanted = simulate(times, options.policy, costs(run))
    batches, latencies = [], []

    def asleep(requests):
        batches.append(len(requests))
        time.sleep(run(len(requests)))
        return [[a + 1 for a in request] for request in requests]

    async def main():
        server = await serving(tmp_path, Settings(options=options))
        runner = server.repository.models["affine"][1].runner
        runner.tasks[0].cancel()
        runner.start([asleep])
        start = time.monotonic()

        async def one(at):
            await asyncio.sleep(start + at - time.monotonic())
            answer = await infer(server, [1, 2])
            latencies.append(time.monotonic() - start - at)
            return answer.status

        statuses = await asyncio.gather(*map(one, times))
        await server.repository.drain()
        return statuses

    assert asyncio.run(main()) == [200] * len(times)
    assert wanted.refused == 0
    assert len(batches) == pytest.approx(wanted.batches, rel=0.35)
    # no faster than on paper; slower by what others take of the processors
    assert 0.8 * wanted.quantile(0.5) < median(latencies) < 3 * wanted.quantile(0.5)
