"""Where refusals come from: `python -m tests.jit.refusals [WORDS]`.

A line for each place in the package that refuses a user's code: file and line, the function, when
(while code is converted, or while it is traced or run), and the message; `…` stands for a value.
With words, only the messages that contain them all: paste a part of the error. To see the frames of
the package in an error, set TRANSLATOR_DISABLE_NEW_ERROR=1.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import minipaddle

PACKAGE = Path(minipaddle.__file__).parent
RAISERS = {"refusal", "note_refusal", "not_supported", "unsupported_error"}


class Refusal(NamedTuple):
    where: str
    function: str
    when: str
    message: str


def index() -> list[Refusal]:
    """All refusals of code that becomes a program."""
    folders = ("engine/jit", "jit", "engine/eager", "eager", "static")
    files = sorted(path for folder in folders for path in (PACKAGE / folder).rglob("*.py"))
    return [refusal for path in files for refusal in refusals_of(path)]


def refusals_of(path: Path) -> Iterator[Refusal]:
    name = path.relative_to(PACKAGE.parent).as_posix()
    when = "converting" if "converters" in path.parts else "tracing or running"
    for outer in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(outer, ast.FunctionDef):
            continue
        for node in ast.walk(outer):
            called = node.func if isinstance(node, ast.Call) else None
            if getattr(called, "id", None) in RAISERS and node.args:
                text = " ".join(message(node.args[0]).split())
                if text.strip(" …"):
                    yield Refusal(f"{name}:{node.lineno}", outer.name, when, text)


def message(node: ast.expr) -> str:
    """The text of an expression, its values as `…`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(message, parts))
        case ast.Call(args=[first, *_]):  # an exception around the text
            return message(first)
        case ast.BinOp(left=left, right=right):
            return message(left) + message(right)
        case ast.IfExp(body=body, orelse=other):
            return f"{message(body)} | {message(other)}"
    return "…"


def main(words: list[str]) -> None:
    for where, function, when, text in index():
        if all(word.lower() in text.lower() for word in words):
            print(f"{where}  {function}  ({when})\n    {text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]).split())
