"""Charts as SVG, without matplotlib: a few kilobytes in a millisecond, in the ink of the page.

The parts are those of `chart`. Bars of one look are one path, so that charts that hardly differ
pack well.
"""

import json
import math
from collections.abc import Iterator
from textwrap import wrap
from typing import NamedTuple

from ..engine.core.errors import value_error
from .markup import GREY, escape, tag

SVG = "http://www.w3.org/2000/svg"
WIDEST = 468
"""Points: a wider chart is drawn so wide, which can still be read on a narrow page."""
SMALL, WORDS = 7.5, 8
"""Points of the text in bars, and of all other text."""
GAP, LINE = 10, 11
"""Points between panels, and of a line of text."""
DASHES = {"--": "5 3", ":": "1.5 2", "-.": "6 2 1.5 2"}
HIDDEN = ("", " ", "none", "None")
AXES = {"xlim", "ylim", "xlabel", "ylabel", "xticks", "yticks", "xticklabels", "aspect"}
"""The arguments of `Axes.set` that are known here."""
AT = {"middle": (0.5, "center"), "start": (0, "left"), "end": (1, "left"), "before": (0, "right")}
"""The position of a bar's text, and which side of the text is there."""
HATCH = (
    '<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><path d="M0 0v4" stroke="currentColor"/></pattern></defs>'
)


class ChartArea(NamedTuple):
    """A rectangle on the page: left, top, right, bottom, in points."""

    left: float
    top: float
    right: float
    bottom: float


def write_svg(page) -> str:
    """The chart as an `<svg>` element; what stands on the page itself has the page's ink."""
    wide, high = min(72 * page.size[0], WIDEST), 72 * page.size[1]
    parts, top = [HATCH] * any(bar.look.get("hatch") for p in page.panels for bar in p.bars), 2.0
    if page.title:
        parts.append(write_text(wide / 2, top + 9, page.title, "middle", size=9))
        top += LINE + 4
    for line in legend_lines(page, wide):
        parts += line_of_legend(line, top, wide)
        top += LINE + 2
    for drawing in lay_out(page, ChartArea(0, top, wide, high)):
        parts += drawing.write()
    look = {"width": f"{wide:g}pt", "height": f"{high:g}pt", "color": GREY,
            "viewBox": f"0 0 {wide:g} {high:g}", "font_family": "DejaVu Sans,Verdana,sans-serif",
            "font_size": WORDS, "fill": "currentColor"}  # fmt: skip
    return tag("svg", "\n", *(f"{part}\n" for part in parts), **look, xmlns=SVG) + "\n"


def lay_out(page, room: ChartArea) -> list["PanelDrawing"]:
    """The panels in their areas; below one another they begin at the same place."""
    count, grid, limits = len(page.panels), page.grid, [*map(limits_of, page.panels)]
    rows = count // page.columns
    if shared := grid.get("sharex"):
        ends = [x for across, _ in limits for x in across]
        limits = [((min(ends), max(ends)), up) for _, up in limits]
    across = cut(room.left, room.right, grid.get("width_ratios", [1] * page.columns))
    down = cut(room.top, room.bottom, grid.get("height_ratios", [1] * rows))
    drawings = []
    for k, panel in enumerate(page.panels):
        row, column = divmod(k, page.columns)
        (left, right), (top, bottom) = across[column], down[row]
        area, last = ChartArea(left, top, right, bottom), row == rows - 1 or not shared
        drawings.append(PanelDrawing(panel, area, limits[k], f"area{k}", last, room.right - left))
    above = LINE * max(len(each.titles) for each in drawings)
    for k, drawing in enumerate(drawings):
        below = drawings[k % page.columns :: page.columns]
        drawing.indent(max(each.margin for each in below), above)
    return drawings


def cut(start: float, end: float, ratios) -> list[tuple[float, float]]:
    """A stretch in pieces with gaps between them."""
    unit = (end - start - GAP * (len(ratios) - 1)) / sum(ratios)
    pieces = []
    for ratio in ratios:
        pieces.append((start, start + ratio * unit))
        start += ratio * unit + GAP
    return pieces


