"""What a worker process answers, called in this one."""

import multiprocessing
import os
import threading

import numpy as np

from minipaddle.io import channel, worker, worker_loop


def test_a_worker_dies_with_its_parent(monkeypatch):
    parents, codes = [5, 5, 1], []
    monkeypatch.setattr(os, "getppid", lambda: parents.pop(0))
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(worker_loop.time, "sleep", lambda seconds: None)
    worker_loop.die_with(5)
    assert codes == [1]


def test_answers_wait_for_a_slow_reader():
    there, here = multiprocessing.Pipe()
    with there, here:
        writer = worker_loop.AnswerWriter(there)
        for k in range(3):
            writer.put(channel.message(np.full(1 << 17, k)))  # more than a pipe holds
        assert [int(channel.receive(here)[-1]) for _ in range(3)] == [0, 1, 2]
        assert writer.idle.wait(10)
        here.close()
        writer.put(channel.message(3))  # nobody reads: its thread ends, without a word


def test_what_cannot_travel_is_a_failure():
    data = worker_loop.answer(lambda request: threading.Lock(), [1, 2])
    failure = channel.open_message(memoryview(data)[8:])
    assert isinstance(failure, worker.Failure)
    assert failure.sample == [1, 2]
    assert "lock cannot travel between processes" in failure.traceback
