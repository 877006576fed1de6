"""One palette for every graph, and counts and sizes in words.

Colours are Okabe and Ito's, told apart by colour-blind readers ("Color Universal Design", 2008),
and each role has a shape of its own too. Nodes are filled; what stands on the page itself (lines,
captions) is the grey that white and a dark page set off equally well. So a graph reads on both.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import graphviz

from .graph_engine import Graph
from .markup import GREY


class RoleStyle(NamedTuple):
    """How nodes of a role are drawn; `glyph` represents the shape in the legend."""

    meaning: str
    fill: str
    ink: str
    shape: str
    glyph: str


with Path(__file__).with_name("roles.csv").open(encoding="utf-8", newline="") as _file:
    LOOKS = {row.pop("role"): RoleStyle(**row) for row in csv.DictReader(_file)}
"""How each role is drawn; legends list them in this order."""
YOURS = "#009e73"
"""The border of the reader's own code."""


FONT = "DejaVu Sans"
ROOMY = ("parallelogram", "invtrapezium", "hexagon")
"""Shapes that leave room around their text by themselves."""


# ---- in Graphviz's language --------------------------------------------------------------------


def graph(title: str = "", **attrs) -> Graph:
    """An empty graph in the house style."""
    g, line = Graph(), {"fontname": FONT, "color": GREY}
    look = {"bgcolor": "transparent", "ranksep": "0.3", "nodesep": "0.2", "fontname": FONT}
    look |= {"fontsize": "11", "fontcolor": GREY, "tooltip": literal(title) or " "}
    g.attr("graph", **look | attrs)
    g.attr("node", fontsize="10", style="filled", height="0.3", margin="0.08,0.04", **line)
    g.attr("edge", fontsize="9", fontcolor=GREY, arrowsize="0.6", **line)
    return g


def literal(text: str) -> str:
    """A text that Graphviz draws as it is: no escapes, no entities, no HTML."""
    return graphviz.escape(text.replace("&", "&amp;"))


def node(g, name: str, label: str, role: str, tooltip: str = "", left=False, **attrs) -> None:
    """Add a node that plays `role` (a key of LOOKS); with `left` its lines begin at the left."""
    role_look = LOOKS[role]
    look = {"shape": role_look.shape, "fillcolor": role_look.fill, "fontcolor": role_look.ink}
    look |= {"margin": "0,0"} if role_look.shape in ROOMY else {}
    look |= attrs
    if role_look.shape == "doublecircle":  # room for text: an ellipse with two rims
        look |= {"shape": "ellipse", "peripheries": "2"}
    text = literal(label)
    if left or role == "code":
        text = text.replace("\n", r"\l") + r"\l"
    g.node(name, text, tooltip=literal(tooltip or label), **look)


def cluster(g, name: str, label: str, tooltip: str, **attrs):
    """A frame around nodes, as a context manager."""
    look = {"style": "rounded", "color": GREY, "margin": "6", "labeljust": "l"}
    words = {"label": literal(label), "tooltip": literal(tooltip)}
    return g.subgraph(name=f"cluster_{name}", graph_attr=words | look | attrs)


# ---- words -------------------------------------------------------------------------------------


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
