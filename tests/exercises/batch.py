"""Judge many texts of exercises: each in a forked child with a deadline.

`python -m tests.exercises.batch` reads lines of JSON, each an exercise's name and a list of texts,
and prints a line of JSON for each: a list of outcomes. It imports everything once and judges one
exercise, so that forks start warm (Hypothesis alone takes 0.15 s to its first example), and has no
threads, so it can fork. A text that should not pass is judged without a look at each call, which
takes half of the time on Python 3.11; if it passes, once more with it: it may have borrowed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import nullcontext
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SLOW = 30.0
"""Seconds of a processor for a text that should pass."""
EXAMPLES = int(os.environ.get("EXAMPLES", 8))
"""So many of the inputs that a property draws does a text get that should pass; others get all."""
WAITING = 5
"""As many times its deadline a text may take by the clock: the machine may be busy."""


class Outcome(NamedTuple):
    """What the judge said of a text: a state of `verdict.STATES`, or "hangs" or "crashes"."""

    state: str
    why: str
    seconds: float


@cache
def judges() -> subprocess.Popen:
    """The process that judges; it ends with this one."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-m", "tests.exercises.batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | one | {"CUDA_VISIBLE_DEVICES": "-1"},
    )


def outcomes(name: str, texts: list[str]) -> list[Outcome]:
    """What the judge says of each text. The first is given time, and sets the others' deadline."""
    asked = judges()
    print(json.dumps([name, texts]), file=asked.stdin, flush=True)
    return [Outcome(*found) for found in json.loads(asked.stdout.readline())]


def main() -> None:
    from minipaddle.learn import judge
    from minipaddle.learn.exercise import load, names

    def verdict(exercise, text: str, most: float = inf, hasty: bool = False):
        for test in exercise.tests:
            test.examples = min(test.examples, most)
        if hasty:
            judge.refusing = lambda exercise, file: nullcontext([])
        return judge.judge(exercise, text, "<yours>", thorough=False)

    def judged(name: str, texts: list[str]) -> None:
        exercise, (right, *others) = load(name), texts
        found = [in_fork(lambda: verdict(exercise, right, EXAMPLES), SLOW)]
        deadline = min(SLOW, 2 + 6 * found[0].seconds)
        for text in others:
            outcome = in_fork(lambda text=text: verdict(exercise, text, hasty=True), deadline)
            if outcome.state == "passed":
                outcome = in_fork(lambda text=text: verdict(exercise, text), deadline)
            found.append(outcome)
        print(json.dumps(found), flush=True)

    first = load(names()[0])
    verdict(first, first.solution)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:  # what one exercise imports and changes is not there for the next
            judged(*json.loads(line))
            os._exit(0)
        os.waitpid(child, 0)


def in_fork(run, deadline: float) -> Outcome:
    """What `run()` says in a child that may use a processor for `deadline` seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        import resource  # which Windows has not

        limit = ceil(deadline)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        verdict = quietly(run)
        kinds = sys.modules.get("tests.exercises.kinds")
        idle = verdict.passed and kinds is not None and not kinds.met
        state = "does not apply" if idle else verdict.state
        os.write(writing, json.dumps([state, verdict.why[:500]]).encode())
        os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], WAITING * deadline)[0]
    text = os.read(reading, 1 << 16) if ready else b""
    os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    os.close(reading)
    hangs = not ready or (os.WIFSIGNALED(status) and used.ru_utime + used.ru_stime >= deadline)
    state, why = json.loads(text) if text else ("hangs" if hangs else "crashes", "")
    return Outcome(state, why, used.ru_utime + used.ru_stime)


def quietly(run):
    """Run without printing: the text may print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return run()


if __name__ == "__main__":
    main()
