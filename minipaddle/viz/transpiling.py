"""The conversion of a function: source and syntax tree, before and after each converter."""

import ast
import textwrap
from collections.abc import Iterator
from itertools import count as counter
from itertools import groupby

from ..core.display import Display
from ..jit.stages import stages
from .collapse import LIMIT
from .markup import SHEET, CellTable, TableCell
from .parts import Edge, Frame, Legend, Node, draw
from .style import LOOKS, count
from .syntax_diff import GONE, KEPT, NEW, Comparison, list_field, side_by_side, small
from .syntax_diff import title as title_of
from .target import find_python, pick

WIDTH, LINES = 44, 8
"""The width and the number of lines of source in a node of the tree."""
SIDE_BY_SIDE = 80
"""Characters that fit beside the converters; longer sources are drawn below them."""
LONG = 60
"""Of a longer source only the changes are drawn."""


def transpiling(function, stage: str | None = None, *, title: str = ""):
    """How `to_static` converts a function: all converters at a glance, or one `stage` in detail.

    At a glance: the source as it is written, the list of converters with the lines each removed and
    added, and the source at the end. In detail: source and syntax tree before and after the
    converter, side by side, with what is gone, moved and new in colours; what is the same is drawn
    as one node. Raises KeyError for an unknown stage.

    >>> from minipaddle import viz
    >>> from textwrap import indent
    >>> viz.transpiling(indent).text.startswith("textwrap.indent: ")
    True
    """
    function = find_python(function)
    steps = stages(function)
    if stage is None:
        return overview(name_of(function), steps, title)
    parts = detail(name_of(function), pick({s.name: s for s in steps}, stage, "converter"), title)
    return draw(parts, title, ordering="out")


def source_diff(function, stage: str | None = None) -> "SourceDiff":
    """The source before and after all converters, or one of them, as a coloured comparison.

    >>> print(paddle.viz.source_diff(paddle.flatten, "negation"))
    minipaddle.tensor.shaping.flatten, negation: 0 lines gone, 0 new
    """
    function = find_python(function)
    steps, name = stages(function), name_of(function)
    if stage is None:
        return SourceDiff(name, steps[0].before, steps[-1].after)
    one = pick({s.name: s for s in steps}, stage, "converter")
    return SourceDiff(f"{name}, {stage}", one.before, one.after)


def name_of(function) -> str:
    return f"{function.__module__}.{function.__qualname__}".removeprefix("__main__.")


# ---- as text ---------------------------------------------------------------------------------


class SourceDiff(Display):
    """Two sources side by side in a notebook; in a terminal lines with - and +."""

    def __init__(self, name: str, before: ast.AST, after: ast.AST):
        self.name, self.rows = name, list(side_by_side(ast.unparse(before), ast.unparse(after)))

    def counts(self) -> tuple[int, int]:
        """How many lines are gone, and how many are new."""
        sides = self.side(1, GONE), self.side(2, NEW)
        return tuple(sum(word != KEPT for _, word in side) for side in sides)

    def side(self, k: int, word: str) -> list[tuple]:
        """The lines before (1) or after (2), each with `word` or KEPT."""
        rows = (row for row in self.rows if row[k] is not None)
        return [(row[k], KEPT if row[0] == KEPT else word) for row in rows]

    @property
    def text(self) -> str:
        gone, new = self.counts()
        lines = [f"{self.name}: {count(gone, 'line')} gone, {new} new"]
        for word, group in groupby(self.rows if gone or new else (), lambda row: row[0]):
            rows = list(group)
            if word == KEPT:
                lines += [f"  {a}" for _, a, _ in rows]
            else:
                lines += [f"- {a}" for _, a, _ in rows if a is not None]
                lines += [f"+ {b}" for _, _, b in rows if b is not None]
        return "\n".join(lines)

    def html(self) -> str:
        """A table with two columns; colours that white and dark pages set off."""
        rows = [[line_cell(a, w, RED, "−"), line_cell(b, w, GREEN, "+")] for w, a, b in self.rows]
        return CellTable(rows, caption=self.name).write_page()


RED, GREEN = "rgba(213,94,0,.25)", "rgba(0,158,115,.25)"


def line_cell(line: str | None, word: str, colour: str, sign: str) -> TableCell:
    changed = word != KEPT and line is not None
    text = f"{sign if changed else ' '} {line or ''}"
    return TableCell(text, colour if changed else "", align="left", code=True)


CHANGES = frozenset({GONE, NEW})


# ---- at a glance -----------------------------------------------------------------------------


