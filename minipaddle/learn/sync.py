"""One text in two places, a notebook's cell and the reader's file.

Neither overwrites the other if anything would be lost: the text they last had in common tells which
of them was edited.
"""

import difflib
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..core.files import replace
from . import progress
from .exercise import Exercise, home, load, names, workspace
from .stub import stub_of

WRITE, JUDGE_FILE, CONFLICT = "write", "judge file", "conflict"


class Sync(NamedTuple):
    """The action on a cell, and a message about it for the reader."""

    action: str
    message: str = ""


def clean(text: str) -> str:
    """The text without blank lines around it and spaces at line ends: texts are compared so."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def step(cell: str, file: str | None, stub: str, synced: str) -> Sync:
    """The action on a cell, given the file's text and the hash of their last common text."""
    cell, file, stub = clean(cell), None if file is None else clean(file), clean(stub)
    if file in (None, "\n", cell):
        return Sync(WRITE)
    if cell == stub:
        return Sync(JUDGE_FILE, "The file has been worked on, this cell has not: the file counts.")
    if progress.digest(cell) == synced:
        return Sync(JUDGE_FILE, "The file was edited since this cell last ran: the file counts.")
    if file == stub or progress.digest(file) == synced:
        return Sync(WRITE)
    return Sync(CONFLICT, "Cell and file were both edited: nothing was written.")


def bring(exercise: Exercise, cell: str) -> Sync:
    """Write the cell into the file if that loses nothing; returns the step that was taken."""
    synced = progress.of(exercise.name)["synced"]
    taken = step(cell, progress.text_of(exercise), exercise.stub, synced)
    if taken.action == WRITE:
        put(exercise, cell)
    return taken


def put(exercise: Exercise, text: str) -> None:
    """Make `text` the reader's file, and note it as the text that both have in common."""
    write(exercise.path, clean(text))
    progress.note(exercise.name, synced=progress.digest(clean(text)))


def write(path: Path, text: str) -> None:
    """Replace a file at once; a file that has this text already keeps its date."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    replace({str(path): text.encode()})


def difference(exercise: Exercise, cell: str) -> str:
    """The differences between the file and the cell, as a diff."""
    pair = (clean(progress.text_of(exercise) or "").splitlines(), clean(cell).splitlines())
    return "\n".join(difflib.unified_diff(*pair, exercise.place, "this cell", lineterm="", n=2))


def back_up(exercise: Exercise) -> Path | None:
    """Copy the reader's file, if it holds anything but the stub; returns the path of the copy."""
    text = progress.text_of(exercise)
    if text is None or clean(text) == clean(exercise.stub):
        return None
    stamp = time.strftime("%Y-%m-%d_%H%M%S")
    for k in range(100):
        name = f"{exercise.name}.{stamp}{f'.{k}' if k else ''}.py"
        path = workspace() / ".backups" / name
        if not path.exists():
            write(path, text)
            return path
    return None


def reset(exercise: Exercise) -> Path | None:
    """Put the stub back; returns the path of the copy of the reader's text."""
    copy = back_up(exercise)
    write(exercise.path, exercise.stub)
    return copy


def write_stubs() -> list[str]:
    """Write the readers' files that are missing, or not begun and cut from an older solution.

    Returns their names. Nothing of a reader's is lost; where nothing can be written, nothing is.
    """
    written: list[str] = []
    with suppress(OSError):
        for name in names():
            path = workspace() / f"{name}.py"
            solution = home() / "solutions" / f"{name}.py"
            if not path.exists():
                write(path, stub_of(solution.read_text(encoding="utf-8")))
            elif is_outdated(path, solution):
                reset(load(name))
            else:
                continue
            written.append(name)
    return written


def is_outdated(path: Path, solution: Path) -> bool:
    """Whether a reader's file is the stub of an earlier solution."""
    if path.stat().st_mtime_ns >= solution.stat().st_mtime_ns:
        return False
    text = path.read_text(encoding="utf-8")
    with suppress(SyntaxError, ValueError):
        return stub_of(text) == text != stub_of(solution.read_text(encoding="utf-8"))
    return False