def legend_lines(page, wide: float) -> list[list]:
    """The names of colours and of lines, in as many lines as they need."""
    names = [*page.colours.items()]
    labelled = (line for panel in page.panels for line in panel.lines if line.look.get("label"))
    names += [(line.look["label"], line.colour) for line in labelled]
    lines, room = [], 0.0
    for name, colour in dict.fromkeys(names):
        need = width_of(name) + 18
        if need > room:
            lines, room = [*lines, []], wide
        lines[-1].append((name, colour))
        room -= need
    return lines


def line_of_legend(line, top: float, wide: float) -> Iterator[str]:
    at = wide - sum(width_of(name) + 18 for name, _ in line)
    for name, colour in line:
        yield f'<path d="{box_of(at, top + 1, 8, 8)}" fill="{ink_of(colour)}"/>'
        yield write_text(at + 11, top + 8, name)
        at += width_of(name) + 18


class PanelDrawing:
    """A panel in its area: `x` and `y` are where numbers stand on the page."""

    def __init__(self, panel, area: ChartArea, limits, key: str, last: bool, room: float):
        if unknown := panel.axes.keys() - AXES:
            what = f"a chart as SVG whose axes have {', '.join(sorted(unknown))}"
            raise value_error(what, expected=", ".join(sorted(AXES)))
        self.panel, self.whole, self.key, axes = panel, area, key, panel.axes
        self.across, self.up = limits
        letters = int(room / width_of("x"))
        self.titles = [part for line in panel.title.split("\n") for part in wrap(line, letters)]
        rows = panel.rows
        self.rows = [""] * rows if isinstance(rows, int) else rows and [*map(str, rows)]
        self.left_marks = self.find_left_marks(area.bottom - area.top)
        named = axes.get("xticklabels")
        ticks = axes.get("xticks", ticks_of(self.across, area.right - area.left))
        self.below = [*zip(ticks, map(str, named or map(text_of, ticks)))] * last
        self.lines = ticks if named is None else ()
        longest = max((width_of(text) + 5 for _, text in self.left_marks if text), default=2)
        self.margin = longest + LINE * ("ylabel" in axes)

    def indent(self, margin: float, above: float) -> None:
        """Leave room on all sides; `area` is what is left."""
        left, top, right, bottom = self.whole
        bottom -= (LINE + 1) * bool(self.below) + LINE * ("xlabel" in self.panel.axes)
        self.area = self.keep_aspect(ChartArea(left + margin, top + above, right - 6, bottom))

    def find_left_marks(self, room: float) -> list[tuple[float, str]]:
        if self.rows is not None:
            return [*enumerate(self.rows)]
        ticks = self.panel.axes.get("yticks", ticks_of(self.up, room))
        return [(y, text_of(y)) for y in ticks]

    def keep_aspect(self, room: ChartArea) -> ChartArea:
        """The area, smaller where a unit has to be as high as it is wide."""
        if self.panel.axes.get("aspect") != "equal":
            return room
        wide, high = room.right - room.left, room.bottom - room.top
        units = [abs(end - start) for start, end in (self.across, self.up)]
        scale = min(wide / units[0], high / units[1])
        return room._replace(right=room.left + scale * units[0], bottom=room.top + scale * units[1])

    def x(self, number: float) -> float:
        (start, end), (left, _, right, _) = self.across, self.area
        return left + (number - start) / (end - start) * (right - left)

    def y(self, number: float) -> float:
        (start, end), (_, top, _, bottom) = self.up, self.area
        return bottom - (number - start) / (end - start) * (bottom - top)

    def write(self) -> Iterator[str]:
        left, top, right, bottom = self.area
        yield from self.write_axes()
        rectangle = f'<path d="{box_of(left, top, right - left, bottom - top)}"/>'
        yield f'<clipPath id="{self.key}">{rectangle}</clipPath><g clip-path="url(#{self.key})">'
        yield from self.write_bars()
        yield from self.write_lines()
        yield "</g>"
        yield from self.write_words()

    def write_axes(self) -> Iterator[str]:
        """The grid, the axes, their numbers and names, and the title."""
        left, top, right, bottom = self.area
        marks = [self.x(tick) for tick in self.lines]
        grid = [f"M{brief(at)} {brief(top)}V{brief(bottom)}" for at in marks]
        if self.rows is None:
            grid += [
                f"M{brief(left)} {brief(self.y(y))}H{brief(right)}" for y, _ in self.left_marks
            ]
        if grid:
            yield f'<path d="{"".join(grid)}" stroke="currentColor" opacity=".15"/>'
        named = self.rows is None or any(self.rows)
        edges = f"M{brief(left)} {brief(top)}V{brief(bottom)}" * bool(named and self.left_marks)
        edges += f"M{brief(left)} {brief(bottom)}H{brief(right)}" * (
            self.panel.axes.get("xticks") != []
        )
        if edges:
            yield f'<path d="{edges}" stroke="currentColor" stroke-width=".8" fill="none"/>'
        for at, text in self.below:
            yield write_text(self.x(at), bottom + LINE - 1, text, "middle")
        for at, text in self.left_marks:
            if text:
                yield write_text(left - 4, self.y(at) + 3, text, "end")
        axes, names = self.panel.axes, (bottom + top) / 2
        if "xlabel" in axes:
            below = bottom + LINE * (1 + bool(self.below)) - 1
            yield write_text((left + right) / 2, below, axes["xlabel"], "middle")
        if "ylabel" in axes:
            at = self.whole.left + WORDS
            turn = f' transform="rotate(-90 {brief(at)} {brief(names)})"'
            yield write_text(at, names, axes["ylabel"], "middle", turn)
        for k, title in enumerate(reversed(self.titles)):
            yield write_text(left, top - LINE * k - 4, title)

    def write_bars(self) -> Iterator[str]:
        """A path for all bars of one look that set the same, in the order in which they appear."""
        looks: dict[str, list[str]] = {}
        for bar in self.panel.bars:
            look, fill = bar.look, bar.look.get("facecolor", bar.colour)
            edge = ink_of(look.get("edgecolor", fill))
            words = (
                f'fill="{ink_of(fill)}" stroke="{edge}" stroke-width="{look.get("linewidth", 0.5)}"'
            )
            words += f' opacity="{look["alpha"]}"' if "alpha" in look else ""
            words += f' data-set="{escape(json.dumps(bar.sets))}"' if bar.sets else ""
            box = self.box(bar)
            looks.setdefault(words, []).append(box)
            if look.get("hatch"):
                looks.setdefault('fill="url(#hatch)"', []).append(box)
        for words, boxes in looks.items():
            yield f'<path {words} d="{"".join(boxes)}"/>'

    def box(self, bar) -> str:
        xs = sorted((self.x(bar.x), self.x(bar.x + bar.wide)))
        ys = sorted((self.y(bar.y), self.y(bar.y + bar.high)))
        return box_of(xs[0], ys[0], xs[1] - xs[0], ys[1] - ys[0])

    def write_lines(self) -> Iterator[str]:
        for line in self.panel.lines:
            look, points = line.look, [(self.x(x), self.y(y)) for x, y in zip(line.x, line.y)]
            words = f' opacity="{look["alpha"]}"' if "alpha" in look else ""
            colour, style = f'stroke="{ink_of(line.colour)}"{words}', look.get("linestyle", "-")
            if style not in HIDDEN:
                wide, dash = look.get("linewidth", 1.5), DASHES.get(style)
                shape = f'fill="none" stroke-width="{wide}"'
                shape += f' stroke-dasharray="{dash}"' if dash else ""
                yield f'<path {colour} {shape} d="{path_of(points, look.get("drawstyle"))}"/>'
            if look.get("marker"):
                dots = "".join(f"M{brief(x)} {brief(y)}h0" for x, y in points)
                size = look.get("markersize", 5)
                yield f'<path {colour} stroke-width="{size}" stroke-linecap="round" d="{dots}"/>'

    def write_words(self) -> Iterator[str]:
        """The text of bars; within a bar only where it fits."""
        looks: dict[str, list[str]] = {}
        for bar in self.panel.bars:
            part, side = AT[bar.at]
            room = abs(self.x(bar.wide) - self.x(0)) + 2
            if bar.text and (bar.at != "middle" or width_of(bar.text, SMALL) <= room):
                x, y = self.x(bar.x + part * bar.wide), self.y(bar.y + bar.high / 2) + 2.7
                ink = bar.ink if bar.at in ("middle", "start") else "currentColor"
                look = f'text-anchor="{SIDES[side]}" fill="{ink}" font-size="{SMALL}"'
                looks.setdefault(look, []).append(write_text(x, y, bar.text))
        for look, texts in looks.items():
            yield f"<g {look}>{''.join(texts)}</g>"


