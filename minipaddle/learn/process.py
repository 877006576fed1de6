"""Judging in a fresh process, which may hang, crash, exit, print without end, or eat memory.

The child writes its verdict to a file. If it leaves none, the parent forms one from its end. The
parent holds the child's input open: when it closes, even because the parent was killed, the child
ends, with the processes that it has started.
"""

import collections
import contextlib
import faulthandler
import linecache
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
from typing import NamedTuple

import psutil

from ..core.files import replace
from . import progress
from .exercise import Exercise, load
from .judge import MEMORY, SEED, judge, verdict_without_running
from .verdict import Verdict

LIMIT = 20.0
"""Seconds of processor time that a check may take; right solutions take less than five."""

PATIENCE = 30
"""How many times its limit a check may take by the clock: on a busy machine it has to wait."""

SLOW = 30.0
"""Seconds by the clock from which a verdict says that the machine is busy."""

IDLE = 0.02
"""The share of a processor below which code is taken to wait for something. A busy machine leaves
even the unluckiest process more."""
PRINTED = 2000
"""Characters that are kept of the reader's output."""


def judge_file(
    name: str, file: Path | None = None, *, seconds: float = LIMIT, seed=SEED
) -> Verdict:
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
        return Verdict(name, "error", f"{file} cannot be read: {error}")
    verdict = verdict_without_running(exercise, source, str(file))
    verdict = verdict or run_in_child(exercise, source, file, seconds, seed)
    verdict.seconds = time.perf_counter() - began
    return verdict


def judge_all(names, report=lambda verdict: None, **options) -> list[Verdict]:
    """The verdicts on several exercises, one per core at a time; they are remembered.

    `report` is called with each.
    """

    def one(name: str) -> Verdict:
        verdict = judge_file(name, **options)
        report(verdict)
        return verdict

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = list(pool.map(one, names))
    for verdict in verdicts:
        progress.remember(verdict)
    return verdicts


# ---- the parent's side ---------------------------------------------------------------------------


def run_in_child(exercise: Exercise, source: str, file: Path, seconds: float, seed: int) -> Verdict:
    """Judge a text in a child that gets no more than `seconds` of processor time."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "source").write_text(source, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "minipaddle.learn.process"]
        child = subprocess.Popen(
            [*command, exercise.name, str(file), folder, str(seed)], cwd=folder, env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        printed, run = Drain(child.stdout), ChildWatch(child, seconds)
        try:
            stopped = run.wait()
            if stopped:
                request_trace(child)
        finally:
            kill(child)
        trace = read(Path(folder, "trace"))
        try:
            verdict = Verdict.from_json(read(Path(folder, "verdict")))
        except (ValueError, TypeError):  # no verdict, or half of one
            verdict = verdict_on_end(exercise, file, stopped, child.returncode, trace)
    verdict.printed, verdict.busy = printed.text(), run.busy()
    return verdict


def read(path: Path) -> str | None:
    """The text of a file; None if there is none."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")


class Usage(NamedTuple):
    """Processor seconds so far, and the bytes in memory now."""

    seconds: float
    memory: int


def usage(child: subprocess.Popen) -> Usage | None:
    """Measure a child; None once it has ended, or where the system does not tell."""
    try:
        process = psutil.Process(child.pid)
        times = process.cpu_times()
        return Usage(times.user + times.system, process.memory_info().rss)
    except (psutil.Error, OSError):
        return None


