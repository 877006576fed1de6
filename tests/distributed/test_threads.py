"""Ranks that are threads: what each has of its own, what mistakes say, who hears of a fault."""

import os
import re
import threading
import time
from itertools import cycle, product
from types import SimpleNamespace

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import PeerFailed
from minipaddle.distributed.ranks import spawning
from tests.distributed import faulty

# ---- spawn -----------------------------------------------------------------------------------


def test_each_rank_has_settings_of_its_own():
    paddle.seed(5)
    before = paddle.get_rng_state()
    turn = threading.Barrier(2)

    def work():
        rank = dist.get_rank()
        paddle.seed(rank)
        paddle.set_default_dtype(["float64", "float32"][rank])
        turn.wait()
        first = paddle.rand([2])
        turn.wait()
        with paddle.no_grad() if rank else paddle.enable_grad():
            turn.wait()
            recording = paddle.is_grad_enabled()
            turn.wait()
        x = paddle.ones([1])
        x.stop_gradient = False
        (x * (rank + 1)).sum().backward()
        name = paddle.nn.Linear(1, 1).full_name()
        return first.tolist(), str(first.dtype), recording, x.grad.item(), name

    (a, float64, on, ga, na), (b, float32, off, gb, nb) = dist.spawn(work, nprocs=2).results
    assert (float64, float32) == ("paddle.float64", "paddle.float32")
    assert (on, off, ga, gb) == (True, False, 1.0, 2.0)
    assert na == nb  # the same model has the same names in all ranks
    assert a != b
    paddle.seed(1)
    assert paddle.rand([2]).tolist() == b
    paddle.seed(5)
    assert paddle.get_rng_state() == before


def test_hooks_on_what_is_kept_are_the_ranks_own():
    def work():
        packed = []
        pack = lambda t: packed.append(1) or t
        with paddle.autograd.saved_tensors_hooks(pack, lambda t: t):
            dist.barrier()
            for _ in range(20):
                x = paddle.ones([2])
                x.stop_gradient = False
                x.tanh()
            dist.barrier()
        return len(packed)

    assert dist.spawn(work, nprocs=3).results == [20] * 3


def test_spawn():
    assert dist.spawn(lambda a, b: a + b + dist.get_rank(), (1, 2), nprocs=2).results == [3, 4]
    assert (
        len(dist.spawn(dist.get_world_size).results) == dist.spawn(dist.get_world_size).results[0]
    )
    context = dist.spawn(lambda: time.sleep(0.2), nprocs=2, join=False)
    assert context.join(timeout=0.01) is False
    assert context.join() is True
    assert dist.get_world_size() == 1
    with pytest.raises(TypeError, match="started_port"):
        dist.spawn(print, nprocs=1, started_port=1)
    with pytest.raises(ValueError, match="0 ranks"):
        dist.spawn(print, nprocs=0)


def test_an_interrupt_ends_all_ranks(monkeypatch):
    """Also those that compute, and would do so for ever."""
    monkeypatch.setattr(spawning, "GRACE", 0.1)

    def work():
        if dist.get_rank() == 0:
            dist.barrier()
        while True:
            time.sleep(0.001)

    context = dist.spawn(work, nprocs=2, join=False)

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(context, "wait_for_change", interrupted)
    with pytest.raises(KeyboardInterrupt):
        context.join()
    for thread in context.processes:
        thread.join(5)
    assert context.running() == []
    assert "interrupted: KeyboardInterrupt" in str(context.error[1])


def test_in_a_process_that_is_a_rank_itself(monkeypatch):
    """`spawn` runs the function once: as the rank that the process is."""
    monkeypatch.setattr(spawning, "is_started_by_mpi", lambda: True)
    monkeypatch.setattr(spawning, "init_parallel_env", lambda: SimpleNamespace(size=2))
    context = dist.spawn(lambda a: a + 1, (41,), nprocs=4)
    assert context.results == [42]
    assert context.join()


def test_worlds_may_stand_in_each_other():
    def inner():
        return dist.get_rank(), dist.get_world_size()

    def outer():
        return dist.spawn(inner, nprocs=2).results, dist.get_world_size()

    assert dist.spawn(outer, nprocs=3).results == [([(0, 2), (1, 2)], 3)] * 3


