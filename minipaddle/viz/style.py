"""One palette and one legend for every graph.

Colours are Okabe and Ito's, told apart by colour-blind readers ("Color Universal Design", 2008),
and each role has a shape of its own too. Nodes are filled; what stands on the page itself (lines,
captions) is the grey that white and a dark page set off equally well. So a graph reads on both.
"""

import csv
import html
from pathlib import Path
from typing import NamedTuple

import graphviz

from .engine import Graph


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
FONT = "DejaVu Sans"
ROOMY = ("parallelogram", "invtrapezium", "hexagon")
"""Shapes that leave room around their text by themselves."""


def graph(title: str = "", **attrs) -> Graph:
    """An empty graph in the house style."""
    g, line = Graph(), {"fontname": FONT, "color": GREY}
    space = {"bgcolor": "transparent", "ranksep": "0.3", "nodesep": "0.2"}
    page = space | {"fontname": FONT, "fontsize": "11", "tooltip": literal(title) or " "}
    g.attr("graph", fontcolor=GREY, **(page | attrs))
    g.attr("node", fontsize="10", style="filled", height="0.3", margin="0.08,0.04", **line)
    g.attr("edge", fontsize="9", fontcolor=GREY, arrowsize="0.6", **line)
    return g


def literal(text: str) -> str:
    """A text that Graphviz draws as it is: no escapes, no entities, no HTML."""
    return graphviz.escape(text.replace("&", "&amp;"))


def node(g, name: str, label: str, role: str, tooltip: str = "", left=False, **attrs) -> None:
    """Add a node that plays `role` (a key of LOOKS); with `left` its lines begin at the left."""
    look = LOOKS[role]
    style = {"shape": look.shape, "fillcolor": look.fill, "fontcolor": look.ink} | attrs
    if look.shape in ROOMY:
        style = {"margin": "0,0"} | style
    if look.shape == "doublecircle":  # room for text: an ellipse with two rims
        style |= {"shape": "ellipse", "peripheries": "2"}
    text = literal(label)
    if left or role == "code":
        text = text.replace("\n", r"\l") + r"\l"
    g.node(name, text, tooltip=literal(tooltip or label), **style)


def dot(g, name: str, tooltip: str) -> None:
    """A value that enters but gets no gradient: a small dot."""
    g.node(name, "", shape="point", width="0.08", fillcolor=GREY, tooltip=literal(tooltip))


def mark_label(label: str) -> str:
    """The label of a node that runs the reader's own code."""
    first, *rest = label.split("\n")
    return "\n".join([f"{first} [yours]", *rest])


def cluster(g, name: str, label: str, tooltip: str, **attrs):
    """A frame around nodes, as a context manager."""
    look = {"style": "rounded", "color": GREY, "margin": "6"}
    look |= {"labeljust": "l"}  # lines come in at the middle
    words = {"label": literal(label), "tooltip": literal(tooltip)}
    return g.subgraph(name=f"cluster_{name}", graph_attr=words | look | attrs)


COLUMNS = 4


def legend(g, roles, caption: str = "", more=(), title: str = "") -> None:
    """Below the graph, the roles that occur, in the palette's order, and a line of caption.

    `more` adds cells: pairs (text, colour of the text).
    """
    looks = [look for role, look in LOOKS.items() if role in roles]
    cells = [cell(f"{look.glyph} {html.escape(look.meaning)}", look) for look in looks]
    cells += [tag("td", tag("font", html.escape(text), color=ink)) for text, ink in more]
    rows = [tag("tr", *cells[k : k + COLUMNS]) for k in range(0, len(cells), COLUMNS)]
    caption = " · ".join(filter(None, [title, caption]))
    if caption:
        span = min(COLUMNS, max(1, len(cells)))
        rows.append(tag("tr", tag("td", html.escape(caption), colspan=span)))
    if rows:
        table = tag("table", *rows, border=0, cellspacing=3, cellpadding=2)
        g.attr(label=f"<{tag('font', table, point_size=8)}>", labelloc="b")


def tag(name: str, *inside: str, **attrs) -> str:
    """An element of HTML, for a page or for Graphviz: `tag("td", "x", align="left")`."""
    words = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in attrs.items() if v != "")
    return f"<{name}{words}>{''.join(inside)}</{name}>"


def cell(text: str, look: Look, align: str = "", **font) -> str:
    """A cell of a table of Graphviz in the colours of a role; `text` is HTML already."""
    if look.shape == "point":
        return tag("td", text)
    return tag("td", tag("font", text, color=look.ink, **font), bgcolor=look.fill, align=align)


def count(n: int, noun: str) -> str:
    """`1 record`, `2 records`, `2 misses`."""
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def bytes_text(n: int) -> str:
    """`0 B`, `1.5 KB`, `3.2 MB`: a size for people, in powers of 1024."""
    size = float(n)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
