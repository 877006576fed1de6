"""The parts that every graph is made of, and the two writers of graphs.

A picture is a generator of parts: nodes (each knows the frames it stands in), edges and a legend.
`draw` writes them as DOT and as text.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from .graph_engine import Graph
from .markup import CellTable, TableCell, tag
from .style import GREY, LOOKS, YOURS, cluster, graph, literal, node


@dataclass(eq=False)  # each call of a layer is a frame of its own
class Frame:
    """A box around nodes; `kind` is a key of FRAMES, `layer` the layer that was called, if any."""

    label: str
    tip: str
    kind: str = "layer"
    layer: object = None

    def __str__(self) -> str:
        return f"{self.kind} {self.label}\n{self.tip}"


FRAMES = {
    "group": {"style": "rounded,filled", "fillcolor": "#56b4e920", "color": "#56b4e9"},
    "layer": {},
    "lines": {"style": "rounded,dashed"},
    "phase": {"style": "rounded,dashed"},
    "update": {"style": "rounded,dashed"},
    "region": {"color": "#cc79a7", "penwidth": "1.5"},
}
"""How each kind of frame is drawn; closed, it is a node of the role of that name."""


COLUMNS = 4
"""The number of cells in a row of the legend."""
MARKS = {
    "yours": {"color": YOURS, "penwidth": "3"},
    "reference": dict(zip(("fillcolor", "fontcolor"), LOOKS["reference"][1:3])),
}
"""How nodes of the reader's own, and of exercises that are not solved yet, differ from others."""
NO_ATTRS: Mapping = MappingProxyType({})


class Node(NamedTuple):
    """`key` is the object that the node represents; `frames` go from the outermost in.

    `dots` are inputs without gradient, as (position, name, value); `mark` is "yours" or
    "reference"; `text` is the node for a terminal, in whole lines.
    """

    key: object
    label: str | CellTable
    role: str = ""
    tip: str = ""
    frames: tuple[Frame, ...] = ()
    attrs: Mapping = NO_ATTRS
    dots: tuple = ()
    mark: str = ""
    left: bool = False
    text: str = ""

    def annotate(self, note: str, **attrs) -> "Node":
        """The node with one more line, and with other attributes."""
        text = f"{self.text}  {note}" if self.text and note else self.text
        label = f"{self.label}\n{note}" if note else self.label
        return self._replace(label=label, text=text, attrs=self.attrs | attrs)


class Edge(NamedTuple):
    """A line between the nodes of two keys; a frame as `lhead` or `ltail` cuts it at its border."""

    source: object
    target: object
    tip: str | None = None
    attrs: Mapping = NO_ATTRS
    text: str = ""


class Legend(NamedTuple):
    """The end of the legend, below the roles: more cells (text, colour), and a caption.

    `text` is the picture for a terminal, if it is not the nodes' lines and the caption.
    """

    caption: str = ""
    cells: tuple = ()
    text: str | None = None


class TextLine(NamedTuple):
    """A line for a terminal alone."""

    text: str


def draw(parts: Iterable, title: str = "", **page) -> Graph:
    """Write parts as a graph; `page` are Graphviz's attributes of the whole."""
    parts = list(parts)
    nodes = [p for p in parts if isinstance(p, Node)]
    g = graph(title, **page)
    names = defaultdict(lambda: f"n{len(names)}")
    write_nodes(g, nest(nodes), names)
    for edge in (p for p in parts if isinstance(p, Edge)):
        tip = {} if edge.tip is None else {"tooltip": literal(edge.tip)}
        ends = {k: f"cluster_{names[v]}" for k, v in edge.attrs.items() if isinstance(v, Frame)}
        g.edge(names[edge.source], names[edge.target], **tip, **edge.attrs | ends)
    write_legend(g, set().union(*map(roles_of, nodes)), legend_of(parts) or Legend(), title)
    g.text = write_text(parts)
    return g


def nest(nodes) -> dict:
    """Nodes in their frames, oldest first: {frame: {…}} and {key: node}."""
    tree: dict = {}
    for each in nodes:
        branch = tree
        for frame in each.frames:
            branch = branch.setdefault(frame, {})
        branch[each.key] = each
    return tree


def write_nodes(g, tree: dict, names: dict) -> None:
    """Write frames in frames, and the nodes in them."""
    for key, inside in tree.items():
        if isinstance(inside, Node):
            write_node(g, inside, names)
            continue
        with cluster(g, names[key], key.label, key.tip, **FRAMES[key.kind]) as frame:
            write_nodes(frame, inside, names)


def write_node(g, each: Node, names: dict) -> None:
    """Write a node, and the dots beside it."""
    name, attrs = names[each.key], {**each.attrs, **MARKS.get(each.mark, {})}
    if isinstance(each.label, CellTable):
        text = f"<{each.label.write_label()}>"
        g.node(name, text, shape="plain", tooltip=literal(each.tip), **attrs)
    else:
        label = mark_label(each.label) if each.mark == "yours" else each.label
        node(g, name, label, each.role, each.tip, each.left, **attrs)
    for k, what, value in each.dots:
        dot, tip = f"{name}_{k}", literal(f"{what}: {value} (needs no gradient)")
        g.node(dot, "", shape="point", width="0.08", fillcolor=GREY, tooltip=tip)
        g.edge(dot, name, arrowsize="0.4", tooltip=what)


def mark_label(label: str) -> str:
    """The label of a node that runs the reader's own code."""
    first, *rest = label.split("\n")
    return "\n".join([f"{first} [yours]", *rest])


def roles_of(each: Node) -> set[str]:
    """The roles that a node shows in the legend."""
    if isinstance(each.label, CellTable):
        return set(each.label.roles)
    return {each.role, *filter(None, [each.mark]), *(["given"] if each.dots else [])}


def write_legend(g, roles, end: Legend, title: str = "") -> None:
    """Below the graph, the roles that occur, in the palette's order, and a line of caption."""
    looks = [look for role, look in LOOKS.items() if role in roles]
    cells = [TableCell.of(look, f"{look.glyph} {look.meaning}") for look in looks]
    cells += [TableCell(text, ink=ink) for text, ink in end.cells]
    rows = [cells[k : k + COLUMNS] for k in range(0, len(cells), COLUMNS)]
    caption = " · ".join(filter(None, [title, end.caption]))
    if caption:
        rows.append([TableCell(caption, span=min(COLUMNS, max(1, len(cells))))])
    if rows:
        table = CellTable(rows, look={"border": 0, "cellspacing": 3, "cellpadding": 2})
        g.attr(label=f"<{tag('font', table.write_label(), point_size=8)}>", labelloc="b")


def legend_of(parts) -> Legend | None:
    """The last legend among the parts."""
    return next((p for p in reversed(parts) if isinstance(p, Legend)), None)


def write_text(parts) -> str:
    """The text for a terminal: the legend's, or else all lines in order and the caption."""
    end = legend_of(parts)
    if end is not None and end.text is not None:
        return end.text
    lines = [p.text for p in parts if not isinstance(p, Legend) and p.text]
    return "\n".join([*lines, *([end.caption] if end is not None else [])])