SIDES = {"left": "start", "center": "middle", "right": "end"}


def limits_of(panel) -> tuple[tuple, tuple]:
    """The numbers at the left and right end, and those at the bottom and the top."""
    bars, lines, axes = panel.bars, panel.lines, panel.axes
    xs = [x for b in bars for x in (b.x, b.x + b.wide)] + [x for line in lines for x in line.x]
    ys = [y for b in bars for y in (b.y, b.y + b.high)] + [y for line in lines for y in line.y]
    share = 0.0 if panel.rows is not None else 0.05
    across, up = (spread(numbers, share) for numbers in (xs or [0, 1], ys or [0, 1]))
    if panel.rows:
        count = panel.rows if isinstance(panel.rows, int) else len(panel.rows)
        up = count - 0.4, -0.6
    return axes.get("xlim", across), axes.get("ylim", up)


def spread(numbers, share: float) -> tuple[float, float]:
    """From the least to the largest, and a share of the distance more at both ends."""
    low, high = min(numbers), max(numbers)
    more = share * (high - low) if high > low else 0.5
    return low - more, high + more


def ticks_of(limits, room: float) -> list[float]:
    """Round numbers between the limits, some 40 points apart."""
    low, high = sorted(limits)
    least = (high - low) / max(1, room / 40)
    unit = 10 ** math.floor(math.log10(least))
    step = next(n * unit for n in (1, 2, 5, 10) if n * unit >= 0.999 * least)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def text_of(number: float) -> str:
    return f"{number:.6g}".replace("-", "−")


