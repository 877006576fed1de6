"""Workloads of `steps` as native code, of another commit beside this tree: what a change costs.

    ./run bench against                                  what is not committed yet, one thread
    ./run bench against --commit v1 --only gpt mlp --rounds 15

Both are measured in turn, each in a process of its own, as the frameworks of `steps` are.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ..replay.__main__ import checkout
from . import steps
from .fleet import ROOT, Worker
from .tables import ratio
from .timing import in_units
from .workloads import WORKLOADS

NATIVE = "to_static native"
HEADS = "workload", "before", "now", "now / before", "first step", "now", "losses"


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench against", description=__doc__.split("\n")[0])
    parser.add_argument("--commit", default="HEAD", help="what to compare with (HEAD)")
    parser.add_argument("--only", nargs="+", choices=[*WORKLOADS], default=[*WORKLOADS])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each tree in a round")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    return parser.parse_args(arguments)


def run(threads: int, arguments: list[str] = ()) -> None:
    chosen, console = options([*arguments]), Console(width=100)
    table = Table(*HEADS, title=f"{chosen.commit} and this tree, {threads} threads, medians")
    with tempfile.TemporaryDirectory() as folder, checkout(chosen.commit, Path(folder)) as tree:
        for title in chosen.only:
            cells = measure(title, {"before": tree, "now": ROOT}, threads, chosen)
            console.print(*cells)  # all of it takes long
            table.add_row(*cells)
    console.print(table)


def measure(title: str, trees: dict[str, Path], threads: int, chosen) -> tuple[str, ...]:
    """A row of the table."""
    workers = {name: Worker(NATIVE, title, threads, tree) for name, tree in trees.items()}
    try:
        first = {name: worker.ask("first") for name, worker in workers.items()}
        rounds = steps.in_turn(title, workers, chosen, lambda text: None)
    finally:
        for worker in workers.values():
            worker.close()
    results = [answer["results"] for answer in first.values()]
    same = np.allclose(*results, rtol=WORKLOADS[title].tolerance)
    medians = [in_units(statistics.median(times)) for times in rounds.values()]
    begun = [in_units(answer["times"][0]) for answer in first.values()]
    by = f"{ratio({'rounds': rounds}, 'now', 'before'):.3f}"
    return title, *medians, by, *begun, "same" if same else "differ"
