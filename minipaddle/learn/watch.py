"""Judge an exercise whenever its file is saved. It moves on only when it is told to."""

from __future__ import annotations

import queue
import sys
import threading
from types import SimpleNamespace

from rich.rule import Rule
from rich.text import Text

from . import command, progress
from .exercise import load, workspace
from .process import judged
from .show import show

KEYS = "Enter: check again   h: hint   n: next   q: quit"
STEP = 200
"""Milliseconds between two looks at what was typed."""


def watch(console, name: str, options) -> int:
    """Judge at each save until told to stop; 0 if the last exercise passed."""
    from watchfiles import watch as saves

    typed = lines_typed()
    passed = look(console, name, options)
    workspace().mkdir(parents=True, exist_ok=True)
    for changes in saves(
        workspace(), rust_timeout=STEP, yield_on_timeout=True, raise_interrupt=True, debounce=100
    ):
        word = read(typed)
        if word == "q":
            break
        if word == "h":
            command.hint(console, SimpleNamespace(name=name))
        elif word == "n":
            name = progress.following(name) or name
            passed = look(console, name, options)
        elif word is not None or saved(changes, name):
            passed = look(console, name, options)
    return 0 if passed else 1


def look(console, name: str, options) -> bool:
    """Judge and show."""
    exercise = load(name)
    console.print(Rule(Text(exercise.place), align="left"))
    verdict = judged(name, seconds=options.limit, seed=options.seed)
    progress.remember(verdict)
    show(console, verdict)
    keys = KEYS.replace("n: next", "n: the next one") if verdict.passed else KEYS
    console.print(Text(keys, style="dim"))
    return verdict.passed


def saved(changes, name: str) -> bool:
    """Is the reader's file among what changed?"""
    path = load(name).path.resolve()
    return any(type(path)(changed).resolve() == path for _, changed in changes)


def lines_typed() -> queue.SimpleQueue:
    """What the reader types, line by line; a thread waits for it."""
    lines: queue.SimpleQueue = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line.strip().lower()[:1])

    threading.Thread(target=listen, daemon=True).start()
    return lines


def read(lines: queue.SimpleQueue) -> str | None:
    """The next line typed, or None."""
    try:
        return lines.get_nowait()
    except queue.Empty:
        return None
