"""Judge an exercise whenever its file is saved. It moves on only when the reader says so."""

import queue
import sys
import threading
import time

from rich.rule import Rule
from rich.text import Text

from . import progress
from .exercise import load
from .process import judge_file
from .verdict import show

KEYS = "Enter: check again   h: hint   n: next   q: quit"
LOOKS = 0.2
"""Seconds between two looks at the file and at the keyboard."""


def watch_exercise(console, name: str, options, show_hints) -> int:
    """Judge at each save until the reader quits; 0 if the last exercise passed."""
    typed = lines_typed()
    saved, passed = judge_and_show(console, name, options)
    while (word := wait(name, saved, typed)) != "q":
        if word == "h":
            show_hints(console, load(name))
            continue
        if word == "n":
            name = progress.find_next(name) or name
        saved, passed = judge_and_show(console, name, options)
    return 0 if passed else 1


def judge_and_show(console, name: str, options) -> tuple[int, bool]:
    """When the file that was judged had been saved, and whether it passed."""
    saved = find_saved(name)  # before judging: what is saved meanwhile is judged next
    console.print(Rule(Text(load(name).place), align="left"))
    verdict = judge_file(name, seconds=options.limit, seed=options.seed)
    progress.remember(verdict)
    show(console, verdict)
    console.print(Text(KEYS, style="dim"))
    return saved, verdict.passed


def wait(name: str, saved: int, typed: queue.SimpleQueue) -> str:
    """The next letter typed, or nothing once the file is saved again."""
    while find_saved(name) in (saved, 0):  # 0: an editor is replacing it
        try:
            return typed.get(timeout=LOOKS)
        except queue.Empty:
            continue
    time.sleep(LOOKS / 4)  # until all of it is written
    return ""


def find_saved(name: str) -> int:
    """When the reader's file was saved; 0 if it is not there."""
    try:
        return load(name).path.stat().st_mtime_ns
    except OSError:
        return 0


def lines_typed() -> queue.SimpleQueue:
    """The first letter of each line that is typed; a thread waits for them."""
    letters: queue.SimpleQueue = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            letters.put(line.strip().lower()[:1])

    threading.Thread(target=listen, daemon=True).start()
    return letters