def overview(name: str, found, title: str):
    """Source, converters, source."""
    steps = [(s.name, SourceDiff(s.name, s.before, s.after)) for s in found]
    changed = [(n, d.counts()) for n, d in steps if any(d.counts())]
    diff = SourceDiff(name, found[0].before, found[-1].after)
    before, after = diff.side(1, GONE), diff.side(2, NEW)
    long = sum(max(len(text) for text, _ in lines) for lines in (before, after)) > SIDE_BY_SIDE
    caption = f"{len(changed)} of {len(steps)} converters changed something"
    lines = [f"  {n}: {gone} gone, {new} new" for n, (gone, new) in changed]
    parts = [
        Node("before", card("as it is written", before), tip=name),
        Node("steps", steps_card(steps), tip="the converters, in order"),
        Node("after", card("converted", after), tip=f"{name}, converted"),
        Edge("before", "steps"),
        Edge("steps", "after"),
        Legend(caption, text="\n".join([f"{name}: {caption}", *lines, diff.text])),
    ]
    return draw(parts, title, rankdir="TB" if long else "LR", ranksep="0.3")


def card(heading: str, lines, roles=CHANGES) -> CellTable:
    """Source as a table; `lines` are pairs (text, word)."""
    rows = [[TableCell.of(TINTS[word], x, "left", code=True)] for x, word in fold(list(lines))]
    return CellTable([[TableCell(heading, align="left", bold=1)], *rows], roles, SHEET)


def fold(lines: list):
    """The changed lines of a long source, each with a line before and after."""

    def is_shown(k: int) -> bool:
        near = lines[max(0, k - 1) : k + 2]
        return len(lines) <= LONG or any(word != KEPT for _, word in near)

    for show, group in groupby(range(len(lines)), is_shown):
        inside = [lines[k] for k in group]
        yield from inside if show else [(f"⋮ {count(len(inside), 'line')}", KEPT)]


TINTS = {
    word: LOOKS[word]._replace(fill=fill, ink="#000000")
    for word, fill in ((KEPT, "#ffffff"), (GONE, "#f7cba9"), (NEW, "#b3e2d2"))
}
"""Behind a line of source: the colours of the legend, light."""


def steps_card(steps) -> CellTable:
    """The converters: those that changed something in colour."""
    rows = [[TableCell("converters", align="left", bold=1, span=2)]]
    for name, diff in steps:
        gone, new = diff.counts()
        look = LOOKS[NEW] if gone or new else TINTS[KEPT]._replace(ink="#9d9d9d")
        lines = f"−{gone} +{new}" if gone or new else "·"
        rows.append([TableCell.of(look, name, "left"), TableCell.of(look, lines, "right")])
    return CellTable(rows, CHANGES, SHEET)


# ---- one stage -------------------------------------------------------------------------------


def detail(name: str, stage, title: str) -> Iterator:
    """Source and tree before and after one converter."""
    diff = SourceDiff(f"{name}, {stage.name}", stage.before, stage.after)
    comparison, numbers = Comparison(stage.before, stage.after), counter()
    sides = (("before", stage.before, GONE), ("after", stage.after, NEW))
    for k, (side, tree, word) in enumerate(sides, 1):
        frame = Frame(f"{side} {stage.name}", diff.name)
        shown = card("source", diff.side(k, word), frozenset())
        yield Node(frame.label, shown, tip=f"source {side}", frames=(frame,))
        yield from syntax_tree(tree.body[0], frame, comparison, numbers)
        yield Edge(frame.label, tree.body[0], attrs={"style": "invis"})
    yield Legend(diff.text.splitlines()[0], text=diff.text)


def syntax_tree(tree, frame: Frame, comparison: Comparison, numbers) -> Iterator:
    """A node and the nodes below it; a subtree without differences is one node."""
    word = comparison.marks[id(tree)]
    whole = next(numbers) >= LIMIT or comparison.whole(tree)
    text = f"{title_of(tree)}\n{excerpt(tree)}" if whole else title_of(tree)
    tip = title_of(tree) if small(tree) else f"{title_of(tree)}, {LOOKS[word].meaning}"
    yield Node(tree, text, word, tip, (frame,), left=text.count("\n") > 1)
    fields = {f: [x for x in list_field(tree, f) if not small(x)] for f in tree._fields}
    fields = {f: children for f, children in fields.items() if children and not whole}
    for field, children in fields.items():
        label = {"label": f" {field}"} if len(fields) > 1 else {}
        for child in children:
            yield from syntax_tree(child, frame, comparison, numbers)
            yield Edge(tree, child, field, label)


def excerpt(tree) -> str:
    """The first lines of the source of a node."""
    lines = [textwrap.shorten(line, WIDTH, placeholder="…") if len(line) > WIDTH else line
             for line in ast.unparse(tree).splitlines()]  # fmt: skip
    return "\n".join(lines[:LINES] + ["…"] * (len(lines) > LINES))