def test_no_thread_is_left():
    before = threading.active_count()
    x = np.ones(100_000, "float32")
    dist.spawn(lambda: dist.get_group().all_reduce(x.copy(), wait=False).wait(), nprocs=3)
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


# ---- faults ----------------------------------------------------------------------------------

heard: dict = {}


def watched(*args):
    """`faulty.work`; what each rank hears stands in `heard`."""
    try:
        faulty.work(*args)
    except PeerFailed as error:
        heard[dist.get_rank()] = error
        raise


FAULTS = "raising", "hung", "returning"
MADE = [(f, 0.5, name) for f, name in zip(cycle(FAULTS), faulty.MADE)]
if os.environ.get("FAULTS") == "all":
    MADE = [(f, part, name) for name in faulty.MADE for f in FAULTS for part in (0, 0.5, 1)]


@pytest.mark.parametrize(("fault", "part", "name"), [*product(FAULTS, [0], faulty.CALLS), *MADE])
def test_a_fault_is_named_to_all(fault, part, name, monkeypatch):
    """To the others, in much less than a second; the hung one after the time-out of 0.2 s."""
    heard.clear()
    monkeypatch.setattr(spawning, "GRACE", 0.3)
    size = 60_000 if name == "all_reduce_begun" else 60
    expected = {"raising": ValueError, "hung": dist.CollectiveTimeout, "returning": PeerFailed}
    ranks, timeout = faulty.RANKS.get(name, 3), 0.2 if fault == "hung" else 2
    with pytest.raises(expected[fault]) as caught:
        dist.spawn(watched, (fault, name, size, part, timeout), nprocs=ranks, timeout=30)
    assert heard.keys() == {*range(ranks)} - {1}
    for error in heard.values():
        assert {*re.findall(r"rank (\d)", str(error))} == {"1"}
        assert error.seconds < 1.5
    if fault == "raising":
        assert f"(in rank 1 of {ranks})" in caught.value.__notes__
        assert "a fault of rank 1" in str(heard[0])
    if fault == "hung" and name in faulty.CALLS:
        assert "did not come (it was last in all_reduce number 2)" in str(heard[0])


def test_after_a_failure_nothing_is_begun():
    def work():
        if dist.get_rank() == 1:
            raise ValueError("gone")
        with pytest.raises(PeerFailed, match="rank 1 failed: ValueError: gone"):
            dist.barrier()
        with pytest.raises(PeerFailed, match="gone"):
            dist.all_reduce(paddle.ones([2]))
        return "told twice"

    context = dist.spawn(work, nprocs=2, join=False)
    with pytest.raises(ValueError, match="gone"):
        context.join()
    assert context.results[0] == "told twice"


def test_ranks_that_ask_for_different_things_are_told_so():
    def asking(calls):
        def work():
            calls[dist.get_rank()](dist.get_group())

        with pytest.raises(ValueError, match="do not ask for the same") as error:
            dist.spawn(work, nprocs=2, timeout=5)
        return str(error.value)

    x = np.ones(4, "float32")
    message = asking([lambda g: g.all_reduce(x), lambda g: g.broadcast(x)])
    assert "rank 0: all_reduce(float32[4], op=sum)" in message
    assert "rank 1: broadcast(float32[4], root=0)" in message
    message = asking([lambda g: g.all_reduce(x), lambda g: g.all_reduce(x[:2])])
    assert "float32[2]" in message
    asking([lambda g: g.all_reduce(x), lambda g: g.all_reduce(x, "max")])
    asking([lambda g: g.broadcast(x), lambda g: g.broadcast(x, 1)])
    asking([lambda g: g.all_to_all(x, [1, 3]), lambda g: g.all_to_all(x, [1, 3])])
    asking([lambda g: g.barrier(), lambda g: g.all_reduce(x)])


def test_a_message_of_another_shape_is_refused():
    def work():
        group = dist.get_group()
        if group.rank == 0:
            return group.send(np.ones(3), 1)
        with pytest.raises(ValueError, match=r"recv of float64\[2\] from rank 0, which sent"):
            group.recv(np.empty(2), 0)

    dist.spawn(work, nprocs=2)
