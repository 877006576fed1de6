"""A report of a machine with a GPU, by one command; it needs no network.

    python -m tests.gpu.report --minutes 6 -o report.md

Each section has a share of the minutes; what one leaves over, the next ones get. The file is
written anew whenever a section knows more, so that a run that is killed leaves what it had. Where
there is no GPU everything runs on the stand-ins, and the first line says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from minipaddle.eager import gpu as gpus

ROOT = Path(__file__).parents[2]
PROGRAMS = ("test_programs_on_gpu.py", "test_training_on_gpu.py")
"""The tests that run under compute-sanitizer, which is some ten times as slow."""

COLUMNS = {
    "ours eager": ("minipaddle", "eager"),
    "ours captured": ("minipaddle", "captured"),
    "torch eager": ("torch", "eager"),
    "torch.compile": ("torch", "captured"),
}
"""Column of the table of steps -> (framework, mode)."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.report", description=__doc__)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("-o", "--output", type=Path, default=Path("report.md"))
    chosen = parser.parse_args(arguments)
    Report(chosen.output, time.monotonic() + 60 * chosen.minutes).write_all()


class Report:
    """The file, and when it must be done (seconds of `time.monotonic`)."""

    def __init__(self, path: Path, end: float):
        self.path, self.end = path, end
        self.bodies = dict.fromkeys((s.title for s in SECTIONS), "not reached")

    def write_all(self) -> None:
        """Each section in its time; one that fails says so, and the next one follows."""
        for k, section in enumerate(SECTIONS):
            rest = sum(s.share for s in SECTIONS[k:])
            seconds = max(0, self.end - time.monotonic()) * section.share / rest
            began = time.monotonic()
            try:
                for body in section.write(began + seconds):
                    self.put(section.title, body)
            except Exception as error:
                known = self.bodies[section.title]
                self.put(section.title, f"{known}\n\nFAILED: {type(error).__name__}: {error}")
            took = f"({time.monotonic() - began:.0f} of {seconds:.0f} s)"
            self.put(section.title, f"{self.bodies[section.title]}\n\n{took}")

    def put(self, title: str, body: str) -> None:
        """Set the body of a section, and write the file."""
        self.bodies[title] = body
        parts = [f"## {name}\n\n{text}" for name, text in self.bodies.items()]
        text = "\n\n".join([describe_machine(), *parts]) + "\n"
        self.path.write_text(text, encoding="utf-8")


def describe_machine() -> str:
    """The head of the report: card, versions, date and commit; or that there is no GPU."""
    versions = [f"{time.strftime('%Y-%m-%d')}{commit()}", f"Python {platform.python_version()}"]
    for name in ("numpy", "cupy-cuda12x", "cupy-cuda13x", "torch"):
        with suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    if isinstance(gpus.gpu(), str):
        why = f"NO FIGURE IS OF A GPU: {gpus.gpu()}. Everything ran on the stand-ins (tests/gpu)."
        return f"# MiniPaddle on a GPU\n\n**{why}** {', '.join(versions)}."
    runtime = gpus.gpu().cuda.runtime
    card = runtime.getDeviceProperties(0)
    name, count = card["name"].decode(), card["multiProcessorCount"]
    driver = f"driver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}"
    return f"# MiniPaddle on a GPU\n\n{name}, {count} SMs, {driver}, {', '.join(versions)}."


