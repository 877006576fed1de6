"""Fair timing: all candidates in turn within one run, medians of many short rounds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.progress import track
from rich.table import Table


def calls_per_round(function: Callable, seconds: float) -> int:
    """How often to call `function` so that one round takes about `seconds`."""
    for _ in range(3):
        function()
    n = 1
    while True:
        began = time.perf_counter()
        for _ in range(n):
            function()
        took = time.perf_counter() - began
        if took > seconds / 4 or n > 1 << 20:
            return max(1, round(n * seconds / max(took, 1e-9)))
        n *= 4


def interleaved(
    candidates: Mapping[str, Callable], *, rounds: int = 15, seconds: float = 0.05, title: str = "",
    clock: Callable = time.perf_counter,
) -> dict[str, float]:  # fmt: skip
    """Median seconds per call of each candidate: A B C A B C …, so that drift hits all alike."""
    counts = {name: calls_per_round(f, seconds) for name, f in candidates.items()}
    times: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    for _ in track(range(rounds), description=title or "measuring", transient=True):
        for name, function in candidates.items():
            began = clock()
            for _ in range(counts[name]):
                function()
            times[name].append((clock() - began) / counts[name])
    return {name: statistics.median(ts) for name, ts in times.items()}


def in_units(seconds: float) -> str:
    """1.93 µs, 12.4 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def report(title: str, rows: Mapping[str, Mapping[str, float]], ours: str = "minipaddle") -> None:
    """A table of medians, with each peer's ratio: below 1 we are faster."""
    peers = [
        name for name in dict.fromkeys(n for row in rows.values() for n in row) if name != ours
    ]
    table = Table(title=title)
    table.add_column("workload")
    table.add_column(ours, justify="right")
    for peer in peers:
        table.add_column(peer, justify="right")
        table.add_column(f"ours / {peer}", justify="right")
    for workload, times in rows.items():
        cells = [workload, in_units(times[ours])]
        for peer in peers:
            known = peer in times
            cells += (
                [in_units(times[peer]), f"{times[ours] / times[peer]:.2f}"] if known else ["", ""]
            )
        table.add_row(*cells)
    Console(width=120).print(table)
