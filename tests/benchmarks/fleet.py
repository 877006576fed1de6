"""One process for each framework, fed in turn.

In one process the frameworks disturb each other: they bring three OpenMP runtimes, whose idle
threads spin while the next framework is measured, and they share NumPy's thread settings. So each
has a process, with its environment set before it starts, and is stopped (SIGSTOP) while it is not
its turn: nothing of it can spin. Each has the same processors, as many as threads are allowed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failed(RuntimeError):
    """A framework could not do what was asked; the message is the end of what it said."""


def environment(threads: int, cache: str) -> dict[str, str]:
    """Threads for every library that reads its number here, and caches that are empty."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    limits = {f"{name}_NUM_THREADS": str(threads) for name in names}
    limits["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    limits["FLAGS_paddle_num_threads"] = str(threads)
    limits["JAX_PLATFORMS"] = "cpu"
    caches = {
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "MINIPADDLE_CACHE": f"{cache}/minipaddle",
    }
    quiet = {"GLOG_minloglevel": "2", "PYTHONWARNINGS": "ignore", "TF_CPP_MIN_LOG_LEVEL": "2"}
    return {**os.environ, **limits, **caches, **quiet}


def processors(threads: int) -> set[int] | None:
    """The processors all workers get; None where the system cannot say."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return set(sorted(os.sched_getaffinity(0))[-threads:])


class Worker:
    """A process that is asked; see `worker.py` for what. It is stopped unless it is asked. It
    measures the code in `tree`.
    """

    def __init__(self, name: str, workload: str, threads: int, tree: Path = ROOT):
        self.name, self.pinned = name, processors(threads)
        self.files = tempfile.TemporaryDirectory(prefix="bench-")
        self.log = Path(self.files.name, "log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.benchmarks.worker", name, workload, str(threads)],
                cwd=tree,
                env={**environment(threads, self.files.name), "PYTHONPATH": str(tree)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=self.pin if self.pinned else None,
            )

    def pin(self) -> None:
        os.sched_setaffinity(0, self.pinned)

    def ask(self, do: str, **more):
        """Give an order, wait for the answer."""
        self.signal("SIGCONT")
        try:
            self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(self.last_words())
        self.signal("SIGSTOP")
        return json.loads(line)

    def signal(self, name: str) -> None:
        if hasattr(signal, name):  # Windows has no such signals: there, idle workers only wait
            self.process.send_signal(getattr(signal, name))

    def last_words(self) -> str:
        self.process.wait(10)
        logged = self.log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in logged.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"[\w.]*Error\b", line)]
        return [f"it ended with status {self.process.returncode}", *lines[-1:], *errors[-1:]][-1]

    def close(self) -> None:
        """End the process and forget its caches."""
        self.signal("SIGCONT")
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.files.cleanup()
