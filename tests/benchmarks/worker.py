"""A process that holds one framework and one workload, and does what it is told: a line of JSON
comes in by its standard input for each order, and one goes out for each answer.

    python -m tests.benchmarks.worker FRAMEWORK WORKLOAD THREADS

What the framework prints goes to standard error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

from . import floor, frameworks, models
from .timing import calls_per_round
from .workloads import WORKLOADS

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
FIRST = 3
"""So many steps are watched before timing begins: their losses are compared."""


def main(name: str, title: str, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    work = Work(name, title, threads)
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(work, order.pop("do"))(**order)
        print(json.dumps(answer), file=answers, flush=True)


class Work:
    """The orders."""

    def __init__(self, name: str, title: str, threads: int):
        self.name, self.threads = name, threads
        self.workload = WORKLOADS[title]
        frameworks.keep_to(name, threads)
        self.weights = models.weights_of(self.workload)
        self.step = None

    def first(self) -> dict:
        """Make the step, from the net with its weights on; how long its first runs take."""
        self.step = frameworks.MAKE[self.name](self.workload, self.weights)
        times, results = [], []
        for _ in range(FIRST):
            began = time.perf_counter()
            result = self.step.run()
            times.append(time.perf_counter() - began)
            results.append(models.numbers(result))
        return {
            "times": times,
            "results": results,
            "pools": pools(),
            "remarks": self.step.remarks(),
        }

    def calibrate(self, seconds: float) -> int:
        self.step.settle()
        return calls_per_round(self.step.run, seconds)

    def round(self, calls: int, clock: str) -> float:
        """Seconds per step; the step before the clock starts fills the caches again."""
        run, now = self.step.run, CLOCKS[clock]
        gc.collect()
        run()
        began = now()
        for _ in range(calls):
            run()
        return (now() - began) / calls

    def memory(self) -> int:
        return self.step.memory()

    def traced(self) -> dict:
        """What our steps hold; asked instead of `first`."""
        make = frameworks.MAKE[self.name]
        return frameworks.traced_bytes(lambda: make(self.workload, self.weights))

    def floor(self) -> dict | None:
        """What the program of the step must do at least; None where there is no program."""
        program = self.step.program()
        return floor.of(program) if program else None

    def machine(self) -> dict:
        return floor.machine(self.threads)


def pools() -> list[list]:
    """What the libraries of this process say about threads: [library, threads]."""
    from threadpoolctl import threadpool_info

    return [[pool["internal_api"], pool["num_threads"]] for pool in threadpool_info()]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
