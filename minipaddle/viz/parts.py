"""The parts that every graph is made of, and the two writers of graphs.

A picture is a generator of parts: nodes (each knows the frames it stands in), edges and a legend.
`draw` writes them as DOT and as text.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from .engine import Graph
from .style import LOOKS, YOURS, cluster, dot, graph, legend, literal, mark_label, node


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
    "region": {"color": "#cc79a7", "penwidth": "1.5"},
}
"""How each kind of frame is drawn; closed, it is a node of the role of that name."""


NO_ATTRS: Mapping = MappingProxyType({})


class Table(NamedTuple):
    """A label in Graphviz's HTML; `roles` are those that its cells play."""

    html: str
    roles: frozenset[str]


class Node(NamedTuple):
    """`key` is the object that the node represents; `frames` go from the outermost in.

    `dots` are inputs without gradient, as (position, name, value); `mark` is "yours" or
    "reference"; `text` is the node for a terminal, in whole lines.
    """

    key: object
    label: str | Table
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


class Text(NamedTuple):
    """A line for a terminal alone."""

    text: str


def draw(parts: Iterable, title: str = "", **page) -> Graph:
    """Write parts as a graph; `page` are Graphviz's attributes of the whole."""
    parts = list(parts)
    nodes = [p for p in parts if isinstance(p, Node)]
    below = legend_of(parts) or Legend()
    g = graph(title, **page)
    names = defaultdict(lambda: f"n{len(names)}")
    write_nodes(g, nested(nodes), names)
    for edge in (p for p in parts if isinstance(p, Edge)):
        tip = {} if edge.tip is None else {"tooltip": literal(edge.tip)}
        attrs = {
            k: f"cluster_{names[v]}" if isinstance(v, Frame) else v for k, v in edge.attrs.items()
        }
        g.edge(names[edge.source], names[edge.target], **tip, **attrs)
    legend(g, set().union(*map(roles_of, nodes)), below.caption, below.cells, title)
    g.text = write_text(parts)
    return g


def nested(nodes) -> dict:
    """Nodes in their frames, oldest first: {frame: {…}} and {key: node}."""
    tree: dict = {}
    for each in nodes:
        place = tree
        for frame in each.frames:
            place = place.setdefault(frame, {})
        place[each.key] = each
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
    name, label, attrs = names[each.key], each.label, each.attrs
    if isinstance(label, Table):
        g.node(name, f"<{label.html}>", shape="plain", tooltip=literal(each.tip), **attrs)
        return
    if each.mark == "yours":
        label, attrs = mark_label(label), attrs | {"color": YOURS, "penwidth": "3"}
    elif each.mark == "reference":  # an exercise that is not solved yet
        look = LOOKS["reference"]
        attrs = attrs | {"fillcolor": look.fill, "fontcolor": look.ink}
    node(g, name, label, each.role, each.tip, each.left, **attrs)
    for k, what, value in each.dots:
        dot(g, f"{name}_{k}", f"{what}: {value} (needs no gradient)")
        g.edge(f"{name}_{k}", name, arrowsize="0.4", tooltip=what)


def roles_of(each: Node) -> set[str]:
    """The roles that a node shows in the legend."""
    if isinstance(each.label, Table):
        return set(each.label.roles)
    return {each.role, *filter(None, [each.mark]), *(["given"] if each.dots else [])}


def write_text(parts) -> str:
    """The text for a terminal: that of the legend, or else all lines in order and the caption."""
    end = legend_of(parts)
    if end is not None and end.text is not None:
        return end.text
    lines = [p.text for p in parts if not isinstance(p, Legend) and p.text]
    return "\n".join([*lines, *([end.caption] if end is not None else [])])


def legend_of(parts) -> Legend | None:
    """The last legend among the parts."""
    return next((p for p in reversed(parts) if isinstance(p, Legend)), None)
