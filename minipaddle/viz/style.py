"""One palette and one legend for every graph.

Colours are Okabe and Ito's, told apart by colour-blind readers ("Color Universal Design", 2008),
and each role has a shape of its own too. Nodes are filled; what stands on the page itself (lines,
captions) is the grey that white and a dark page set off equally well. So a graph reads on both.
"""

import csv
from pathlib import Path
from typing import NamedTuple


class Look(NamedTuple):
    """How nodes of a role are drawn; `glyph` represents the shape in the legend."""

    meaning: str
    fill: str
    ink: str
    shape: str
    glyph: str


GREY = "#797979"
with Path(__file__).with_name("roles.csv").open(encoding="utf-8", newline="") as _file:
    LOOKS = {row.pop("role"): Look(**row) for row in csv.DictReader(_file)}
"""How each role is drawn; legends list them in this order."""
YOURS = "#009e73"
"""The border of the reader's own code."""


def count(n: int, noun: str) -> str:
    """`1 record`, `2 records`, `2 misses`."""
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def bytes_text(n: int) -> str:
    """`0 B`, `1.5 KB`, `3.2 MB`: a size for people, in powers of 1024; an open one as a formula."""
    if not isinstance(n, int | float):
        return f"{n} B"
    size = float(n)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
