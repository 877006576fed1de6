"""Charts: panels of bars and lines, drawn by matplotlib.

A picture says what stands where; this file is the one that knows matplotlib, `chart_svg` writes the
same parts without it.
"""

import io
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ..core.display import Display
from .chart_svg import AT, write_svg
from .parts import NO_ATTRS


class Picture(Display):
    """A chart: PNG in a notebook, text elsewhere, and to files by suffix."""

    def __init__(self, page: "ChartPage", text: str):
        self.page, self.text = page, text

    @cached_property
    def figure(self):
        """The chart as a figure of matplotlib."""
        return self.page.draw()

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.png, .svg, .pdf) says the format."""
        path = Path(path)
        # without the date of drawing the same picture is the same file
        date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
        self.figure.savefig(path, bbox_inches="tight", metadata=date)
        return path

    def png(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png", bbox_inches="tight")
        return out.getvalue()

    def svg(self) -> str:
        """The chart as a small `<svg>` element, in the ink of the page."""
        return write_svg(self.page)

    def rich(self) -> dict:
        return {"image/png": self.png()}


class Bar(NamedTuple):
    """A rectangle; its text is in the "middle", at the "start" or "end", or "before" it.

    `sets`: {name: label} of a movable picture's positions that a press on the rectangle chooses
    """

    x: float
    y: float
    wide: float
    high: float
    colour: str
    text: str = ""
    at: str = "middle"
    ink: str = "black"
    look: Mapping = NO_ATTRS
    sets: Mapping = NO_ATTRS

    @classmethod
    def in_row(cls, row: float, x: float, wide: float, colour: str, *text, high=0.8, **look):
        """A bar of a row; rows are counted from above."""
        return cls(x, row - high / 2, wide, high, colour, *text, look=look)


class PolyLine(NamedTuple):
    """A line through points; `look` are matplotlib's attributes of it."""

    x: Iterable
    y: Iterable
    colour: str
    look: Mapping = NO_ATTRS


class Panel(NamedTuple):
    """Bars, lines over them, and the names of the rows; `axes` are arguments of `Axes.set`."""

    bars: Iterable[Bar] = ()
    title: str = ""
    rows: Iterable[str] | int | None = None
    """Their names, how many there are, or None where the left side has numbers."""
    lines: Iterable[PolyLine] = ()
    axes: Mapping = NO_ATTRS

    def draw(self, axis) -> None:
        for bar in self.bars:
            draw_bar(axis, bar)
        for line in self.lines:
            axis.plot(line.x, line.y, color=line.colour, **line.look)
        axis.autoscale_view()
        axis.grid(axis="both" if self.rows is None else "x", color="#e4e4e4", linewidth=0.6)
        axis.set_axisbelow(True)
        if self.rows is not None:
            rows = [""] * self.rows if isinstance(self.rows, int) else list(self.rows)
            axis.set_yticks(range(len(rows)), rows, fontsize=8)
            axis.set_ylim((len(rows) - 0.4, -0.6) if rows else None)
            axis.margins(x=0)
            axis.tick_params(left=any(rows))
            hidden = ["top", "right"] + ["left"] * (not any(rows))
            hidden += ["bottom"] * (self.axes.get("xticks") == [])
            axis.spines[hidden].set_visible(False)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize=8)
        axis.set(**self.axes)
        axis.set_title(self.title, fontsize=8, loc="left")


def draw_bar(axis, bar: Bar) -> None:
    from matplotlib.patches import Rectangle

    look = {"facecolor": bar.colour, "edgecolor": bar.colour, "linewidth": 0.5} | bar.look
    axis.add_patch(Rectangle((bar.x, bar.y), bar.wide, bar.high, **look))
    part, side = AT[bar.at]
    point = bar.x + part * bar.wide, bar.y + bar.high / 2
    if bar.text:
        axis.text(*point, bar.text, ha=side, va="center", fontsize=7.5, color=bar.ink)


class ChartPage(NamedTuple):
    """Panels from left to right, `columns` of them side by side, on white.

    size: in inches; colours: {name: colour} for the legend; grid: arguments of `Figure.subplots`
    """

    size: tuple[float, float]
    panels: list[Panel]
    title: str = ""
    colours: Mapping = NO_ATTRS
    columns: int = 1
    layout: str = "constrained"
    grid: Mapping = NO_ATTRS

    def draw(self):
        """The figure, made without pyplot and its global state."""
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        figure = Figure(self.size, facecolor="white", layout=self.layout)
        rows = len(self.panels) // self.columns
        axes = figure.subplots(rows, self.columns, squeeze=False, **self.grid).ravel()
        for axis, panel in zip(axes, self.panels, strict=True):
            panel.draw(axis)
        if self.title:
            figure.suptitle(self.title, fontsize=10)
        if self.colours:
            colours = self.colours.items()
            marks = [Patch(facecolor=c, edgecolor="#999999", label=n) for n, c in colours]
            look = {"frameon": False, "fontsize": 7, "ncols": min(6, len(marks))}
            figure.legend(handles=marks, loc="outside upper right", **look)
        return figure


def chart(
    size, panels, text: str, *, title="", colours=NO_ATTRS, columns=1, layout="constrained", **grid
) -> Picture:
    """A picture of panels; the arguments are those of `ChartPage`."""
    panels = [each._replace(bars=[*each.bars], lines=[*each.lines]) for each in panels]
    return Picture(ChartPage(size, panels, title, colours, columns, layout, grid), text)