def commit() -> str:
    """ ", commit 12ab34cd"; nothing where this is no clone."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    with suppress(OSError, subprocess.CalledProcessError):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return f", commit {done.stdout.strip()}"
    return ""


# ---- processes that end in time --------------------------------------------------------------


def run_lines(command: list[str], end: float, errors: list[str]) -> Iterator[str]:
    """The lines that a process prints until `end`, when it is interrupted, and killed if it goes
    on. Why it did not end well is added to `errors`.
    """
    if (seconds := end - time.monotonic()) <= 1:
        errors.append("no time left")
        return
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            ["timeout", "--signal=INT", "--kill-after=5", f"{seconds:.1f}", *command],
            stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT,
        )  # fmt: skip
        with process:
            try:
                yield from process.stdout
            except GeneratorExit:  # nobody reads on
                process.terminate()
                raise
        log.seek(0)
        last = [line for line in log.read().split("\n") if line.strip()][-1:]
    if process.returncode in (124, 137):
        errors.append(f"out of time after {seconds:.0f} s")
    elif process.returncode:
        errors.append(f"exit status {process.returncode}: {' '.join(last)}")


# ---- tests -----------------------------------------------------------------------------------


def pytest_of(files, *arguments: str) -> list[str]:
    """The command that runs tests of this folder: on the GPU where there is one. It needs no plugin
    of pytest.
    """
    marked = ["-m", "not gpu" if isinstance(gpus.gpu(), str) else "gpu"]
    quiet = ["-q", "--tb=line", "-p", "no:cacheprovider", "--ignore=tests/gpu/test_report.py"]
    alone = ["-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestConfigWarning"]
    paths = [f"tests/gpu/{file}" for file in files]
    return [sys.executable, "-m", "pytest", *paths, *marked, *quiet, *alone, *arguments]


def write_tests(end: float) -> Iterator[str]:
    """How many tests pass, and the failures."""
    yield from summarize(pytest_of([""]), end)


def write_checks(end: float) -> Iterator[str]:
    """Errors of memory and races, where compute-sanitizer is installed."""
    tool = shutil.which("compute-sanitizer")
    if tool is None or isinstance(gpus.gpu(), str):
        yield "compute-sanitizer needs a GPU" if tool else "compute-sanitizer is not installed"
        return
    bodies, began = [], time.monotonic()
    for k, (check, files) in enumerate([("memcheck", PROGRAMS), ("racecheck", PROGRAMS[:1])], 1):
        command = [tool, "--tool", check, "--target-processes", "all", "--error-exitcode", "9"]
        stop = began + (end - began) * k / 2
        for body in summarize([*command, *pytest_of(files)], stop):
            yield "\n\n".join([*bodies, f"{check}: {body}"])
        bodies.append(f"{check}: {body}")


def summarize(command: list[str], end: float) -> Iterator[str]:
    """The lines of a test run that say something: failures, warnings of the tool, the sum."""
    said, errors = [], []
    for line in run_lines(command, end, errors):
        if re.search(r"^(FAILED|ERROR|=========|E  )|\d (passed|failed|error)|Error: ", line):
            said.append(line.rstrip())
            yield quote(said)
    yield quote([*said, *errors] or ["nothing was said"])


def quote(lines: list[str]) -> str:
    """Lines as Markdown shows them: as they are."""
    return "\n".join(["```", *lines, "```"])


# ---- steps and kernels -----------------------------------------------------------------------


def ask(order: str, end: float, rows: list[dict], errors: list[str]) -> Iterator[None]:
    """Let `worker.py`, in a process of its own, measure until `end`; after each row it yields."""
    command = [
        sys.executable,
        "-m",
        "tests.gpu.worker",
        *order.split(),
        str(end - time.monotonic()),
    ]
    for line in run_lines(command, end, errors):
        if line.startswith("{"):
            rows.append(json.loads(line))
            yield


def write_steps(end: float) -> Iterator[str]:
    """A table of steps: ours beside PyTorch's."""
    has_torch, without_gpu = find_spec("torch"), isinstance(gpus.gpu(), str)
    columns, notes, began = dict(COLUMNS), [], time.monotonic()
    if has_torch is None or without_gpu:
        columns = {name: how for name, how in COLUMNS.items() if how[0] != "torch"}
        notes.append(f"no peer: {'no GPU' if has_torch else 'torch is not installed'}")
    table: dict[tuple, dict[str, dict]] = {}
    for k, (column, how) in enumerate(columns.items(), 1):
        rows, errors = [], []
        stop = began + (end - began) * k / len(columns)
        for _ in ask(" ".join(["steps", *how]), stop, rows, errors):
            row = rows[-1]
            table.setdefault((row["workload"], row["precision"]), {})[column] = row
            yield show_steps(table, columns, notes)
        notes += [f"{column}: {error}" for error in errors]
        yield show_steps(table, columns, notes)


def show_steps(table: dict, columns, notes: list[str]) -> str:
    """The table as Markdown: milliseconds, ours over the best peer, seconds of the first calls."""
    head = ["step", "precision", *columns, "ours / best", "first call, s"]
    lines, remarks = [head, ["---", "---", *["---:"] * (len(columns) + 2)]], list(notes)
    for (workload, precision), row in table.items():
        cells = [f"{row[c]['ms']:.3f}" if "ms" in row.get(c, ()) else "-" for c in columns]
        times = {c: r["ms"] for c, r in row.items() if "ms" in r}
        peers = [times[c] for c in times if c.startswith("torch")]
        known = peers and "ours captured" in times
        ratio = f"{times['ours captured'] / min(peers):.2f}" if known else "-"
        firsts = [f"{row[c]['first']:.1f}" if "first" in row.get(c, ()) else "-" for c in columns]
        lines.append([workload, precision, *cells, ratio, ", ".join(firsts)])
        remarks += [
            f"{workload}, {precision}, {c}: {r['why']}" for c, r in row.items() if "why" in r
        ]
        remarks += compare(workload, precision, row)
    return "\n".join([*map(show_row, lines), "", *(f"- {remark}" for remark in remarks)])


def show_row(cells) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def compare(workload: str, precision: str, row: dict) -> Iterator[str]:
    """What the columns disagree on: the numbers that come out of the fourth step."""
    values = {c: r["value"] for c, r in row.items() if "value" in r}
    of, first = next(iter(values.items()), ("", 0))
    near = 2e-3 if precision == "float32" else 0.05
    for column, value in values.items():
        if not abs(value - first) <= near * max(abs(first), 1e-3):
            yield f"{workload}, {precision}: {column} gives {value:.6g}, {of} {first:.6g}"


def write_kernels(end: float) -> Iterator[str]:
    """A profile by kernel of each step that is captured."""
    rows, errors = [], []
    for _ in ask("kernels", end, rows, errors):
        yield show_kernels(rows, errors)
    yield show_kernels(rows, errors)


def show_kernels(rows: list[dict], errors: list[str]) -> str:
    """For each step the counts, and the kernels that take most of its time."""
    parts = []
    for row in rows:
        parts.append(f"**{row['title']}**: {row['says']}")
        if row.get("kernels"):
            head = ["kernel", "calls", "blocks", "threads", "MB", "µs", "GB/s", "of a copy's speed"]
            lines = [head, ["---", *["---:"] * 7], *row["kernels"]]
            parts.append("\n".join(map(show_row, lines)))
    return "\n\n".join([*parts, *(f"- {error}" for error in errors)]) or "nothing was measured"


class Section(NamedTuple):
    """A part of the report: its share of the minutes, and a function that yields its text, longer
    each time, until an end (of `time.monotonic`).
    """

    title: str
    share: float
    write: Callable[[float], Iterator[str]]


SECTIONS = (
    Section("Tests", 1.0, write_tests),
    Section("Memory and races", 0.8, write_checks),
    Section("Steps, ms", 2.6, write_steps),
    Section("Kernels", 0.8, write_kernels),
)

if __name__ == "__main__":
    main()
