"""Judging in a fresh process, which may hang, crash, exit, print without end, or eat memory.

The child writes its verdict to a file; what it leaves out, the parent says from how it ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .exercise import Exercise, load
from .judge import SEED, begun, judge
from .verdict import Verdict

LIMIT = 20.0
"""Seconds that a check may take. They take fewer than five on a busy machine."""

MEMORY = 4 << 30
PRINTED = 2000
"""Characters that are kept of what the reader's code prints."""


def judged(name: str, file: Path | None = None, *, seconds: float = LIMIT, seed=SEED) -> Verdict:
    """The verdict on the reader's file for an exercise, or on another file.

    A text in which nothing is written yet is not run at all.
    """
    exercise = load(name)
    file = Path(file or exercise.path)
    began = time.perf_counter()
    try:
        source = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        source = ""
    except (OSError, UnicodeDecodeError) as error:
        return Verdict(name, "error", f"{file} can not be read: {error}")
    verdict = begun(exercise, source, str(file)) or in_child(exercise, source, file, seconds, seed)
    verdict.seconds = time.perf_counter() - began
    return verdict


def all_judged(names, told=lambda verdict: None, **options) -> list[Verdict]:
    """The verdicts on several exercises, as many at a time as there are cores; `told` of each."""

    def one(name: str) -> Verdict:
        verdict = judged(name, **options)
        told(verdict)
        return verdict

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, names))


# ---- the parent's side ---------------------------------------------------------------------------


def in_child(exercise: Exercise, source: str, file: Path, seconds: float, seed: int) -> Verdict:
    """Judge a text in a child that gets no more than `seconds`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "source").write_text(source, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "minipaddle.learn.process"]
        child = subprocess.Popen(
            [*command, exercise.name, str(file), folder, str(seed)],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        printed = Drain(child.stdout)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            ask_where(child)
        finally:
            kill(child)
        verdict = left_in(folder) or gone(exercise, file, status, seconds, trace_in(folder))
    verdict.printed = printed.text()
    return verdict


def environment() -> dict[str, str]:
    """The child finds this package, sees no GPU, and computes on one thread: as on any machine."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    plain = {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "CUDA_VISIBLE_DEVICES": "-1"}
    return os.environ | plain | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Drain(threading.Thread):
    """Reads a pipe to its end, and keeps the beginning: a child that prints never waits."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.kept = pipe, b""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError), self.pipe:
            while piece := self.pipe.read1(1 << 16):
                self.kept += piece[: PRINTED + 1 - len(self.kept)]

    def text(self) -> str:
        self.join(2)
        text = self.kept.decode("utf-8", "replace")
        return text if len(text) <= PRINTED else f"{text[:PRINTED]}…"


def ask_where(child) -> None:
    """Let a child that is stuck note where; it does not take part in this (see `main`)."""
    if hasattr(signal, "SIGUSR1"):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            child.send_signal(signal.SIGUSR1)
            child.wait(0.3)


def kill(child) -> None:
    """End a child, and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()


def left_in(folder: str) -> Verdict | None:
    """The verdict a child has written, if it came to that."""
    try:
        return Verdict.from_json(Path(folder, "verdict").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return None


def trace_in(folder: str) -> str | None:
    """What faulthandler wrote in a child; None if it never came to that."""
    try:
        return Path(folder, "trace").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def gone(exercise: Exercise, file: Path, status, seconds: float, trace) -> Verdict:
    """The verdict on code that left none: it hung, crashed, or ended its process."""
    if status is None:
        why = f"still running after {seconds:g} s: a loop that does not end?"
    elif trace is None:
        why = "the judge itself did not start: this is not your code's fault"
    elif status < 0:
        name = signal.Signals(-status).name
        why = f"the process was killed by {name}"
        why += ": out of memory?" if name == "SIGKILL" else ""
    else:
        why = f"your code ended its process (exit status {status}) before the checks were done"
    return Verdict(exercise.name, "error", why, line=line_of_trace(trace or "", file))


def line_of_trace(trace: str, file: Path) -> str:
    """The reader's innermost line in what faulthandler wrote: `accumulate.py:12: while True:`."""
    found = re.search(rf'File "{re.escape(str(file))}", line (\d+)', trace)
    if found is None:
        return ""
    n = int(found[1])
    lines = file.read_text(encoding="utf-8").splitlines()
    text = lines[n - 1].strip() if n <= len(lines) else ""
    return f"{file.name}:{n}: {text}"


# ---- the child's side ----------------------------------------------------------------------------


def main(name: str, file: str, folder: str, seed: str) -> None:
    """Judge, and leave the verdict in `folder`. It ends at once: no thread, no atexit holds it."""
    mine, target = os.getpid(), Path(folder, "verdict")
    trace = Path(folder, "trace").open("w", encoding="utf-8")  # noqa: SIM115 (open to the end)
    faulthandler.enable(trace)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, trace)
    limit_memory()

    def leave(verdict: Verdict) -> None:
        if os.getpid() == mine:  # and not a child of the reader's
            draft = target.with_name("draft")
            draft.write_text(verdict.to_json(), encoding="utf-8")
            draft.replace(target)

    source = Path(folder, "source").read_text(encoding="utf-8")
    leave(judge(load(name), source, file, seed=int(seed), first=leave))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)


def limit_memory() -> None:
    """Data beyond MEMORY raises MemoryError, where the system can do that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


if __name__ == "__main__":
    main(*sys.argv[1:])
