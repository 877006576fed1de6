"""One palette and one legend for every graph.

Colours are Okabe and Ito's, told apart by colour-blind readers ("Color Universal Design", 2008),
and each role has a shape of its own too. Nodes are filled; what stands on the page itself (lines,
captions) is the grey that white and a dark page set off equally well. So a graph reads on both.
"""

from __future__ import annotations

import html
from typing import NamedTuple

import graphviz

from .engine import Graph


class Look(NamedTuple):
    """How one role of node is drawn; `glyph` stands for its shape in the legend."""

    meaning: str
    fill: str
    ink: str
    shape: str
    glyph: str


GREY = "#797979"
LOOKS = {
    "input": Look("input", "#56b4e9", "#000000", "ellipse", "◯"),
    "parameter": Look("parameter", "#e69f00", "#000000", "cylinder", "⛁"),
    "constant": Look("constant", "#bbbbbb", "#000000", "box", "1"),
    "frozen": Look("frozen parameter or buffer", "#bbbbbb", "#000000", "component", "❄"),
    "elementwise": Look("elementwise", "#f0e442", "#000000", "box", "▭"),
    "movement": Look("movement", "#dddddd", "#000000", "parallelogram", "▱"),
    "reduction": Look("reduction", "#009e73", "#000000", "invtrapezium", "▽"),
    "opaque": Look("matmul, conv, gather, …", "#0072b2", "#ffffff", "hexagon", "⬡"),
    "group": Look("group: one kernel", "#d6ecfa", "#000000", "component", "❖"),
    "layer": Look("layer", "#cc79a7", "#000000", "box3d", "❒"),
    "decision": Look("decision", "#ffffff", "#000000", "diamond", "◇"),
    "region": Look("branch or loop, closed", "#cc79a7", "#000000", "tab", "❐"),
    "carried": Look("carried from round to round", "#ffffff", "#000000", "ellipse", "↻"),
    "merge": Look("what a branch or a loop gives", "#ffffff", "#000000", "invhouse", "⋎"),
    "same": Look("passed on as it is", "#ffffff", "#000000", "circle", "="),
    "lines": Look("lines of yours, closed", "#ffffff", "#000000", "tab", "❏"),
    "state": Look("state: outlives a run", "#f7cf7d", "#000000", "cylinder", "⛁"),
    "kept": Look("as it was", "#dddddd", "#000000", "box", "="),
    "around": Look("changed inside", "#fff3b0", "#000000", "box", "◌"),
    "moved": Look("as it was, elsewhere", "#56b4e9", "#000000", "box", "→"),
    "gone": Look("gone", "#d55e00", "#000000", "box", "−"),
    "removed": Look("not there any more", "#ececec", "#000000", "box", "−"),
    "new": Look("new", "#3cc29a", "#000000", "box", "+"),
    "key": Look("what its calls agree in", "#d6ecfa", "#000000", "box", "≡"),
    "served": Look("program that served again", "#009e73", "#000000", "box3d", "✓"),
    "unused": Look("program that did not", "#cfcfcf", "#000000", "box", "0"),
    "more": Look("more of the same", "#ffffff", "#000000", "folder", "…"),
    "output": Look("result", "#d55e00", "#000000", "doublecircle", "◎"),
    "gradient": Look("gradient that arrives", "#000000", "#ffffff", "ellipse", "∇"),
    "given": Look("input without gradient", GREY, "#000000", "point", "•"),
    "code": Look("as it is written", "#ffffff", "#000000", "note", "❏"),
    "yours": Look("[yours]: plugged in by you", "#ffffff", "#00614a", "box", "✎"),
    "mine": Look("yours", "#009e73", "#000000", "box", "✓"),
    "broken": Look("does not pass its check", "#e00000", "#ffffff", "box", "✗"),
    "reference": Look("reference: an exercise not solved yet", "#9d9d9d", "#000000", "box", "○"),
}
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
    """`1 record`, `2 records`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def bytes_text(n: int) -> str:
    """`0 B`, `1.5 KB`, `3.2 MB`: a size for people, in powers of 1024."""
    size = float(n)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
