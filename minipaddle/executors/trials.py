"""What was measured of kernels, and what was chosen for them: two files of JSON lines.

They lie beside the compiled objects. A line is added by one write, so several processes may do it
at once; a line that is broken is left out, with a warning. What is read here never becomes C text:
an emitter takes a choice only if it stands among its own options.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import NamedTuple

from ..engine.executors.compiler import compiler, folder, processor


class Trial(NamedTuple):
    """A kernel, by the signature its rules give it, written by other choices."""

    kernel: str
    machine: str
    choices: dict
    seconds: float  # of one call
    default: float  # seconds of the kernel as the rules make it, measured in turn with it


def machine(threads: int) -> str:
    """What times depend on beside the kernel: processor, compiler, its flags, threads."""
    cc = compiler()
    key = "\0".join([processor(), *((cc.version, *cc.flags) if cc else ()), str(threads)])
    return hashlib.sha256(key.encode()).hexdigest()[:12]


class Trials:
    """The trials in a file; reading it again costs nothing while it stays as it is."""

    def __init__(self, path: Path):
        self.path, self.stamp, self.read = path, None, []

    def add(self, *trials: Trial) -> None:
        """Append trials. (The first line break ends what a process that died left unfinished.)"""
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
            self.stamp, self.read = stamp, self.parsed() if stamp else []
        return iter(self.read)

    def parsed(self) -> list[Trial]:
        found, broken = [], []
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if line.strip():
                trial = trial_of(line)
                found += [trial] if trial else []
                broken += [] if trial else [number]
        if broken:
            said = ", ".join(map(str, broken[:5])) + (", …" if len(broken) > 5 else "")
            warnings.warn(f"{self.path}: broken lines are left out: {said}", stacklevel=2)
        return found


def trial_of(line: str) -> Trial | None:
    """The trial of a line; None if it is none."""
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


def measured() -> Trials:
    """Every trial that was measured."""
    return opened(folder() / "trials.jsonl")


def chosen() -> Trials:
    """The trials that were accepted: the last one of a kernel counts."""
    return opened(folder() / "chosen.jsonl")


_open: dict[Path, Trials] = {}


def opened(path: Path) -> Trials:
    return _open.setdefault(path, Trials(path))


def tuned(threads: int) -> dict[str, dict]:
    """The choices for kernels by signature, on this machine; none if `MINIPADDLE_TUNED` is 0."""
    if os.environ.get("MINIPADDLE_TUNED") == "0":
        return {}
    here = machine(threads)
    return {t.kernel: t.choices for t in chosen() if t.machine == here}
