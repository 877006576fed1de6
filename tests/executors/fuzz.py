"""The fuzzer of executors: random graphs must give the same on every execution path.

    python -m tests.executors.fuzz --graphs 10000 --seed 1 --out /tmp/failures
    python -m tests.executors.fuzz --graph 100000347

A program that differs is shrunk and printed for `programs_fuzzed.py`. See README.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import minipaddle as paddle
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.jit.capture import Captured
from tests.executors.batch import QUICK
from tests.executors.graphs import Graph
from tests.executors.paths import Case, Difference, Tally, collect_programs, differences
from tests.executors.shrink import shrink

CALLS = 2
GRAPHS = 20
"""The graphs in one batch, whose C is compiled at once."""
LINES = 10
"""The batches after which a line reports progress."""


class Report:
    """Counts and failures of a run."""

    def __init__(self):
        self.tally, self.counts, self.failures = Tally(), Counter(), []

    def __str__(self) -> str:
        counts = {"programs": self.tally.programs, "records": self.tally.records}
        counts |= self.counts | {"differences": len(self.failures)}
        runs = ", ".join(f"{n:,} {path}" for path, n in self.tally.paths.most_common())
        return ", ".join(f"{n:,} {what}" for what, n in counts.items()) + f"\nruns: {runs}"


def programs_of(seed: int, report: Report) -> list[Case]:
    """The programs of a graph, and of its derivative; run, and compared with eager mode."""
    graph, cases = Graph(seed), []
    paddle.seed(seed)
    tensors = graph.arguments(0)
    names = [f"x{k}" for k in range(len(tensors))]
    stops = [x.stop_gradient for x in tensors]
    try:
        captured = Captured(
            graph,
            [x.spec for x in tensors],
            stops,
            names,
            f"g{seed}",
            ExecutableCache("interpreter"),
        )
    except Exception as error:
        report.counts[f"not traced: {type(error).__name__}"] += 1
        return []
    with collect_programs(f"graph {seed}", cases):
        for call in range(CALLS):
            run_once(captured, graph, seed, call)
    report.counts["graphs"] += 1
    report.counts["steps"] += len(graph.taken)
    return cases


def run_once(captured, graph, seed: int, call: int) -> None:
    """Run the programs of a graph; an index out of range may stop them."""
    paddle.seed(seed + call)
    inputs = graph.arguments(call)
    try:
        results, _ = captured(inputs)
        ends = [y for y in results if y is not None and not y.stop_gradient]
        if ends:
            losses = [(y * (0.5 + k)).sum().astype("float64") for k, y in enumerate(ends)]
            sum(losses[1:], losses[0]).backward()
    except (IndexError, ValueError):
        return


def batch(seeds, report: Report, **options):
    """The differences of the graphs of these seeds."""
    cases = []
    for seed in seeds:
        cases += programs_of(seed, report)
    return differences(cases, min(seeds), tally=report.tally, **options)


def format_failure(d: Difference, case: Case) -> str:
    inputs = "\n".join(repr(a.tolist()) for a in case.calls[0])
    return f"# {d.case.name}, {d.path.name}: {d.kind}\n# {d.message}\n{case.program}\n{inputs}\n"


def search(first: int, arguments, report: Report) -> Iterator[Difference]:
    """The differences in the graphs from the first one on; now and then a line reports progress."""
    last, start = first + arguments.graphs, time.process_time()
    for k in range(first, last, GRAPHS):
        effort = None if (k // GRAPHS) % 5 < 2 else QUICK  # most of them quickly
        options = {
            name: getattr(arguments, name) for name in ("passes", "cuda", "opened", "parallel")
        }
        yield from batch(range(k, min(k + GRAPHS, last)), report, effort=effort, **options)
        seconds = time.process_time() - start
        if (k - first) // GRAPHS % LINES == LINES - 1:
            print(f"{seconds:.0f} s: {str(report).splitlines()[0]}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="100,000,000 graphs lie between two")
    parser.add_argument("--graph", type=int, help="the number of one graph, to replay it")
    parser.add_argument("--passes", type=float, default=0.3, help="the share run after each pass")
    parser.add_argument("--cuda", type=float, default=0.0, help="the share the emulated GPU runs")
    parser.add_argument("--opened", type=float, default=0.0, help="the share with open sizes")
    parser.add_argument("--parallel", action="store_true", help="two threads in every loop")
    parser.add_argument("--out", type=Path, help="a folder for failures")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    report, kinds = Report(), Counter()
    differing = search(arguments.seed * 100_000_000, arguments, report)
    if arguments.graph is not None:
        differing = batch([arguments.graph], report, effort=None, passes=1.0, natives=5)
    for d in differing:
        kinds[d.path.name[:20], d.kind] += 1
        small = shrink(d.case, d.call, d.path) if kinds[d.path.name[:20], d.kind] < 6 else d.case
        report.failures.append(text := format_failure(d, small))
        print(text, flush=True)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            name = f"{d.case.name}_{d.path.name}"[:80].replace(" ", "_").replace(",", "")
            (arguments.out / f"{name}.txt").write_text(text)
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
