"""Training steps, inference and a loop: ours beside PyTorch, JAX and Paddle, and issue 6's targets.

    ./run bench steps                             everything, one thread
    ./run bench steps --threads 2 --only gpt mlp  some workloads, two threads
    ./run bench steps --peers torch,jax --rounds 5 --json figures.json

Every framework has a process of its own and they are measured in turn (`fleet.py`). Time to first
step: from a net whose weights are set, and data as tensors, to the end of the first step, in a
fresh process and with empty caches on disk; compilers have as many processors as the step.
Memory of a step, above what outlives it: ours is what tracemalloc counts, and the arrays that an
executor keeps between steps though eager mode keeps none; PyTorch's from its profiler's record of
allocations; JAX's from the compiler's plan (temporaries, and results that take no argument's
place); Paddle's from the peak counter of its allocator.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from . import frameworks, tables
from .fleet import Failed, Worker
from .workloads import WORKLOADS


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench steps", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*WORKLOADS], default=[*WORKLOADS])
    parser.add_argument("--peers", type=listed, default=[*frameworks.PEERS], help="a,b,c; or none")
    parser.add_argument("--executors", type=listed, default=[*frameworks.EXECUTORS])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each framework in a round")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall",
        help="cpu: processor time of all threads of the process; for one thread on a busy machine",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    found = parser.parse_args(arguments)
    unknown = {*found.peers} - {*frameworks.PEERS, "none"}
    unknown |= {*found.executors} - {*frameworks.EXECUTORS}
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; peers are {', '.join(frameworks.PEERS)}")
    return found


def listed(text: str) -> list[str]:
    return text.split(",")


def run(threads: int, arguments: list[str] = ()) -> None:
    chosen = options([*arguments])
    columns, absent = candidates(chosen)
    console = Console(width=max(Console().width, 140))
    for name in absent:
        console.print(f"{name} is not installed: skipped")
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    results = {"threads": threads, "clock": chosen.clock, "workloads": {}}
    with progress:
        task = progress.add_task("the machine's speed")
        say = lambda text: progress.update(task, description=text)
        results["machine"] = asked_once("minipaddle", "tiny", threads, "machine")
        for title in chosen.only:
            found = measure(title, columns, threads, chosen, say)
            results["workloads"][title] = found
            for name, reason in found["failed"].items():
                console.print(f"{title}: {name} is left out: {reason}", markup=False)
            for name, answer in found["first"].items():
                for remark in answer["remarks"]:
                    console.print(f"{title}: {name} is interpreted: {remark}", markup=False)
            console.print(tables.line(title, found), markup=False)
            if chosen.json:  # as far as it is: all of it takes long
                chosen.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    for table in tables.of(results, columns):
        console.print(table)


def candidates(chosen) -> tuple[list[str], list[str]]:
    """The columns: ours, each executor, each peer that is installed; and the peers that are not."""
    ours = ["minipaddle", *(f"to_static {name}" for name in chosen.executors)]
    peers = [name for name in chosen.peers if name != "none"]
    there = [n for n in peers if importlib.util.find_spec(frameworks.library(n))]
    return ours + there, [n for n in peers if n not in there]


def asked_once(name: str, title: str, threads: int, order: str):
    worker = Worker(name, title, threads)
    try:
        return worker.ask(order)
    finally:
        worker.close()


# ---- one workload ----------------------------------------------------------------------------


def measure(title, columns, threads, chosen, say) -> dict:
    """All figures of one workload: by column."""
    workers, failed = {}, {}
    found = {"failed": failed, "first": {}, "memory": {}, "floor": None}
    try:
        for name in columns:
            say(f"{title}: {name}: first step")
            attempt(name, failed, lambda name=name: begin(name, title, threads, workers, found))
        compare(title, found["first"])
        found["rounds"] = in_turn(title, workers, chosen, say)
        for name, worker in workers.items():
            say(f"{title}: {name}: memory")
            attempt(name, failed, lambda n=name, w=worker: finish(n, title, threads, w, found))
    finally:
        for worker in workers.values():
            worker.close()
    found["median"] = {n: statistics.median(times) for n, times in found["rounds"].items()}
    return found


def attempt(name, failed, action) -> None:
    """A framework that cannot do a workload is named and left out, unless it is our eager mode."""
    try:
        action()
    except Failed as error:
        if name == "minipaddle":
            raise
        failed[name] = str(error)


def begin(name, title, threads, workers, found) -> None:
    worker = Worker(name, title, threads)
    try:
        found["first"][name] = worker.ask("first")
    except Failed:
        worker.close()
        raise
    workers[name] = worker


def compare(title: str, first: dict) -> None:
    """All frameworks must get the same numbers over the first steps."""
    expected = first["minipaddle"]["results"]
    for name, got in first.items():
        np.testing.assert_allclose(
            got["results"],
            expected,
            rtol=WORKLOADS[title].tolerance,
            err_msg=f"{title}: {name} computes something else",
        )


def in_turn(title, workers, chosen, say) -> dict[str, list[float]]:
    """Seconds per step in each round: A B C, then B C A, …, so that drift hits all alike."""
    say(f"{title}: how many steps make a round")
    calls = {n: worker.ask("calibrate", seconds=chosen.seconds) for n, worker in workers.items()}
    times, order = {name: [] for name in workers}, [*workers]
    for k in range(chosen.rounds):
        say(f"{title}: round {k + 1} of {chosen.rounds}")
        for name in order:
            took = workers[name].ask("round", calls=calls[name], clock=chosen.clock)
            times[name].append(took)
        order = order[1:] + order[:1]
    return times


def finish(name, title, threads, worker, found) -> None:
    """Memory and floor; ours are counted in a process of their own."""
    if frameworks.library(name) != "minipaddle":
        found["memory"][name] = worker.ask("memory")
        return
    found["floor"] = found["floor"] or worker.ask("floor")
    counted = asked_once(name, title, threads, "traced")
    eager = found["arrays"] = found.get("arrays", counted["arrays"])
    found["memory"][name] = counted["step"] + max(0, counted["arrays"] - eager)
