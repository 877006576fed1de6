"""A captured step on a machine whose cores are all busy: threads that wait must sleep."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

from tests.benchmarks.timing import in_units

ROWS, COLUMNS = 10_000, 16
PROCESSES, SECONDS = 10, 1.0


def step():
    """A captured step of Adam on a table; its gradient is the table itself."""
    import minipaddle as paddle

    table = paddle.create_parameter([ROWS, COLUMNS], "float32")
    adam = paddle.optimizer.Adam(1e-3, parameters=[table])

    @paddle.jit.to_static(backend="native")
    def train():
        (0.5 * table * table).sum().backward()
        adam.step()
        adam.clear_grad()

    return train


def time_steps() -> None:
    """Print the median time of a step in seconds."""
    train, times = step(), []
    for _ in range(10):
        train()
    end = time.perf_counter() + SECONDS
    while (began := time.perf_counter()) < end:
        train()
        times.append(time.perf_counter() - began)
    print(statistics.median(times))


@contextmanager
def busy(processes: int):
    """As many processes that compute without an end."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def median_of_process(threads: int) -> float:
    """The median of a step, in a process of its own."""
    command = [sys.executable, "-c", "from tests.benchmarks.busy import time_steps; time_steps()"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return float(subprocess.check_output(command, env=environment, text=True))


def run(threads: int, arguments=()) -> None:
    threads, cores = max(threads, 2), len(os.sched_getaffinity(0))
    alone, together = (min(median_of_process(n) for _ in range(3)) for n in (1, threads))
    print(f"A step of Adam on {ROWS} × {COLUMNS}: one thread {in_units(alone)}", end=", ")
    print(f"{threads} threads {in_units(together)}")
    with busy(cores):
        medians = sorted(median_of_process(threads) for _ in range(PROCESSES))
    print(f"beside {cores} busy processes, medians of {PROCESSES} processes:", end=" ")
    print(*map(in_units, medians), sep=", ")
    print(f"the worst is {medians[-1] / alone:.1f} times one thread alone; 5 is the limit")
