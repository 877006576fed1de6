"""The fuzzer of to_static: random programs, run eagerly and as programs, must do the same.

    python -m tests.jit.fuzz --statements 1000000 --seed 1 --jobs 2 --out /tmp/failures

Every file of programs has a seed of its own, printed with a failure; `--seed N --files 1` writes
that file again. A failure is shrunk and printed as a function for `functions_fuzzed.py`. With
`--executors` each program also goes through every executor (`tests/executors/paths.py`); one that
differs is shrunk and printed as a program for `programs_fuzzed.py`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib.util
import linecache
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import minipaddle as paddle
from minipaddle.engine.jit import source, transpile
from tests.executors.paths import Tally, collect_programs, differences
from tests.executors.shrink import shrink
from tests.jit import fuzz_world as world
from tests.jit.fuzz_compare import Difference, Refused, Skip, same
from tests.jit.fuzz_programs import module_text
from tests.jit.fuzz_shrink import function_of
from tests.jit.fuzz_shrink import shrink as shrink_source

FUNCTIONS = 25
"""In one file."""
CALLS = 3
"""With other tensors, so that other branches are taken."""
CUDA = 0.01
"""The share of programs that the emulated GPU runs."""


@dataclass
class Report:
    """Counts and failures of the files that were run."""

    statements: int = 0
    outcomes: Counter = field(default_factory=Counter)
    constructs: Counter = field(default_factory=Counter)
    refusals: Counter = field(default_factory=Counter)
    skipped: Counter = field(default_factory=Counter)
    executors: Counter = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    examples: dict = field(default_factory=dict)  # of refusals

    def __add__(self, other: Report) -> Report:
        total = Report(*(getattr(self, f) + getattr(other, f) for f in list(vars(self))[:-1]))
        total.examples = self.examples | other.examples
        return total


@dataclass
class Failure:
    """A function that differs, and the smallest one like it."""

    seed: int
    name: str
    kind: str
    message: str
    source: str


def verdict(function, seed: int) -> tuple[str, str, str]:
    """(what came of it, its kind, the message): "same", "different", "refused" or "skipped"."""
    static = paddle.jit.to_static(function, input_spec=world.specs())
    try:
        for call in range(CALLS):
            same(function, static, CALLS * seed + call)
    except Difference as error:
        return "different", error.kind, str(error)
    except Refused as error:
        return "refused", error.kind, str(error)
    except Skip as error:
        return "skipped", str(error).splitlines()[0][:60], str(error)
    return "same", "", ""


def run_file(seed: int, *, executors: bool = False) -> Report:
    """Write the file of a seed and compare its functions; with `executors`, on every path."""
    world.vary(seed)
    warnings.simplefilter("ignore")
    report, cases = Report(), []
    watched = collect_programs(f"seed {seed}", cases) if executors else contextlib.nullcontext()
    with watched, tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        path = Path(folder) / f"fuzz_{seed}.py"
        path.write_text(module_text(seed, FUNCTIONS))
        tree, module = ast.parse(path.read_text()), imported(path)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                count(report, node)
                examine(report, getattr(module, node.name), node, seed, Path(folder))
    report.failures += examined(cases, seed, report.executors)
    transpile._cache.clear()
    source.parse_file.cache_clear()
    linecache.clearcache()
    gc.collect()
    return report


def examined(cases, seed: int, counted: Counter) -> list[Failure]:
    """The programs on which a path differs, shrunk."""
    tally, failures = Tally(), []
    for case, call, path, kind, message in differences(cases, seed, cuda=CUDA, tally=tally):
        small = shrink(case, call, path) if len(failures) < 3 else case
        inputs = "\n".join(repr(a.tolist()) for a in small.calls[0])
        source = f"{small.program}\n# for\n{inputs}"
        failures.append(Failure(seed, case.name, f"{path.name} {kind}", message, source))
    counted.update(programs=tally.programs, records=tally.records, runs=tally.paths.total())
    return failures


def quick() -> None:
    """What a process of the fuzzer imported stays; the rest is collected once a file."""
    gc.freeze()
    gc.disable()


def imported(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def count(report: Report, node: ast.FunctionDef) -> None:
    kinds = Counter(map(type, ast.walk(node)))
    report.statements += sum(n for kind, n in kinds.items() if issubclass(kind, ast.stmt))
    report.constructs.update({k.__name__: n for k, n in kinds.items() if not issubclass(k, PLAIN)})


PLAIN = (ast.expr_context, ast.Constant, ast.Name, ast.operator, ast.arguments, ast.arg)


def examine(report: Report, function, node, seed: int, folder: Path) -> None:
    """Compare one function; shrink it if it differs."""
    what, kind, message = verdict(function, seed)
    report.outcomes[what] += 1
    if what == "refused":
        report.refusals[kind] += 1
        report.examples[kind] = f"seed {seed}, {function.__name__}: {message[-800:]}"
    elif what == "skipped":
        report.skipped[kind] += 1
    elif what == "different":

        def fails(text: str) -> bool:
            try:
                return verdict(function_of(text, folder, node.name), seed)[:2] == (what, kind)
            except (SyntaxError, RecursionError, TypeError):  # no program: a list that holds itself
                return False

        text = shrink_source(ast.unparse(node), fails)
        report.failures.append(Failure(seed, node.name, kind, message, text))


def seeds(first: int):
    """1_000_000 files lie between two first seeds."""
    return range(first * 1_000_000, (first + 1) * 1_000_000)


def run(arguments) -> Report:
    """Files until there are enough statements."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    total, todo, start = Report(), seeds(arguments.seed), time.perf_counter()
    if arguments.files:
        todo = range(arguments.seed, arguments.seed + arguments.files)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[message]}"),
        TimeRemainingColumn(),
    )
    context = multiprocessing.get_context("spawn")
    workers = context.Pool(arguments.jobs, quick, maxtasksperchild=400)
    with Progress(*columns) as progress, workers as pool:
        bar = progress.add_task("", total=arguments.statements, message="")
        work = partial(run_file, executors=arguments.executors)
        for report in pool.imap_unordered(work, todo):
            total += report
            for failure in report.failures:
                progress.print(format_failure(failure), markup=False, highlight=False)
                if arguments.out:
                    name = f"{failure.kind.replace(' ', '_')}_{failure.seed}_{failure.name}.py"
                    (arguments.out / name).write_text(format_failure(failure))
            outcomes = total.outcomes
            progress.update(
                bar,
                completed=min(total.statements, arguments.statements),
                message=f"{outcomes['refused']} refused, {outcomes['different']} different",
            )
            if arguments.out:
                text = summary(total, time.perf_counter() - start)
                (arguments.out / "summary.txt").write_text(text)
            if total.statements >= arguments.statements:
                pool.terminate()
                break
    return total


