"""The effect of the passes on a program: a table of them all, and one of them as a picture."""

from ..core.display import Display
from ..engine.passes.manager import Optimized, figures
from .difference import difference
from .markup import CellTable, TableCell, write_call, write_fact, write_words
from .style import GREY
from .target import explorer_call, passes_result_of, pick

HEAD = ("pass", "records", "kernels", "moved", "live", "ms")
BAR = "rgba(0,114,178,.35)"


def passes(target) -> "Passes":
    """The passes of a program as a table: records, kernels, bytes moved and held after each.

    `target` is a program, a static function that was called, an executable, or the result of
    `passes.manager.optimized`. One pass by its name (`viz.passes(f)["cse"]`) is a picture
    of its changes: see `viz.difference`.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return x.exp() * x.exp()
    >>> y = f(paddle.ones([3]))
    >>> print(viz.passes(f)["cse"].text)
    cse: 1 record gone, 0 new
    - v2 = exp(x) : float32[3]
    """
    return Passes(passes_result_of(target), explorer_call(target))


class Passes(Display):
    """A table in a notebook, the report as text; an item is a pass."""

    def __init__(self, done: Optimized, call: str = ""):
        self.done, self.text, self.call = done, done.report(), call

    def __getitem__(self, name: str):
        """The changes of a pass; of several of that name the first that changed anything."""
        snapshots = self.done.snapshots[::-1]
        named = {s.name: s for s in snapshots} | {s.name: s for s in snapshots if s.changed}
        chosen = pick(named, name, "pass")
        return difference(chosen.before, chosen.after, title=name)

    def rows(self) -> list[tuple]:
        """(name, figures, seconds) of the program before, and of each pass that changed it."""
        snapshots = self.done.snapshots
        rows = [("before", figures(s.before), None) for s in snapshots[:1]]
        return rows + [(s.name, figures(s.after), s.seconds) for s in snapshots if s.changed]

    def html(self) -> str:
        """The table, with a bar behind each number: its share of the largest one."""
        rows = self.rows()
        most = [max((row[1][k] or 0 for row in rows), default=0) or 1 for k in range(4)]
        cells = []
        for name, values, seconds in rows:
            shares = ((n or 0) / top for n, top in zip(values, most, strict=True))
            pairs = zip(values.texts(), shares)
            bars = [TableCell(text, BAR, align="right", share=share) for text, share in pairs]
            time = "" if seconds is None else f"{seconds * 1e3:.1f}"
            cells.append([TableCell(name), *bars, TableCell(time, align="right")])
        same = [s.name for s in self.done.snapshots if not s.changed]
        note = write_words(f"nothing to do: {', '.join(same)}" if same else "", color=GREY)
        table = CellTable(cells, head=HEAD).write_page()
        return table + write_fact("", note) + write_call(self.call)
