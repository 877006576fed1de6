"""The figures of `steps` as tables."""

from __future__ import annotations

import statistics
from functools import partial

from rich.table import Table

from .frameworks import PEERS
from .timing import in_units
from .workloads import WORKLOADS

OWN_TARGET = 0.7
"""`to_static` at least 30 % faster than our own eager mode: its time over eager's."""
FIRST_TARGETS = {"torch.compile": 0.1, "jax": 1.0}
"""Our time to first step over theirs."""


def ratio(found: dict, ours: str, other: str) -> float:
    """The median over rounds of our time by theirs in the same round."""
    pairs = zip(found["rounds"][ours], found["rounds"][other], strict=True)
    return statistics.median(a / b for a, b in pairs)


def best_peer(found: dict) -> str | None:
    there = [name for name in found["median"] if name in PEERS]
    return min(there, key=found["median"].get, default=None)


def ours_best(found: dict) -> str:
    """The executor of ours that is measured against the targets: the fastest there is."""
    statics = [name for name in found["median"] if name.startswith("to_static")]
    return min(statics or ["minipaddle"], key=found["median"].get)


def verdict(value: float, target: float) -> str:
    return f"[green]{value:.2f} ✓[/]" if value <= target else f"[red]{value:.2f} ✗[/]"


def line(title: str, found: dict) -> str:
    """What is known as soon as a workload is measured."""
    times = (f"{name} {in_units(t)}" for name, t in found["median"].items())
    first = next(iter(found["first"].values()))["results"]
    agreed = ", ".join(f"{step[0]:.5g}" for step in first)
    return f"{title}: all computed {agreed}; " + ", ".join(times)


def of(results: dict, columns: list[str]) -> list[Table]:
    found, threads = results["workloads"], results["threads"]
    how = f"{counted(threads)}, {results['clock']} time"
    tables = [times(found, columns, how), targets(found), firsts(found, columns)]
    return [*tables, memories(found, columns), floors(found, results["machine"])]


def by_column(title: str, found: dict, columns: list[str], cell, more=None) -> Table:
    """A row for each workload, a column for each framework and for each of `more` {title: cell}."""
    table, more = Table(title=title), more or {}
    table.add_column("workload")
    for name in [*columns, *more]:
        table.add_column(name, justify="right")
    for workload, figures in found.items():
        known = [cell(figures, name) for name in columns]
        table.add_row(workload, *known, *(each(figures) for each in more.values()))
    return table


def times(found, columns, how) -> Table:
    def cell(figures, name):
        return in_units(figures["median"][name]) if name in figures["median"] else "–"

    return by_column(f"A step, medians ({how})", found, columns, cell)


def counted(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def targets(found) -> Table:
    """Ours by the best peer, and by our eager mode; medians of the rounds' ratios."""
    table = Table(title="Targets: our time by theirs")
    for name in ("workload", "executor", "best peer"):
        table.add_column(name)
    for name in ("ours / best", "target", "ours / our eager", f"target {OWN_TARGET}"):
        table.add_column(name, justify="right")
    for workload, figures in found.items():
        target, ours, peer = WORKLOADS[workload].target, ours_best(figures), best_peer(figures)
        own = ratio(figures, ours, "minipaddle")
        cells = ["–", f"≤ {target.ratio}"]
        if peer:
            cells[0] = verdict(ratio(figures, ours, peer), target.ratio)
        table.add_row(
            workload, ours, peer or "none", *cells, f"{own:.2f}", "✓" if own <= OWN_TARGET else "✗"
        )
    return table


def firsts(found, columns) -> Table:
    def cell(figures, name):
        return in_units(figures["first"][name]["times"][0]) if name in figures["first"] else "–"

    def beside(figures, peer):
        first = {name: answer["times"][0] for name, answer in figures["first"].items()}
        if peer not in first:
            return "–"
        return verdict(first[ours_best(figures)] / first[peer], FIRST_TARGETS[peer])

    more = {f"ours / {p} ≤ {t}": partial(beside, peer=p) for p, t in FIRST_TARGETS.items()}
    return by_column("Time to first step (fresh process, empty caches)", found, columns, cell, more)


def memories(found, columns) -> Table:
    def cell(figures, name):
        held = figures["memory"].get(name)
        return "–" if held is None else f"{held / 2**20:.3g}"

    title = "Memory of a step above what outlives it, MiB"
    return by_column(title, found, columns, cell)


def floors(found, machine) -> Table:
    """What the step must compute and move, and how long that takes at best."""
    fast = f"{machine['flops_per_second'] / 1e9:.0f} Gflop/s, "
    fast += f"{machine['bytes_per_second'] / 1e9:.0f} GB/s"
    table = Table(title=f"The floor (measured: {fast})")
    table.add_column("workload")
    for name in ("Mflop", "M elements", "MB", "floor", "ours", "ours / floor"):
        table.add_column(name, justify="right")
    for workload, figures in found.items():
        least, ours = figures["floor"], figures["median"][ours_best(figures)]
        if least is None:
            continue
        products = least["flops"] / machine["flops_per_second"]
        seconds = max(products, least["bytes"] / machine["bytes_per_second"])
        counts = [f"{least[key] / 1e6:.4g}" for key in ("flops", "elements", "bytes")]
        table.add_row(workload, *counts, in_units(seconds), in_units(ours), f"{ours / seconds:.3g}")
    return table
