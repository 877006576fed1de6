"""Measurements of kernels, and the accepted choices for them: two files of JSON lines.

The files lie in the folder of compiled libraries. A line is added by one write, so several
processes may add lines at the same time. A broken line is skipped, with a warning. Text from these
files never becomes C text: an emitter accepts a choice only if it is one of its own options.
"""

from __future__ import annotations

import json
import os
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...codegen.machine import machine
from ...engine.executors.compiler import READ, cache_folder

CHOSEN = "chosen.jsonl"
"""The file of the accepted choices."""


class Trial(NamedTuple):
    """The measurement of a kernel with other choices than the default ones."""

    kernel: str
    machine: str
    choices: dict
    seconds: float  # of one call
    default: float  # of the kernel with default choices, measured alternately


class Trials:
    """The trials in a file, which is read again only after it has changed."""

    def __init__(self, path: Path):
        self.path, self.stamp, self.read = path, None, []

    def add(self, *trials: Trial) -> None:
        """Append trials. (The first line break ends a line that a process left unfinished.)"""
        text = "\n" + "".join(json.dumps(trial._asdict()) + "\n" for trial in trials)
        place = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(place, text.encode())
        finally:
            os.close(place)

    def __iter__(self):
        """The trials, the oldest first."""
        stamp = self.path.stat() if self.path.exists() else None
        stamp = stamp and (stamp.st_mtime_ns, stamp.st_size)
        if stamp != self.stamp:
            self.stamp, self.read = stamp, self.parse() if stamp else []
        return iter(self.read)

    def parse(self) -> list[Trial]:
        trials, broken = [], []
        try:
            lines = READ[-1](self.path).decode(errors="replace").splitlines()
        except OSError:  # it is not ours
            return []
        for number, line in enumerate(lines, 1):
            if line.strip():
                trial = trial_of(line)
                trials += [trial] if trial else []
                broken += [] if trial else [number]
        if broken:
            numbers = ", ".join(map(str, broken[:5])) + (", …" if len(broken) > 5 else "")
            warnings.warn(f"{self.path}: broken lines are left out: {numbers}", stacklevel=2)
        return trials


def trial_of(line: str) -> Trial | None:
    """The trial in a line; None if the line is broken."""
    try:
        trial = Trial(**json.loads(line))
    except (ValueError, TypeError):
        return None
    texts = isinstance(trial.kernel, str) and isinstance(trial.machine, str)
    plain = isinstance(trial.choices, dict) and all(
        isinstance(x, str | int) for x in trial.choices.values()
    )
    times = (trial.seconds, trial.default)
    good = all(isinstance(x, int | float) and 0 < x < float("inf") for x in times)
    return trial if texts and plain and good else None


trials_in = cache(Trials)


def all_trials() -> Trials:
    """All measured trials."""
    return trials_in(cache_folder() / "trials.jsonl")


def read_accepted_trials() -> Trials:
    """The accepted trials; the last one of a kernel counts."""
    return trials_in(cache_folder() / CHOSEN)


def read_choices(threads: int) -> dict[str, dict]:
    """The choices for kernels by signature, on this machine; none if `MINIPADDLE_TUNED` is 0."""
    if os.environ.get("MINIPADDLE_TUNED") == "0":
        return {}
    here = machine(threads)
    return {t.kernel: t.choices for t in read_accepted_trials() if t.machine == here}
