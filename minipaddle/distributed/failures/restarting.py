"""Restart a job that has lost ranks: `launch --max_restart`.

MPI's world is fixed: it ends completely, and another one begins. The keepers of killed ranks report
them; a machine that is gone does not answer. The script continues from its last checkpoint: see
`fleet.elastic.steps`. If it made no step, and lost no rank or machine, the error is its own, and a
restart would only repeat it.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from .keeper import KILLED, die_with_parent

ELASTIC_EXIT_CODE = 101
"""A script that ends with this code asks to be started again."""

LOST = re.compile(rf"rank (\d+) {KILLED} (\w.*)".encode())
"""The words of a keeper about a killed rank: the end of a line, which another rank may have begun,
for ranks print errors in pieces."""

FAULTS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGSYS", "SIGTRAP"}
"""The signals of errors in a program itself."""

LISTENS = "MINIPADDLE_STEPS"
"""The environment variable of ranks whose `launch` waits for their steps."""

STEP = b"\x1e"
"""The mark of rank 0 on its standard error after a step: one byte, which no pipe can tear."""


def note_step() -> None:
    """Tell `launch` that a restart can continue from here."""
    if os.environ.get(LISTENS):
        os.write(2, STEP)


class JobEnd(NamedTuple):
    """The end of a job: its exit code; the signals of killed ranks; whether it made a step; and
    whether this process was asked to stop.
    """

    code: int
    lost: dict[int, str]
    stepped: bool
    stopped: bool

    def failed_alone(self) -> bool:
        """Whether the script failed by itself, before its first step."""
        return not self.stepped and FAULTS.issuperset(self.lost.values())


Start = Callable[[list[str], list[str]], list[str]]
"""A function that makes the command to run a program on each of some places."""


def run(options, places: list[str], program: list[str], start: Start) -> int:
    """Run the job, again while it fails and `options.max_restart` allows; its exit code.

    places: the machine of each rank. With `--elastic_level 2` later starts leave out the places of
    killed ranks, and machines that do not answer; else all machines have the time to answer. A
    restart that the script asks for, by its exit code, does not count.
    """
    restarts = 0
    while True:
        code, lost, _, stopped = end = run_once(start(places, program))
        if not code or stopped:
            return code
        size, counts = len(places), code != ELASTIC_EXIT_CODE
        why = "; ".join(f"rank {rank} of {size} {KILLED} {by}" for rank, by in sorted(lost.items()))
        why = why or f"the job failed with exit code {code}"
        call = start(places, ["true"])
        if counts and end.failed_alone() and probe(call, options.elastic_timeout, again=False):
            return give_up(code, f"{why} before its first step, by an error of the script itself")
        if counts and restarts == options.max_restart:
            return give_up(code, f"{why}, and --max_restart {restarts} is used up")
        if options.elastic_level == 2:
            places, gone = find_remaining_places(places, lost, start, options.elastic_timeout)
            why += "".join(f"; machine {each} does not answer" for each in gone)
        else:
            probe(call, options.elastic_timeout)
        if not places:
            return give_up(code, f"{why}, and no rank is left to go on")
        if (machines := len(set(places))) < options.least:
            left = "1 machine is" if machines == 1 else f"{machines} machines are"
            return give_up(code, f"{why}, and {left} left: --nnodes {options.nnodes}")
        restarts += counts
        count = f"restart {restarts} of {options.max_restart}" if counts else "as it asked"
        say(f"{why}; starting again with {len(places)} ranks ({count})")


def find_remaining_places(places: list[str], lost: dict, start: Start, seconds: float) -> tuple:
    """The places that lost no rank and whose machines answer, and the other machines."""
    places = [place for rank, place in enumerate(places) if rank not in lost]
    machines = filter(None, dict.fromkeys(places))
    gone = [m for m in machines if not probe(start([m], ["true"]), seconds)]
    return [place for place in places if place not in gone], gone


def probe(call: list[str], seconds: float, again: bool = True) -> bool:
    """Whether a command succeeds within some seconds; it is tried `again` while it fails."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            if not subprocess.run(call, timeout=left, capture_output=True).returncode:
                return True
            if not again:
                break
            time.sleep(min(1.0, left))
    return False


def run_once(call: list[str]) -> JobEnd:
    """Run a command, and pass on its standard error."""
    job, asked, lost, rest, stepped = None, [], {}, b"", False
    if_alone, around = partial(die_with_parent, signal.SIGTERM), os.environ | {LISTENS: "1"}

    def stop(number, frame):
        asked.append(number)
        if job is not None:
            job.send_signal(number)

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with subprocess.Popen(call, stderr=subprocess.PIPE, preexec_fn=if_alone, env=around) as job:
            for number in asked:  # before there was a job
                job.send_signal(number)
            while chunk := os.read(job.stderr.fileno(), 1 << 16):
                stepped |= STEP in chunk
                sys.stderr.buffer.write(chunk := chunk.replace(STEP, b""))
                sys.stderr.flush()
                *lines, rest = (rest + chunk).split(b"\n")
                for match in filter(None, map(LOST.search, lines)):
                    lost[int(match[1])] = match[2].decode()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return JobEnd(job.returncode, lost, stepped, bool(asked))


def give_up(code: int, why: str) -> int:
    """Report why the job does not start again."""
    say(f"{why}: the job has failed")
    return code


def say(event: str) -> None:
    """Report an event of the job."""
    print(f"launch: {event}", file=sys.stderr, flush=True)
