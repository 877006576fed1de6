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
    """A piece of what a verdict says: a label, the text, and what kind of text that is."""

    label: str
    text: str
    kind: str = "words"  # or "code", or "strong"


def parts(verdict: Verdict) -> list[Part]:
    """All that a verdict has to say, in order."""
    say = {"not started": unstarted, "passed": praised}.get(verdict.state, faulty)
    printed = Part("printed", verdict.printed.rstrip(), "code")
    busy = Part("busy", verdict.busy)
    found = [Part("", load(verdict.name).title), *say(verdict), printed, busy]
    return [part for part in found if part.text.strip()]


def unstarted(verdict: Verdict) -> list[Part]:
    where = Part("next", verdict.line, "code")
    return [Part("to write", verdict.why), where, help_on(verdict)]


def praised(verdict: Verdict) -> list[Part]:
    return [Part("", "All checks hold. The engine runs on your code within learn.mine().")]


def faulty(verdict: Verdict) -> list[Part]:
    looks = f"This looks like {verdict.looks_like}." if verdict.looks_like else ""
    given = "\n".join(f"{k} = {v}" if k else v for k, v in verdict.given.items())
    drawn = "" if verdict.seed is None else f"at random (seed {verdict.seed}), then made small"
    return [
        Part("", looks, "strong"),
        Part("check", ": ".join(filter(None, [verdict.check, verdict.explains]))),
        Part("because" if verdict.state == "wrong" else "error", verdict.why),
        Part("at", verdict.line, "code"),
        Part("given", given, "code"),
        Part("expected", verdict.expected, "code"),
        Part("got", verdict.got, "code"),
        Part("drawn", drawn),
        help_on(verdict),
    ]


def help_on(verdict: Verdict) -> Part:
    short = verdict.name.split("/")[-1]
    return Part("hint", f"./run learn hint {short}; in a notebook %exercise {short} --hint")


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

    strong = f"bold {MARKS[verdict.state].colour}"
    words, table = [], Table.grid(padding=(0, 2))
    for part in parts(verdict):
        text = Text(part.text, style=strong if part.kind == "strong" else "")
        if part.label:
            table.add_row(Text(part.label, style=GREY), text)
        else:
            words.append(text)
    sketch = [Text(verdict.sketch, style=GREY)] if verdict.sketch else []
    body = Group(*words, *([table] if table.row_count else []), *sketch)
    return Group(Text(head(verdict), style=strong), Padding(body, (0, 0, 0, 2)))


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
    style = "white-space:pre-wrap" + (";font-weight:bold" if part.kind == "strong" else "")
    style += ";background:none" if part.kind == "code" else ""
    tag = "code" if part.kind == "code" else "span"
    text = f'<{tag} style="{style}">{html.escape(part.text)}</{tag}>'
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
