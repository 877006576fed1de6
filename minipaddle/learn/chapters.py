"""The chapters of the book, as the first cell of each describes them."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from .exercise import LEVELS

BOOK = Path(__file__).parents[2] / "book"


class Chapter(NamedTuple):
    """The head of a chapter; `question` is its text up to the first question mark."""

    number: str
    title: str
    part: str
    level: str
    minutes: str
    before: str
    question: str

    @property
    def effort(self) -> str:
        """How hard it is and how long it takes: `medium, 60 minutes`."""
        return f"{self.level}, {self.minutes} minutes"


HEAD = re.compile(
    r"# (\d+) · (.+)\n\n"
    rf"\*Part (.+) · ({'|'.join(LEVELS)}) · (\d+) minutes · read before: (.+)\*\n\n"
    r"([^?]+\?)\s"
)


def chapters() -> dict[str, Chapter]:
    """The chapters in their order, by the name of their file; {} where the book is not there."""
    return {path.stem: read_head(path) for path in sorted(BOOK.glob("*.ipynb"))}


def read_head(path: Path) -> Chapter:
    """The head of the chapter in a notebook; ValueError if its first cell is laid out otherwise."""
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    head = HEAD.match("".join(first))
    if head is None:
        raise ValueError(f"{path.name}: the first cell is not laid out as {HEAD.pattern}")
    return Chapter(*(" ".join(text.split()) for text in head.groups()))
