"""Large graphs of records: frames are closed, then the oldest part is left out, until it fits."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby, takewhile

from ..engine.core import slots
from .parts import Edge, Frame, Node, draw, write_text
from .style import count

LIMIT = 150
"""Beyond this many nodes, frames are drawn closed; if that is not enough, only the newest part."""
PAGE = 60
"""The same for a training step, whose nodes have many lines: more is too wide for a page."""
OLDER = "older"


def draw_records(
    parts, title: str = "", depth: int | None = None, close=None, most: int = LIMIT, **page
):  # fmt: skip
    """Draw parts whose nodes represent records; `depth`, `close` and `most` as in `Collapse`."""
    parts = list(parts)
    fold = Collapse((p for p in parts if isinstance(p, Node)), depth, close, most)
    g = draw(fold.parts(parts), title, **page)
    g.text = write_text(parts)  # of all records
    return g


class Collapse:
    """The node drawn for each record (`units`): its own, its closed frame, or OLDER.

    `depth` is how many levels of frames are open, by default as many frames as `most` nodes allow.
    `close(records)` is the addition to a closed frame: (to its label, to its tip, attributes).
    """

    def __init__(self, nodes, depth: int | None = None, close=None, most: int = LIMIT):
        marked = marks()
        self.nodes = [n._replace(mark=marked.get(n.key.op.name, "")) for n in nodes]
        self.close, self.most = close or (lambda records: ("", "", {})), most
        self.open = (
            self.find_open() if depth is None else {f for n in self.nodes for f in n.frames[:depth]}
        )
        self.units = {n.key: self.unit(n) for n in self.nodes}
        self.hidden = self.hide_older() if depth is None else 0

    def unit(self, node: Node):
        """The key of the node, or the outermost closed frame around it."""
        return next((f for f in node.frames if f not in self.open), node.key)

    def find_open(self) -> set[Frame]:
        """The frames that are open: the outer ones first, of one level the small ones first and
        those of one size together, as long as what is drawn stays within the most nodes. Updates
        are alike: they stay closed.
        """
        shown, drawn, level = set(), by_unit(self.nodes, 0), 0
        size = len(drawn)
        while closed := [f for f in drawn if isinstance(f, Frame) and f.kind != "update"]:
            level, inner = level + 1, {}
            counts = {frame: len(drawn[frame]) for frame in closed}
            for _, alike in groupby(sorted(closed, key=counts.get), counts.get):
                frames = [*alike]
                within = by_unit([n for f in frames for n in drawn[f]], level)
                dots = sum(
                    len(n.dots) for inside in within.values() for n in inside if n.key in within
                )
                if size + len(within) - len(frames) + dots <= self.most:
                    size += len(within) - len(frames) + dots
                    shown |= {*frames}
                    inner |= within
            drawn = inner
        return shown

    def hide_older(self) -> int:
        """Let OLDER replace all but the newest units; returns how many records it hides."""
        cost = {}
        for n in reversed(self.nodes):
            unit = self.units[n.key]
            cost.setdefault(unit, 1 + (len(n.dots) if unit is n.key else 0))
        if sum(cost.values()) <= self.most:
            return 0
        totals = zip(cost, accumulate(cost.values()))
        newest = {unit for unit, total in totals if total < self.most}
        old = [key for key, unit in self.units.items() if unit not in newest]
        self.units.update(dict.fromkeys(old, OLDER))
        return len(old)

    def parts(self, parts) -> Iterator:
        """The parts that are drawn: one node for each unit, edges between units."""
        members: dict = {}
        for n in self.nodes:
            members.setdefault(self.units[n.key], []).append(n)
        for unit, inside in members.items():
            yield self.node(unit, inside)
        yield from self.edges(p for p in parts if isinstance(p, Edge))
        yield from (p for p in parts if not isinstance(p, Node | Edge))

    def node(self, shown, inside: list[Node]) -> Node:
        if shown is OLDER:
            tip = f"{count(self.hidden, 'older record')}; depth=1 (or more) draws everything"
            return Node(OLDER, f"… {self.hidden:,} more\n(older)", "more", tip)
        return self.close_frame(shown, inside) if isinstance(shown, Frame) else inside[0]

    def close_frame(self, frame: Frame, inside: list[Node]) -> Node:
        """One node for everything in a frame."""
        records = [n.key for n in inside]
        size = count(sum(bool(r.inputs) for r in records), "record")
        label, tip, attrs = self.close(records)
        level = inside[0].frames.index(frame)
        tip = f"{size}: open with depth={level + 1}{tip}"
        place = inside[0].frames[:level]
        return Node(frame, f"{frame.label}\n{size}{label}", frame.kind, tip, place, attrs)

    def edges(self, edges) -> Iterator[Edge]:
        """Each edge between two records; of those at a closed frame or OLDER one of each pair."""
        seen = set()
        for edge in edges:
            ends = source, target = self.units[edge.source], self.units[edge.target]
            kind = *ends, edge.attrs.get("style")
            own = {"ltail": source is edge.source, "lhead": target is edge.target}
            if source is not target and (all(own.values()) or kind not in seen):
                attrs = {k: v for k, v in edge.attrs.items() if own.get(k, True)}
                yield edge._replace(source=source, target=target, attrs=attrs)
            seen.add(kind)


def by_unit(nodes, level: int) -> dict:
    """Nodes by their frame at a level, or by their own key if they stand in none there."""
    units: dict = {}
    for n in nodes:
        units.setdefault(n.frames[level] if len(n.frames) > level else n.key, []).append(n)
    return units


def marks() -> dict[str, str]:
    """The mark of each operator with a rule that the reader plugged in, or is to write."""
    marked = dict.fromkeys(reference(), "reference") | dict.fromkeys(slots.yours(), "yours")
    return {name.split(".")[1]: mark for name, mark in marked.items() if name.startswith("ops.")}


_reserved: frozenset[str] = frozenset()


def reference() -> frozenset[str]:
    """The slots that the reader has yet to fill (see `reserve`); the reference runs."""
    return _reserved


@contextmanager
def reserve(names):
    """Within the block the named slots count as exercises that are not solved yet."""
    global _reserved
    before, _reserved = _reserved, frozenset(names)
    try:
        yield
    finally:
        _reserved = before


def common(a: tuple, b: tuple) -> tuple:
    """The common beginning of two paths."""
    return tuple(x for x, _ in takewhile(lambda pair: pair[0] is pair[1], zip(a, b)))
