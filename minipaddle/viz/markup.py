"""The one writer of markup: tables for a page and for Graphviz, code, notices, embedded SVG."""

import base64
import re
from collections.abc import Mapping
from functools import cache
from html import escape, unescape
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

GREY = "#797979"
"""The grey that a white and a dark page set off equally well."""
MONO = "Courier"  # Graphviz knows its widths, and DejaVu Sans Mono has the same
PAGE = 784
"""Pixels of a chapter's page in JupyterLab."""
SIZE = r'<svg width="([\d.]+)pt" height="([\d.]+)pt"'
GAP = 24
"""Points between two pictures."""


def tag(name: str, *inside: str, **attrs) -> str:
    """An element, for a page or for Graphviz: `tag("td", "x", align="left")`; `for_` is `for`."""
    named = {k.rstrip("_").replace("_", "-"): v for k, v in attrs.items() if v != ""}
    words = "".join(f' {k}="{v}"' for k, v in named.items())
    return f"<{name}{words}>{''.join(inside)}</{name}>"


def find_values(markup: str, name: str) -> list[str]:
    """The values of an attribute, in order."""
    return [*map(unescape, re.findall(f' {name}="([^"]*)"', markup))]


def css(**rules) -> str:
    """An inline style: a notebook that is not trusted drops style sheets."""
    return ";".join(f"{k.replace('_', '-')}:{v}" for k, v in rules.items() if v != "")


# ---- tables ----------------------------------------------------------------------------------


class TableCell(NamedTuple):
    """A cell of a table: its first `bold` lines are bold, a `share` of its width is filled."""

    text: str
    fill: str = ""
    ink: str = ""
    align: str = ""
    bold: int = 0
    code: bool = False
    span: int = 1
    share: float | None = None

    @classmethod
    def of(cls, look, text: str, align: str = "", **more) -> "TableCell":
        """A cell in the colours of a role; a role that is drawn as a point has none."""
        colours = () if look.shape == "point" else (look.fill, look.ink)
        return cls(text, *colours, align=align, **more)


GRID = MappingProxyType(
    {"color": GREY, "border": 0, "cellborder": 1, "cellspacing": 0, "cellpadding": 3}
)
SHEET = GRID | {"bgcolor": "#ffffff", "border": 1, "cellborder": 0, "cellpadding": 2}
"""How Graphviz draws a table: lines between the cells, or a white sheet."""


class CellTable(NamedTuple):
    """Rows of cells, as the label of a node (`roles` are those its cells play) or on a page."""

    rows: list
    roles: frozenset[str] = frozenset()
    look: Mapping = GRID
    head: tuple[str, ...] = ()
    caption: str = ""

    def write_label(self) -> str:
        """The table in Graphviz's HTML."""
        return tag("table", *(tag("tr", *map(label_cell, row)) for row in self.rows), **self.look)

    def write_page(self) -> str:
        """The table for a notebook, on a white or a dark page."""
        head = tag("thead", tag("tr", *(tag("th", escape(x)) for x in self.head)))
        body = tag("tbody", *(tag("tr", *map(page_cell, row)) for row in self.rows))
        caption = tag("caption", escape(self.caption)) if self.caption else ""
        parts = caption, head if self.head else "", body
        return tag("table", *parts, style="border-collapse:collapse")


def label_cell(cell: TableCell) -> str:
    lines = [escape(line) or " " for line in cell.text.split("\n")]
    lines[: cell.bold] = [tag("b", line) for line in lines[: cell.bold]]
    face = {"face": MONO, "point_size": 9} if cell.code else {}
    text = "<br/>".join(lines)
    text = tag("font", text, color=cell.ink, **face) if cell.ink or face else text
    span = cell.span if cell.span > 1 else ""
    return tag("td", text, bgcolor=cell.fill, align=cell.align, colspan=span)


def page_cell(cell: TableCell) -> str:
    fill, face = cell.fill, {"padding": "2px 8px"}
    if cell.share is not None:
        stop = f"{100 * cell.share:.0f}%"
        fill = f"linear-gradient(to right, {fill} {stop}, transparent {stop})"
    if cell.code:
        face = {"font_family": "monospace", "white_space": "pre", "padding": "0 8px"}
    look = css(background=fill, color=cell.ink, text_align=cell.align, **face)
    return tag("td", escape(cell.text), style=look)


# ---- code and notices ------------------------------------------------------------------------


def write_code(text: str, language: str = "python", head: str = "") -> str:
    """Highlighted code, below a line that says where it is from."""
    import pygments
    from pygments import formatters, lexers

    above = tag("div", escape(head), style=css(color=GREY, font_size="90%")) if head else ""
    formatter = formatters.HtmlFormatter(noclasses=True, nobackground=True, style=code_style())
    return above + pygments.highlight(text, lexers.get_lexer_by_name(language), formatter)


@cache
def code_style():
    """How code is set: by weight, slant and one grey, to be read on a white and on a dark page."""
    from pygments import token
    from pygments.style import Style

    class CodeStyle(Style):
        bold = (token.Keyword, token.Operator.Word, token.Name.Function, token.Name.Class)
        grey = (token.Comment, token.Literal.String.Doc, token.Name.Decorator)
        styles = dict.fromkeys(bold, "bold") | dict.fromkeys(grey, f"italic {GREY}")

    return CodeStyle


