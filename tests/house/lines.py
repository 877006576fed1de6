"""How many lines of code there are by folder, and what a change adds.

    python -m tests.house.lines [COMMIT]   today's lines beside those of a commit (HEAD's parent)
    python -m tests.house.lines lower      lower the caps in caps.csv to today's lines
    python -m tests.house.lines raise WHY  the same, and raise those that are exceeded, saying why

Blank lines, comments and docstrings do not count; of a notebook the cells of code do.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .test_engine import lines_of_code

ROOT = Path(__file__).parents[2]
CAPS = Path(__file__).with_name("caps.csv")
TOPS = ("minipaddle", "tests", "exercises", "book")


def files_here() -> Iterator[tuple[str, str]]:
    """(path, text) of the files that git knows, as they are now."""
    listed = subprocess.check_output(["git", "ls-files", *TOPS], cwd=ROOT, text=True)
    for name in listed.splitlines():
        if Path(name).suffix in COUNTS and (ROOT / name).exists():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def files_of(commit: str) -> Iterator[tuple[str, str]]:
    """(path, text) of the files of a commit."""
    packed = subprocess.check_output(["git", "archive", commit, *TOPS], cwd=ROOT)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and Path(member.name).suffix in COUNTS:
                yield member.name, archive.extractfile(member).read().decode()


def lines_of_notebook(text: str) -> int:
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return sum(bool(line.strip()) for cell in cells for line in cell["source"])


def lines_of_c(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


COUNTS = {".py": lines_of_code, ".ipynb": lines_of_notebook, ".c": lines_of_c}


def count(files) -> Counter:
    """Lines by folder: `minipaddle/jit`, `tests/jit`, `book`; C apart; the package in all."""
    lines = Counter()
    for name, text in files:
        top, *rest = Path(name).parts
        path = Path(name)
        n = COUNTS[path.suffix](text)
        if path.suffix == ".c":
            lines["C templates"] += n
            continue
        folder = f"{top}/{rest[0]}" if top in ("minipaddle", "tests") and rest[1:] else top
        lines[f"{folder}/*.py" if folder in ("minipaddle", "tests") else folder] += n
        lines["the package"] += n * (top == "minipaddle")
    return lines


def read_caps(text: str) -> dict[str, tuple[int, str]]:
    """{folder: (the most lines it may have, the reason for the last rise)}."""
    return {
        row["folder"]: (int(row["lines"]), row["reason"])
        for row in csv.DictReader(io.StringIO(text))
    }


def set_caps(why: str = "") -> None:
    """Lower the caps to today's lines, or, saying why, raise them; a new folder gets a cap."""
    now, caps = count(files_here()), read_caps(CAPS.read_text()) if CAPS.exists() else {}
    with CAPS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["folder", "lines", "reason"])
        for folder in sorted(now):
            most, reason = caps.get(folder, (now[folder], ""))
            if why and now[folder] > most:
                most, reason = now[folder], why
            writer.writerow([folder, min(most, now[folder]), reason])


def main(words: list[str]) -> None:
    if words[:1] in (["lower"], ["raise"]):
        return set_caps(" ".join(words[1:]))
    commit = words[0] if words else "HEAD~1"
    now, before = count(files_here()), count(files_of(commit))
    print(f"{'lines of code':28} {'now':>8}  against {commit}")
    for folder in sorted(now | before, key=lambda folder: -now[folder]):
        print(f"{folder:28} {now[folder]:8,}  {now[folder] - before[folder]:+,}")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