class ChildWatch:
    """Waits for a child that may use `seconds` of a processor, and MEMORY."""

    def __init__(self, child, seconds: float):
        self.child, self.limit = child, seconds
        self.began = time.monotonic()
        self.used = Usage(0.0, 0)

    def wait(self) -> str:
        """Wait until the child ends. If it must be stopped before, return the reason, else ""."""
        marks = collections.deque([(self.began, 0.0)])  # (clock, processor) of the last seconds
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(0.1)
                return ""
            now, self.used = time.monotonic(), usage(self.child) or self.used
            marks.append((now, self.used.seconds))
            while now - marks[1][0] >= self.limit:
                marks.popleft()
            passed, worked = (b - a for a, b in zip(marks[0], marks[-1]))
            waits = passed >= self.limit and worked < IDLE * passed
            if stopped := self.too_much(now - self.began, waits):
                return stopped

    def too_much(self, clock: float, waits: bool) -> str:
        """A sentence on the limit that the child exceeds; empty if it exceeds none."""
        seconds, memory = self.used
        if memory > MEMORY:
            held = gigabytes(MEMORY)
            return f"it held more than {held} of memory: a list that grows without end?"
        if seconds > self.limit:
            held = f", and held {gigabytes(memory)} of memory" if memory > MEMORY / 4 else ""
            used = f"{self.limit:g} s of processor time{held}"
            return f"still running after {used}: a loop that does not end?"
        if waits:
            return f"it did nothing for {self.limit:g} s: does it wait for what never comes?"
        if clock > PATIENCE * self.limit:
            got = f"in {clock:.0f} s your code got {seconds:.0f} s of a processor"
            return f"the machine is too busy: {got}. Try again, or give it more with --limit"
        return ""

    def busy(self) -> str:
        """A remark if the child had to wait for a processor most of the time."""
        clock = time.monotonic() - self.began
        if clock < SLOW or self.used.seconds > clock / 2:
            return ""
        return f"it took {clock:.0f} s, {self.used.seconds:.0f} s of them on a processor"


def gigabytes(n: float) -> str:
    return f"{n / 2**30:.3g} GB"


def environment() -> dict[str, str]:
    """The child finds this package, sees no GPU and computes on one thread, on any machine."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    plain = {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "CUDA_VISIBLE_DEVICES": "-1"}
    plain["MINIPADDLE_BACKEND"] = os.environ.get("MINIPADDLE_BACKEND", "interpreter")
    return os.environ | plain | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Drain(threading.Thread):
    """Reads a pipe to its end, and keeps the beginning: a child that prints is never blocked."""

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


def request_trace(child) -> None:
    """Let faulthandler write where a child is stuck; no code of the child runs (see `main`)."""
    if hasattr(signal, "SIGUSR1"):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            child.send_signal(signal.SIGUSR1)
            child.wait(0.3)


def kill(child) -> None:
    """End a child, and the processes it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
    child.stdin.close()


def verdict_on_end(exercise: Exercise, file: Path, stopped: str, status: int, trace) -> Verdict:
    """The verdict on code that left none: it was `stopped`, crashed, or ended its process."""
    if stopped:
        why = stopped
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
    match = re.search(rf'File "{re.escape(str(file))}", line (\d+)', trace)
    if match is None:
        return ""
    n = int(match[1])
    linecache.checkcache(str(file))
    return f"{file.name}:{n}: {linecache.getline(str(file), n).strip()}"


# ---- the child's side ----------------------------------------------------------------------------


def main(name: str, file: str, folder: str, seed: str) -> None:
    """Judge, and leave the verdict in `folder`. The process ends at once: no thread holds it."""
    end_with_parent()
    target = os.path.join(folder, "verdict")
    if hasattr(os, "register_at_fork"):  # a copy would judge too, and be copied at each call
        os.register_at_fork(after_in_child=lambda: os._exit(0))
    trace = Path(folder, "trace").open("w", encoding="utf-8")  # noqa: SIM115 (open to the end)
    faulthandler.enable(trace)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, trace)
    limit_memory()

    def leave(verdict: Verdict) -> None:
        replace({target: verdict.to_json().encode()})

    source = Path(folder, "source").read_text(encoding="utf-8")
    leave(judge(load(name), source, file, seed=int(seed), first=leave))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)


def end_with_parent() -> None:
    """Let this process, and all that it starts, end when its input closes; reading it from now on
    finds the end at once. A process of its own waits for that, as the reader's code may let no
    thread run; where the system cannot copy processes (Windows) a thread does.
    """
    line = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    if not hasattr(os, "fork"):
        return threading.Thread(target=end_after, args=[line], daemon=True).start()
    if os.fork() == 0:
        for stream in (1, 2):  # their reader waits for the end of the judge, not of this process
            os.dup2(0, stream)
        end_after(line)


def end_after(line: int) -> None:
    """Wait until nobody holds the other end of a pipe; then end this group of processes."""
    os.read(line, 1)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def limit_memory() -> None:
    """Let data beyond MEMORY raise MemoryError, where the system can do that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


if __name__ == "__main__":
    main(*sys.argv[1:])
