"""A model as a tree of layers, with the parameters and buffers of each."""

import math
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from ..engine.core.errors import type_error
from ..nn.layer.layers import Layer
from .collapse import LIMIT
from .markup import CellTable, TableCell
from .parts import Edge, Legend, Node, draw
from .style import LOOKS, count


def module(layer, depth: int | None = None, title: str = ""):
    """The tree of layers below `layer`: parameters (trainable or frozen), buffers, counts.

    `depth` says how many levels are open, by default as many as fit in 150 nodes. A layer that
    stands in several places is drawn once, and counted once.

    >>> from minipaddle import viz
    >>> print(viz.module(paddle.nn.Sequential(paddle.nn.Linear(2, 3))).text)
    Sequential: 9 parameters
      0 (Linear): 9 parameters
        weight [2, 3]  6
        bias [3]  3
    2 layers; 9 parameters, 9 of them trainable
    """
    if not isinstance(layer, Layer):
        raise type_error(f"module() of {type(layer).__name__}", expected="a paddle.nn.Layer")
    return draw_tree(layer, depth, Counts(), title)


class Counts:
    """The notes of the tree on layers and parameters: how many numbers they hold."""

    cells: tuple | list = ()
    """More cells of the legend, as pairs (text, colour)."""

    def part(self, part) -> str:
        """After a parameter's name and shape."""
        return f"{part.size:,}"

    def layer(self, layer) -> str:
        """Below a layer's name."""
        return count(sum(p.size for p in layer.parameters()), "parameter")

    def tip(self, layer) -> list[str]:
        """More lines of the tooltip of an open layer."""
        return []

    def edge(self, layer) -> dict:
        """Attributes of the line that leads to a layer."""
        return {}

    def caption(self, layer) -> str:
        parameters = layer.parameters()
        trainable = sum(p.size for p in parameters if p.trainable)
        layers = count(len(layer.sublayers(include_self=True)), "layer")
        total = count(sum(p.size for p in parameters), "parameter")
        return f"{layers}; {total}, {trainable:,} of them trainable"


def draw_tree(layer, depth: int | None, notes: Counts, title: str):
    """The tree of layers, with the `notes` on each."""
    room = LIMIT if depth is None else math.inf
    tree = LayerTree(notes, find_depth(layer) if depth is None else depth, room)
    return draw(tree.parts(layer), title, rankdir="LR", ranksep="0.4", nodesep="0.1")


def find_depth(layer) -> int:
    """The most open levels that fit in LIMIT nodes."""
    level, seen, depth = [layer], {layer}, 0
    while level:
        level = [c for parent in level for c in parent.children() if c not in seen]
        seen.update(level)
        if len(seen) > LIMIT:
            return max(depth, 1)
        depth += 1
    return depth


class LayerTree(NamedTuple):
    """Layers as tables, and lines between them; `depth` levels are open, `room` nodes at most."""

    notes: Counts
    depth: int
    room: float

    def parts(self, layer) -> Iterator:
        yield from self.list_below(type(layer).__name__, layer, 0, set())
        yield Legend(self.notes.caption(layer), self.notes.cells)

    def list_below(self, label: str, layer, level: int, seen: set) -> Iterator:
        """A layer, and the open layers below it."""
        seen.add(layer)
        children = list(layer.named_children())
        closed = bool(children) and level >= self.depth
        yield self.table(label, layer, level, closed)
        margin = "  " * (level + 1)
        for name, child in () if closed else children:
            if child in seen:
                text = f"{margin}{name}: shared, see above"
                yield Edge(layer, child, f"{name}: shared", {"style": "dashed"}, text)
            elif len(seen) >= self.room - 1 and child is not children[-1][1]:
                more = f"… {sum(child not in seen for _, child in children):,} more"
                tip = f"depth={self.depth} draws them all"
                yield Node((layer, "more"), more, "more", tip, text=margin + more)
                yield Edge(layer, (layer, "more"))
                break
            else:
                label = f"{name} ({type(child).__name__})"
                yield from self.list_below(label, child, level + 1, seen)
                yield Edge(layer, child, attrs=self.notes.edge(child))

    def table(self, label: str, layer, level: int, closed: bool) -> Node:
        """A layer as a table: its name, the notes on it, its parameters and buffers."""
        rows = [] if closed else list(self.rows(layer))
        head = self.head(layer, closed)
        glyph = f"{LOOKS['layer'].glyph} " if closed else ""
        name = "\n".join(filter(None, [glyph + label, head]))
        cells = [TableCell.of(LOOKS["layer"], name, "center", bold=1)]
        cells += [TableCell.of(LOOKS[role], text, "left") for role, text in rows]
        tip = [f"{type(layer).__name__}({layer.extra_repr()})", *(text for _, text in rows)]
        tip += [f"open with depth={self.depth + 1}"] if closed else self.notes.tip(layer)
        lines = [f"{label}: {head}", *(f"  {text}" for _, text in rows)]
        label = CellTable([[c] for c in cells], frozenset({"layer", *(role for role, _ in rows)}))
        text = textwrap.indent("\n".join(lines), "  " * level)
        return Node(layer, label, tip="\n".join(tip), attrs={"style": ""}, text=text)

    def rows(self, layer) -> Iterator[tuple[str, str]]:
        """Pairs (role, text), one for each parameter and buffer of the layer's own."""
        for name, part in layer._parameters.items():
            if part is not None:
                note = "" if part.trainable else "  frozen"
                text = f"{name} {part.shape}  {self.notes.part(part)}{note}"
                yield "parameter" if part.trainable else "frozen", text
        for name, part in layer._buffers.items():
            if part is not None:
                yield "frozen", f"{name} {part.shape}  buffer"

    def head(self, layer, closed: bool) -> str:
        inside = count(len(layer.sublayers()), "layer") + " inside" if closed else ""
        return ", ".join(filter(None, [inside, self.notes.layer(layer)]))
