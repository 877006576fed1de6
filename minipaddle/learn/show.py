"""A verdict as people see it: text, rich text for a terminal, HTML for a notebook.

The three are made of the same parts, so that a terminal says what a notebook says.
"""

from __future__ import annotations

import html
from typing import NamedTuple

from ..viz.engine import Graph, NoEngineError
from ..viz.style import GREY, YOURS
from .exercise import load
from .verdict import Verdict


class Mark(NamedTuple):
    """How a state looks; the colours can be read on a white and on a dark page."""

    sign: str
    colour: str


MARKS = {
    "passed": Mark("✓", YOURS),
    "wrong": Mark("✗", "#e0483e"),
    "error": Mark("!", "#c07a00"),
    "changed": Mark("?", "#2f81c7"),
    "not started": Mark("○", GREY),
}


class Part(NamedTuple):
    """A piece of what a verdict says: a label, the text, and whether that is program text."""

    label: str
    text: str
    code: bool = False


def parts(verdict: Verdict) -> list[Part]:
    """All that a verdict has to say, in order."""
    found = [Part("", load(verdict.name).title)]
    found += {"not started": unstarted, "passed": praised}.get(verdict.state, faulty)(verdict)
    if verdict.printed.strip():
        found.append(Part("printed", verdict.printed.rstrip(), code=True))
    return found


def unstarted(verdict: Verdict) -> list[Part]:
    lines = [Part("to write", verdict.why)]
    return lines + ([Part("next", verdict.line, code=True)] if verdict.line else [])


def praised(verdict: Verdict) -> list[Part]:
    return [Part("", "All checks hold. The engine runs on your code within learn.mine().")]


def faulty(verdict: Verdict) -> list[Part]:
    check = ": ".join(filter(None, [verdict.check, verdict.explains]))
    given = "\n".join(f"{k} = {v}" if k else v for k, v in verdict.given.items())
    looks = verdict.looks_like and f"This looks like {verdict.looks_like}."
    seed = (
        verdict.seed is not None
        and f"at random (seed {verdict.seed}); smaller inputs do not show it"
    )
    found = [
        Part("check", check),
        Part("because" if verdict.state == "wrong" else "error", verdict.why),
        Part("at", verdict.line, code=True),
        Part("given", given, code=True),
        Part("expected", verdict.expected, code=True),
        Part("got", verdict.got, code=True),
        Part("", looks),
        Part("drawn", seed or ""),
    ]
    return [part for part in found if part.text]


# ---- text ----------------------------------------------------------------------------------------


def head(verdict: Verdict) -> str:
    return f"{MARKS[verdict.state].sign} {verdict.name}: {verdict.state}"


def as_text(verdict: Verdict) -> str:
    """The verdict on a page without colours, the same for the same verdict."""
    lines = [head(verdict), *(line for part in parts(verdict) for line in laid_out(part))]
    lines += [f"  {line}" for line in verdict.sketch.splitlines()]
    return "\n".join(lines)


def laid_out(part: Part) -> list[str]:
    first, *rest = part.text.splitlines()
    label = f"{part.label:<10}" if part.label else ""
    return [f"  {label}{first}", *(f"  {' ' * len(label)}{line}" for line in rest)]


# ---- a terminal ----------------------------------------------------------------------------------


def show(console, verdict: Verdict) -> None:
    """Print the verdict: with colours on a terminal, as text elsewhere."""
    if console.is_terminal or console.is_jupyter:
        console.print(as_rich(verdict))
    else:
        console.print(as_text(verdict), markup=False)


def as_rich(verdict: Verdict):
    """The verdict for rich."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    colour = MARKS[verdict.state].colour
    table = Table.grid(padding=(0, 2))
    rows = []
    for part in parts(verdict):
        if part.label:
            table.add_row(Text(part.label, style=GREY), Text(part.text))
        else:
            rows.append(Text(part.text, style=f"bold {colour}" if "looks" in part.text else ""))
    title, *rest = rows
    body = [title, *([table] if table.row_count else []), *rest]
    if verdict.sketch:
        body.append(Text(verdict.sketch, style=GREY))
    return Group(Text(head(verdict), style=f"bold {colour}"), Padding(Group(*body), (0, 0, 0, 2)))


def solution_for_rich(name: str):
    from rich.console import Group
    from rich.syntax import Syntax
    from rich.text import Text

    text = Syntax(load(name).solution, "python", theme="ansi_light", background_color="default")
    return Group(Text(f"The annotated solution of {name}:", style="bold"), Text(), text)


# ---- a notebook ----------------------------------------------------------------------------------


def as_bundle(verdict: Verdict) -> dict[str, str]:
    text = as_text(verdict)
    if verdict.passed:
        text += f"\n\n{load(verdict.name).solution}"
    return {"text/html": as_html(verdict), "text/plain": text}


def as_html(verdict: Verdict) -> str:
    """Inline styles alone: a notebook that is not trusted drops style sheets."""
    colour = MARKS[verdict.state].colour
    rows = "".join(map(row, parts(verdict)))
    inside = f"<b style='color:{colour}'>{html.escape(head(verdict))}</b>{rows}"
    inside += drawn(verdict.picture) if verdict.picture else ""
    inside += solution_as_html(verdict.name) if verdict.passed else ""
    return box(colour, inside)


def box(colour: str, inside: str) -> str:
    style = f"border-left:4px solid {colour};padding:.3em .8em;margin:.2em 0"
    return f'<div style="{style}">{inside}</div>'


def row(part: Part) -> str:
    text = html.escape(part.text)
    if part.code:
        text = f'<code style="white-space:pre-wrap;background:none">{text}</code>'
    else:
        text = f'<span style="white-space:pre-wrap">{text}</span>'
    if not part.label:
        return f"<div>{text}</div>"
    label = f'<span style="flex:0 0 5.5em;color:{GREY}">{html.escape(part.label)}</span>'
    return f'<div style="display:flex">{label}{text}</div>'


class Drawn(Graph):
    """A graph whose DOT is written already."""

    def __init__(self, source: str):
        super().__init__()
        self.written = source

    source = property(lambda self: self.written)


def drawn(source: str) -> str:
    """A picture as an element of the page; nothing where no engine can draw it."""
    try:
        return f'<div style="overflow-x:auto">{Drawn(source).svg()}</div>'
    except NoEngineError:
        return ""


def solution_as_html(name: str) -> str:
    from ..viz.code import as_html as code_as_html

    code = code_as_html((f"exercises/solutions/{name}.py", 1, load(name).solution))
    summary = "<summary>The annotated solution</summary>"
    return f'<details open style="margin-top:.4em">{summary}{code}</details>'
