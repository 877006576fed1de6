"""A model as a tree of layers, with what each of them holds."""

from __future__ import annotations

import html
import math

from ..engine.core.errors import teach
from ..nn.layer.layers import Layer
from .drawing import LIMIT
from .style import GREY, LOOKS, count, graph, legend, literal, node


def module(layer, depth: int | None = None, title: str = ""):
    """The tree of layers below `layer`: parameters (trainable or frozen), buffers, counts.

    `depth` says how many levels are open, by default as many as fit in 150 nodes. A layer that
    stands in several places is drawn once, and counted once.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> print(viz.module(paddle.nn.Sequential(paddle.nn.Linear(2, 3))).text)
    Sequential: 9 parameters
      0 (Linear): 9 parameters
        weight [2, 3]  6
        bias [3]  3
    2 layers; 9 parameters, 9 of them trainable
    """
    if not isinstance(layer, Layer):
        raise TypeError(teach(f"module() of {type(layer).__name__}", expected="a paddle.nn.Layer"))
    return ModuleDrawing(layer, depth).draw(title)


class ModuleDrawing:
    """Decides which layers are open, then writes a table for each and lines between them."""

    def __init__(self, layer, depth: int | None = None):
        self.layer = layer
        self.names, self.roles = {}, set()
        self.room = LIMIT if depth is None else math.inf
        self.depth = self.fitting_depth() if depth is None else depth

    def fitting_depth(self) -> int:
        """The most open levels that fit in LIMIT nodes."""
        level, seen, depth = [self.layer], {self.layer}, 0
        while level:
            level = [c for parent in level for c in parent.children() if c not in seen]
            seen.update(level)
            if len(seen) > LIMIT:
                return max(depth, 1)
            depth += 1
        return depth

    def draw(self, title: str = ""):
        g, lines = graph(title, rankdir="LR", ranksep="0.4", nodesep="0.1"), []
        self.write(g, lines, type(self.layer).__name__, self.layer, 0)
        legend(g, self.roles, self.caption(), self.more_legend(), title)
        g.text = "\n".join([*lines, self.caption()])
        return g

    def write(self, g, lines, label: str, layer, level: int) -> str:
        """Write `layer` and what is open below it; the name of its node."""
        name = self.names[layer] = f"n{len(self.names)}"
        children = list(layer.named_children())
        closed = bool(children) and level >= self.depth
        lines.append(f"{'  ' * level}{label}: {self.head_text(layer, closed)}")
        rows = [] if closed else list(self.rows(layer))
        lines += [f"{'  ' * level}  {text}" for _, text in rows]
        self.write_table(g, name, label, layer, closed, rows)
        for child_name, child in () if closed else children:
            if child in self.names:
                g.edge(name, self.names[child], style="dashed", tooltip=f"{child_name}: shared")
                lines.append(f"{'  ' * level}  {child_name}: shared, see above")
            elif len(self.names) >= self.room - 1 and child is not children[-1][1]:
                self.write_more(g, name, lines, level, children)
                break
            else:
                child_label = f"{child_name} ({type(child).__name__})"
                to = self.write(g, lines, child_label, child, level + 1)
                g.edge(name, to, **self.edge_attrs(child))
        return name

    def write_more(self, g, parent: str, lines, level: int, children) -> None:
        """One node for the children there is no room for."""
        self.roles.add("more")
        left = sum(child not in self.names for _, child in children)
        text = f"… {left:,} more"
        node(g, f"{parent}_more", text, "more", f"depth={self.depth} draws them all")
        g.edge(parent, f"{parent}_more")
        lines.append(f"{'  ' * level}  {text}")

    def write_table(self, g, name, label, layer, closed: bool, rows) -> None:
        self.roles |= {"layer"} | {role for role, _ in rows}
        look = LOOKS["layer"]
        mark = f"{look.glyph} " if closed else ""
        head = [f"<B>{mark}{html.escape(label)}</B>", html.escape(self.head_text(layer, closed))]
        cells = [cell(look, "<BR/>".join(part for part in head if part), "CENTER")]
        cells += [cell(LOOKS[role], html.escape(text), "LEFT") for role, text in rows]
        table = "".join(cells)
        tip = [f"{type(layer).__name__}({layer.extra_repr()})", *(text for _, text in rows)]
        tip += [f"open with depth={self.depth + 1}"] if closed else self.exact(layer)
        g.node(
            name,
            f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="3" COLOR="{GREY}">'
            f"{table}</TABLE>>",
            shape="plain",
            style="",
            tooltip=literal("\n".join(tip)),
        )

    def rows(self, layer):
        """Pairs (role, text), one for each parameter and buffer of the layer's own."""
        for name, part in layer._parameters.items():
            if part is not None:
                note = "" if part.trainable else "  frozen"
                text = f"{name} {part.shape}  {self.part_note(part)}{note}"
                yield "parameter" if part.trainable else "frozen", text
        for name, part in layer._buffers.items():
            if part is not None:
                yield "frozen", f"{name} {part.shape}  buffer"

    def head_text(self, layer, closed: bool) -> str:
        below = len(layer.sublayers())
        parts = [count(below, "layer") + " inside"] if closed else []
        note = self.layer_note(layer)
        return ", ".join([*parts, *([note] if note else [])])

    # ---- what a subclass may say otherwise ---------------------------------------------------

    def part_note(self, part) -> str:
        """What is said of a parameter after its name and shape."""
        return f"{part.size:,}"

    def exact(self, layer) -> list[str]:
        """More lines of the tooltip of an open layer."""
        return []

    def layer_note(self, layer) -> str:
        """What is said of a layer below its name."""
        return count(sum(p.size for p in layer.parameters()), "parameter")

    def edge_attrs(self, layer) -> dict:
        """Attributes of the line that leads to a layer."""
        return {}

    def caption(self) -> str:
        parameters = self.layer.parameters()
        trainable = sum(p.size for p in parameters if p.trainable)
        layers = count(len(self.layer.sublayers(include_self=True)), "layer")
        total = count(sum(p.size for p in parameters), "parameter")
        return f"{layers}; {total}, {trainable:,} of them trainable"

    def more_legend(self) -> list:
        """More cells of the legend, as pairs (text, colour)."""
        return []


def cell(look, inner: str, align: str) -> str:
    """One row of a table in a role's colours."""
    return (
        f'<TR><TD BGCOLOR="{look.fill}" ALIGN="{align}">'
        f'<FONT COLOR="{look.ink}">{inner}</FONT></TD></TR>'
    )