def write_words(text: str, kind: str = "", **look) -> str:
    """Text that keeps its line breaks; `kind` is "", "strong" or "code"."""
    rules = {"strong": {"font_weight": "bold"}, "code": {"background": "none"}}.get(kind, {})
    style = css(white_space="pre-wrap", **rules, **look)
    return tag("code" if kind == "code" else "span", escape(text), style=style)


def write_fact(label: str, words: str) -> str:
    """Words (as markup) on a line of their own, after a label in grey."""
    if not label:
        return tag("div", words)
    label = tag("span", escape(label), style=css(flex="0 0 5.5em", color=GREY))
    return tag("div", label, words, style="display:flex")


def write_call(call: str) -> str:
    """A line that a reader may copy, to see more than a picture shows; none without a call."""
    if not call:
        return ""
    more = write_words(" follows each line down to memory", color=GREY)
    return tag("div", write_words(call, "code"), more, style=css(font_size="85%"))


def write_notice(colour: str, *inside: str) -> str:
    """Markup beside a bar in a colour."""
    look = css(border_left=f"4px solid {colour}", padding=".3em .8em", margin=".2em 0")
    return tag("div", *inside, style=look)


def write_fold(summary: str, inside: str) -> str:
    """Markup that a click folds away."""
    return tag("details", tag("summary", escape(summary)), inside, open="open")


def write_scrolled(svg: str) -> str:
    """A picture that scrolls where the page is too narrow for it."""
    return tag("div", svg, style=css(overflow_x="auto"))


# ---- SVG -------------------------------------------------------------------------------------


def size_of(svg: str) -> tuple[float, float]:
    """Width and height of an `<svg>` element, in points."""
    wide, high = re.match(SIZE, svg).groups()
    return float(wide), float(high)


def fit_page(svg: str) -> str:
    """The element without its size, so as wide as the page, if it is wider than that."""
    return re.sub(SIZE, "<svg", svg, count=1) if is_wide(svg) else svg


def is_wide(svg: str) -> bool:
    return size_of(svg)[0] * 4 / 3 > PAGE


def embed(svg: str) -> str:
    """HTML with tooltips; a picture wider than the page has a button for its full size.

    JupyterLab draws `image/svg+xml` as an image, which has no tooltips. In a notebook that is not
    trusted it removes `<object>` and the button, and the image inside stays.
    """
    data, style, button = address_of(svg), "", ""
    if is_wide(svg):
        style = css(width="100%")
        resize = RESIZE.format(size_of(svg)[0] * 4 / 3)
        button = tag("button", "⤢ full size", onclick=resize) + "<br>"
    image = write_image(data, style)
    drawn = tag("object", image, type="image/svg+xml", data=data, style=style)
    return tag("div", button, drawn, style="overflow:auto")


def embed_page(page: str, still: str, title: str, high: float, **look) -> str:
    """A page in a frame that reaches no other host, and an SVG, which the frame replaces.

    A notebook that is not trusted drops the frame. `high` is its height, in pixels, until the page
    in it posts its own; the page is told whether it is on a light or a dark one.
    """
    settings = {
        "sandbox": "allow-scripts",
        "title": escape(title),
        "style": css(width="100%", height=f"{high:.0f}px", border=0, **look),
        "onload": escape(AROUND),
    }
    frame = tag("iframe", srcdoc=escape(page), **settings)
    return tag("div", frame, write_image(address_of(still), css(max_width="100%")))


def write_image(address: str, style: str) -> str:
    return tag("img", src=address, style=style).removesuffix("</img>")


def address_of(svg: str) -> str:
    """The element, as wide as a page at most, in an address."""
    return f"data:image/svg+xml;base64,{base64.b64encode(fit_page(svg).encode()).decode()}"


AROUND = Path(__file__).with_name("around.js").read_text(encoding="utf-8")
"""The script of the page around a frame."""
RESIZE = (
    "const s = this.parentNode.querySelector('object').style;"
    "s.width = s.width === '100%' ? '{:.0f}px' : '100%'"
)


def join_svgs(left: str, right: str) -> str:
    """Two pictures in one `<svg>` element, one below the other if the page is too narrow."""
    (wide, high), (wide_2, high_2) = sizes = [size_of(left), size_of(right)]
    if (wide + GAP + wide_2) * 4 / 3 > PAGE:
        at, area = f'y="{high + GAP:g}" ', (max(wide, wide_2), high + GAP + high_2)
    else:
        at, area = f'x="{wide + GAP:g}" ', (wide + GAP + wide_2, max(high, high_2))
    parts = []
    for k, (svg, corner) in enumerate(((left, ""), (right, at))):
        head = '<svg {}width="{:g}" height="{:g}"'.format(corner, *sizes[k])
        own = re.sub(r' id="|url\(#', rf"\g<0>part{k}_", svg)
        parts.append(re.sub(SIZE, head, own, count=1))
    size = 'width="{0:g}pt" height="{1:g}pt" viewBox="0 0 {0:g} {1:g}"'.format(*area)
    return f'<svg {size} xmlns="http://www.w3.org/2000/svg">\n{"".join(parts)}</svg>\n'
