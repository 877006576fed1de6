"""The reader's progress, in a file beside the reader's own: a cache, whose loss loses no work."""

import contextlib
import hashlib
import json
from pathlib import Path

from ..core.files import replace
from .exercise import Exercise, home, load, names, workspace
from .stub import list_unwritten
from .verdict import Verdict

NEW = {"state": "", "of": "", "hints": 0, "looked": False, "synced": ""}
"""Of an exercise: its last state and of which texts that was; the hints shown; whether the solution
was looked at; and the text that cell and file last had in common (as a hash)."""


def path() -> Path:
    return workspace() / ".progress.json"


def read() -> dict[str, dict]:
    """The progress by exercise; {} if there is no file, or it cannot be read."""
    try:
        entries = json.loads(path().read_text(encoding="utf-8"))
        return {name: NEW | dict(entry) for name, entry in entries.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def of(name: str) -> dict:
    """The progress of one exercise."""
    return read().get(name, dict(NEW))


def note(name: str, **known) -> None:
    """Store facts about an exercise."""
    everything = read()
    everything[name] = NEW | everything.get(name, {}) | known
    with contextlib.suppress(OSError):  # a folder that cannot be written keeps no progress
        replace({str(path()): json.dumps(everything, indent=1, sort_keys=True).encode()})


def remember(verdict: Verdict) -> None:
    """Store a verdict on the reader's file as it is now."""
    note(verdict.name, state=verdict.state, of=texts(load(verdict.name)))


def state(name: str) -> str:
    """One of verdict.STATES, or "changed" if the file was not judged since it was edited."""
    exercise = load(name)
    source = text_of(exercise)
    try:
        if source is None or not source.strip():
            return "not started"
        if list_unwritten(source, exercise.solution) == list_unwritten("", exercise.solution):
            return "not started"
    except (SyntaxError, ValueError):
        pass
    known = of(name)
    return known["state"] if known["of"] == texts(exercise) else "changed"


def text_of(exercise: Exercise) -> str | None:
    """The reader's text; None if there is no file, or no text in it."""
    try:
        return exercise.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def texts(exercise: Exercise) -> str:
    """A hash of all that a verdict depends on: the reader's text, the check, the solution."""
    check = (home() / "checks" / f"{exercise.name}.py").read_text(encoding="utf-8")
    return digest("\0".join([text_of(exercise) or "", check, exercise.solution]))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def find_next(name: str = "") -> str:
    """The first exercise after `name` that is not passed; else the first of all; else ""."""
    everything = names()
    start = everything.index(name) + 1 if name in everything else 0
    waiting = [n for n in everything[start:] + everything[:start] if state(n) != "passed"]
    return next((n for n in waiting if n != name), "")
