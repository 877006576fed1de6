"""Reads drawn SVG back: the nodes, edges and frames that are really there."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"


class Part(NamedTuple):
    """A node, an edge or a frame: its text, its tooltip, and what draws it."""

    name: str
    text: str
    tip: str
    element: ElementTree.Element

    def attribute(self, name):
        """Of the first shape that has it."""
        return next((e.get(name) for e in self.element.iter() if e.get(name)), None)


class Drawing:
    """What stands in a graph once it is drawn."""

    def __init__(self, graph):
        root = ElementTree.fromstring(graph.svg())
        parts = {}
        for g in root.iter(f"{SVG}g"):
            kind = g.get("class")
            name = g.findtext(f"{SVG}title") or ""
            text = "\n".join(
                "".join(t.itertext()).replace("\xa0", " ") for t in g.iter(f"{SVG}text")
            )
            tip = next((a.get(TITLE) for a in g.iter() if a.get(TITLE)), "")
            parts.setdefault(kind, []).append(Part(name, text, tip, g))
        self.nodes, self.edges, self.frames = (
            parts.get(kind, []) for kind in ("node", "edge", "cluster")
        )
        self.caption = parts["graph"][0].text

    def node(self, start: str) -> Part:
        """The one node whose text starts so."""
        (found,) = [n for n in self.nodes if n.text.startswith(start)]
        return found

    def arrows(self):
        """Edges as pairs of the first lines of their ends, sorted; "" is a dot."""
        texts = {n.name: n.text.split("\n")[0] for n in self.nodes}
        pairs = (e.name.split("->") for e in self.edges)
        return sorted((texts[a], texts[b]) for a, b in pairs)