def brief(number: float) -> str:
    """A length on the page, to a tenth of a point."""
    return f"{round(number, 1):g}"


def width_of(text: str, size: float = WORDS) -> float:
    """Points that a line of text needs, roughly."""
    return 0.58 * size * len(text)


def ink_of(colour: str) -> str:
    """A colour; black lines take the page's ink."""
    return "currentColor" if colour in ("black", "k") else colour


def box_of(left: float, top: float, wide: float, high: float) -> str:
    return f"M{brief(left)} {brief(top)}h{brief(wide)}v{brief(high)}h{brief(-wide)}z"


def path_of(points, drawstyle: str | None) -> str:
    """A line through points; as steps it goes across first, then up or down."""
    (x, y), *rest = points
    steps = drawstyle == "steps-post"
    return f"M{brief(x)} {brief(y)}" + "".join(
        f"H{brief(x)}V{brief(y)}" if steps else f"L{brief(x)} {brief(y)}" for x, y in rest
    )


def write_text(x, y, text: str, anchor="start", more="", size: float = WORDS) -> str:
    look = f' text-anchor="{anchor}"' * (anchor != "start") + more
    look += f' font-size="{size}"' * (size != WORDS)
    return f'<text x="{brief(x)}" y="{brief(y)}"{look}>{escape(str(text), quote=False)}</text>'
