"""A wide-and-deep recommender with a million features: with parameter servers, alone, and PyTorch.

Adagrad in all of them, a batch of 512 clicks in each step, which two workers share. Each engine is
started anew in each round. On one core, ranks of MPI take turns: beside the examples a second of
the wall's clock stands the processor time of all processes together.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from minipaddle.distributed.launch import assign_roles, find_mpiexec

from .clicks import BATCH, STEPS

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
ENGINES = {
    "ours, servers in the process": ("sync", 0, 1),
    "ours, 1 server, 1 worker (MPI)": ("sync", 1, 1),
    "ours, 1 server, 2 workers (MPI)": ("sync", 1, 2),
    "the same, async": ("async", 1, 2),
    "ours, one process, dense": ("alone", 0, 1),
    "PyTorch, sparse gradients": ("torch", 0, 1),
}
"""What is measured: how, and how many servers and workers that are processes."""


def measured(how: str, servers: int, workers: int) -> dict:
    """One engine in processes of its own."""
    rank = [sys.executable, "-m", "tests.benchmarks.clicks", how]
    if servers:
        rank = [sys.executable, "-m", "mpi4py", *rank[1:]]
        rank = [find_mpiexec(), *assign_roles(servers, workers, rank)]
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(rank, env=around, cwd=ROOT, text=True, capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    trained = [f for f in found if "losses" in f]
    return {
        "step": max(f["step"] for f in trained), "busy": sum(f["busy"] for f in found),
        "losses": [statistics.fmean(x) for x in zip(*(f["losses"] for f in trained), strict=True)],
        "auc": trained[0]["auc"],
    }  # fmt: skip


def run(threads: int, arguments) -> None:
    found = {name: [] for name in ENGINES}
    for _ in track(range(ROUNDS), description="parameter servers", transient=True):
        for name, engine in ENGINES.items():
            found[name].append(measured(*engine))
    table = Table(title=f"{STEPS} steps of {BATCH} clicks; medians of {ROUNDS} rounds")
    titles = "", "examples/s", "processor µs an example", "time of a step, ours in the process = 1"
    for title in (*titles, "first loss", "last ten", "AUC"):
        table.add_column(title, justify="left" if not title else "right")
    first = next(iter(found.values()))
    for name, rounds in found.items():
        middle = lambda key, rounds=rounds: statistics.median(r[key] for r in rounds)
        ratio = statistics.median(a["step"] / b["step"] for a, b in zip(rounds, first))
        losses = rounds[0]["losses"]
        table.add_row(
            name, f"{BATCH / middle('step'):,.0f}", f"{middle('busy') / BATCH * 1e6:.1f}",
            f"{ratio:.2f}", f"{losses[0]:.4f}", f"{statistics.fmean(losses[-10:]):.4f}",
            f"{rounds[0]['auc']:.4f}",
        )  # fmt: skip
    Console().print(table)
    sync = [found[name][0]["losses"] for name in list(ENGINES)[:3]]
    furthest = max(abs(a - b) for losses in sync[1:] for a, b in zip(losses, sync[0]))
    Console().print(f"losses of the three in sync differ by {furthest:.1e} at most")
