"""Records as a graph of nested frames: what a tape's picture and a program's have in common."""

from __future__ import annotations

from itertools import accumulate

from ..engine.core import slots
from ..engine.core.record import Record
from .style import cluster, count, faded, graph, legend, marked, node

LIMIT = 150
"""Beyond this many nodes, frames are drawn closed, and of what is left the newest part."""
OLDER = "older"


class RecordDrawing:
    """Decides which node stands for each record, then writes nested frames, nodes and edges.

    `paths` says in which frames a record stands, outermost first: the layers that were called, or
    the branches of a `cond`. A unit is what is drawn as one node: a record, a closed frame, OLDER.
    """

    def __init__(self, records, results, paths: dict, depth: int | None = None):
        self.records, self.results, self.paths = records, results, paths
        self.yours = operators(slots.yours())
        self.reference = operators(slots.reference()) - self.yours
        self.depth = self.fitting_depth() if depth is None else depth
        self.units = {r: unit(r, self.paths[r], self.depth) for r in self.records}
        self.hidden = self.too_old() if depth is None else 0
        self.names, self.roles = {}, set()

    def fitting_depth(self) -> int:
        """The most open levels that fit in LIMIT nodes; 0 if none does."""
        deepest = max(map(len, self.paths.values()), default=0)
        for depth in range(deepest, 0, -1):
            units = {r: unit(r, self.paths[r], depth) for r in self.records}
            beside = sum(self.beside(r) for r, shown in units.items() if shown is r)
            if len(set(map(key, units.values()))) + beside <= LIMIT:
                return depth
        return 0

    def too_old(self) -> int:
        """Let OLDER stand for all but the newest units; how many records it hides."""
        cost = {}
        for r in reversed(self.records):
            beside = self.beside(r) if self.units[r] is r else 0
            cost.setdefault(key(self.units[r]), 1 + beside)
        if sum(cost.values()) <= LIMIT:
            return 0
        totals = zip(cost, accumulate(cost.values()))
        kept = {unit for unit, total in totals if total < LIMIT}
        old = [r for r in self.records if key(self.units[r]) not in kept]
        self.units.update(dict.fromkeys(old, OLDER))
        return len(old)

    # ---- writing -----------------------------------------------------------------------------

    def draw(self, title: str = "", **attrs):
        g = graph(title, **attrs)
        self.write(g, self.tree())
        self.write_edges(g)
        legend(g, self.roles, self.caption(), self.more_legend(), title)
        g.text = self.text()
        return g

    def tree(self) -> dict:
        """Nested by frame: {key: (frame, subtree) | (unit, its records)}, oldest first."""
        tree = {}
        for r in self.records:
            place, shown = tree, self.units[r]
            if shown is not OLDER:
                for frame in self.paths[r][: self.depth]:
                    place = place.setdefault(key(frame), (frame, {}))[1]
            place.setdefault(key(shown), (shown, []))[1].append(r)
        return tree

    def write(self, g, tree) -> None:
        for shown, inside in tree.values():
            if isinstance(inside, dict):
                said, attrs = self.frame_text(shown), self.frame_attrs(shown)
                with cluster(g, self.name(shown), *said, **attrs) as frame:
                    self.write(frame, inside)
            elif shown is OLDER:
                self.write_older(g)
            elif isinstance(shown, Record):
                self.write_record(g, shown)
            else:
                self.write_closed(g, shown, inside)

    def write_older(self, g) -> None:
        self.roles.add("more")
        tip = f"{count(self.hidden, 'older record')}; depth=1 (or more) draws everything"
        node(g, self.name(OLDER), f"… {self.hidden:,} more\n(older)", "more", tip)

    def write_closed(self, g, frame, records) -> None:
        """One node for all that stands in a frame."""
        role = self.closed_role(frame)
        self.roles.add(role)
        made = count(sum(bool(r.inputs) for r in records), "record")
        tip = f"{made}: open with depth={self.depth + 1}{self.closed_tip(records)}"
        extra, attrs = self.closed_extra(frame, records)
        label = f"{self.frame_text(frame)[0]}\n{made}{extra}"
        node(g, self.name(frame), label, role, tip, **attrs)

    def write_record(self, g, record) -> None:
        role, label, tip, attrs = self.look(record)
        self.roles.add(role)
        if record.op.name in self.yours:
            self.roles.add("yours")
            label, attrs = marked(attrs, label)
        elif record.op.name in self.reference:
            self.roles.add("reference")
            attrs = faded(attrs)
        node(g, self.name(record), label, role, tip, **attrs)

    def write_edges(self, g) -> None:
        """Each edge between two records; of those at a closed frame or OLDER one of each pair."""
        seen = set()
        for a, b, attrs in self.edges():
            ends = self.units[a], self.units[b]
            if ends[0] is ends[1]:
                continue
            pair = self.name(ends[0]), self.name(ends[1])
            if ends == (a, b) or (*pair, attrs.get("style")) not in seen:
                g.edge(*pair, **attrs)
            seen.add((*pair, attrs.get("style")))

    def name(self, shown) -> str:
        return self.names.setdefault(key(shown), f"n{len(self.names)}")

    # ---- what a picture must say -------------------------------------------------------------

    def look(self, record) -> tuple[str, str, str, dict]:
        """The role of a record's node, its label, its tooltip, and further attributes."""
        raise NotImplementedError

    def edges(self):
        """(record, record, attributes) for each value that goes from one to the other."""
        raise NotImplementedError

    def frame_text(self, frame) -> tuple[str, str]:
        """The label of a frame, and its tooltip."""
        raise NotImplementedError

    def caption(self) -> str:
        raise NotImplementedError

    def text(self) -> str:
        raise NotImplementedError

    # ---- what it may add ---------------------------------------------------------------------

    def beside(self, record) -> int:
        """How many small nodes stand beside a record's own."""
        return 0

    def frame_attrs(self, frame) -> dict:
        """Attributes of an open frame."""
        return {}

    def closed_role(self, frame) -> str:
        return "layer"

    def closed_tip(self, records) -> str:
        return ""

    def closed_extra(self, frame, records) -> tuple[str, dict]:
        """More text for the label of a closed frame, and attributes of its node."""
        return "", {}

    def more_legend(self) -> list:
        """More cells of the legend, as pairs (text, colour)."""
        return []


def operators(names) -> set[str]:
    """The operators whose rules are among the slots named."""
    return {name.split(".")[1] for name in names if name.startswith("ops.")}


def key(shown):
    """Frames compare by identity: each is one call. Records and OLDER stand for themselves."""
    return id(shown) if isinstance(shown, tuple) else shown


def unit(record, path, depth: int):
    """The record itself, or the closed frame that hides it."""
    return path[depth] if len(path) > depth else record


def common(a, b) -> tuple:
    """The part two paths begin with."""
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return a[:n]
