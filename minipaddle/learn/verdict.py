"""A verdict: the state of a reader's solution, and how it is shown.

All of it is text, so it leaves its process as JSON. Text, rich text for a terminal and HTML for a
notebook are made from the same parts: a terminal says what a notebook says.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from ..engine.eager.tensor import Tensor
from ..viz.graph_engine import NoEngineError, svg_of
from ..viz.markup import (
    write_code,
    write_fact,
    write_fold,
    write_notice,
    write_scrolled,
    write_words,
)  # fmt: skip
from ..viz.style import GREY, YOURS
from .exercise import load

STATES = ("not started", "error", "wrong", "passed")
LONGEST = 600
"""Characters of one value that are shown."""


@dataclass
class Verdict:
    """The verdict on a solution of the exercise `name`; `state` is one of STATES."""

    name: str
    state: str
    why: str = ""
    check: str = ""  # the check that said so
    explains: str = ""  # and what that check is about
    line: str = ""  # the reader's line: `accumulate.py:12: return g`
    given: dict[str, str] = field(default_factory=dict)
    expected: str = ""
    got: str = ""
    looks_like: str = ""
    picture: str = ""  # a graph, as DOT
    sketch: str = ""  # the same graph, as text
    seed: int | None = None  # of the random inputs that showed it
    printed: str = ""
    seconds: float = 0.0
    busy: str = ""  # how long it waited for a processor, if that was long

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return format_text(self)

    def __rich__(self):
        return format_rich(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return format_bundle(self)


def format_value(value) -> str:
    """A value as the reader should see it: arrays with dtype and shape, numbers to six digits."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Tensor):
        text = array_text(value.numpy(), str(value.spec))
    elif isinstance(value, np.ndarray):
        text = array_text(value, f"{value.dtype}{list(value.shape)}")
    elif isinstance(value, float | np.floating):
        text = f"{float(value):.6g}"
    elif isinstance(value, dict):
        text = ", ".join(f"{k}: {format_value(v)}" for k, v in value.items())
    elif isinstance(value, list | tuple):
        inside = ", ".join(map(format_value, value))
        comma = "," if len(value) == 1 else ""
        text = f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    else:
        text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def array_text(array: np.ndarray, spec: str) -> str:
    """The values, with what kind of array they are; a number alone for an array of no axes."""
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if array.ndim == 0:
        return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
    values = np.array2string(array, precision=6, suppress_small=False, threshold=40, separator=", ")
    return f"{values}  ({spec})" if "\n" not in values else f"{spec}\n{values}"


# ---- how people see it ------------------------------------------------------------------------


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


class Fact(NamedTuple):
    """A fact of a verdict: a label, the text, and the kind of text."""

    label: str
    text: str
    kind: str = "words"  # or "code", or "strong"


def parts(verdict: Verdict) -> list[Fact]:
    """All that a verdict has to say, in order."""
    short = verdict.name.split("/")[-1]
    hint = Fact("hint", f"./run learn hint {short}; in a notebook %exercise {short} --hint")
    if verdict.passed:
        facts = [Fact("", "All checks hold. The engine runs on your code within learn.mine().")]
    elif verdict.state == "not started":
        facts = [Fact("to write", verdict.why), Fact("next", verdict.line, "code"), hint]
    else:
        facts = [*fault_parts(verdict), hint]
    printed = Fact("printed", verdict.printed.rstrip(), "code")
    every = [Fact("", load(verdict.name).title), *facts, printed, Fact("busy", verdict.busy)]
    return [part for part in every if part.text.strip()]


def fault_parts(verdict: Verdict) -> list[Fact]:
    """The result of a wrong or broken solution, and its inputs."""
    looks = f"This looks like {verdict.looks_like}." if verdict.looks_like else ""
    inputs = "\n".join(f"{k} = {v}" if k else v for k, v in verdict.given.items())
    drawn = "" if verdict.seed is None else f"at random (seed {verdict.seed}), then made small"
    return [
        Fact("", looks, "strong"),
        Fact("check", ": ".join(filter(None, [verdict.check, verdict.explains]))),
        Fact("because" if verdict.state == "wrong" else "error", verdict.why),
        Fact("at", verdict.line, "code"),
        Fact("given", inputs, "code"),
        Fact("expected", verdict.expected, "code"),
        Fact("got", verdict.got, "code"),
        Fact("drawn", drawn),
    ]


# ---- text ----------------------------------------------------------------------------------------


def head(verdict: Verdict) -> str:
    return f"{MARKS[verdict.state].sign} {verdict.name}: {verdict.state}"


def format_text(verdict: Verdict) -> str:
    """The verdict on a page without colours, the same for the same verdict."""
    lines = [head(verdict), *(line for part in parts(verdict) for line in lay_out(part))]
    lines += [f"  {line}" for line in verdict.sketch.splitlines()]
    return "\n".join(lines)


def lay_out(part: Fact) -> list[str]:
    first, *rest = part.text.splitlines()
    label = f"{part.label:<10}" if part.label else ""
    return [f"  {label}{first}", *(f"  {' ' * len(label)}{line}" for line in rest)]


# ---- a terminal ----------------------------------------------------------------------------------


def show(console, verdict: Verdict) -> None:
    """Print the verdict: with colours on a terminal, as text elsewhere."""
    if console.is_terminal or console.is_jupyter:
        console.print(format_rich(verdict))
    else:
        console.print(format_text(verdict), markup=False)


def format_rich(verdict: Verdict):
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


def format_bundle(verdict: Verdict) -> dict[str, str]:
    text = format_text(verdict)
    if verdict.passed:
        text += f"\n\n{load(verdict.name).solution}"
    return {"text/html": format_html(verdict), "text/plain": text}


def format_html(verdict: Verdict) -> str:
    colour = MARKS[verdict.state].colour
    inside = [write_words(head(verdict), "strong", color=colour)]
    inside += [write_fact(p.label, write_words(p.text, p.kind)) for p in parts(verdict)]
    if verdict.picture:
        with suppress(NoEngineError):
            inside.append(write_scrolled(svg_of(verdict.picture)))
    if verdict.passed:
        solution = load(verdict.name).solution
        code = write_code(solution, head=f"exercises/solutions/{verdict.name}.py, line 1")
        inside.append(write_fold("The annotated solution", code))
    return write_notice(colour, *inside)