def format_failure(failure: Failure) -> str:
    lines = failure.message.splitlines()
    message = "\n".join(f"# {line}" for line in [*lines[:12], *lines[12:][-8:]])
    return f"# seed {failure.seed}, {failure.name}\n{message}\n{failure.source}\n\n"


def summary(total: Report, seconds: float) -> str:
    functions = sum(total.outcomes.values())
    lines = [
        f"{total.statements:,} statements in {functions:,} functions, {seconds:.0f} s",
        ", ".join(f"{n:,} {what}" for what, n in total.outcomes.most_common()),
        "constructs: " + ", ".join(f"{n} {c:,}" for n, c in total.constructs.most_common()),
        *(f"skipped {n}: {kind}" for kind, n in total.skipped.most_common()),
    ]
    if total.executors:
        lines.insert(2, ", ".join(f"{n:,} {what}" for what, n in total.executors.items()))
    for kind, n in total.refusals.most_common():
        lines += [f"refused {n} ({n / functions:.3%}): {kind}", f"    {total.examples[kind]}"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=0, help="that many files, from this seed on")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--executors", action="store_true", help="programs in every executor")
    parser.add_argument("--out", type=Path, help="a folder for failures")
    arguments = parser.parse_args()
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    total = run(arguments)
    print(summary(total, time.perf_counter() - start))
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
