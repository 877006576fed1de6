"""The real code, shown in a notebook with its file and line."""

import ast
import inspect
from pathlib import Path

from ..core.display import Display
from ..engine.core.op import OPS, Op
from ..engine.core.slots import find
from .markup import write_code

ROOT = Path(__file__).parents[2]


class Code(Display):
    """Source text with its file and line; highlighted in a notebook, plain in a terminal."""

    def __init__(self, parts: list[tuple[str, int, str]]):
        self.parts = parts
        self.text = "\n".join(f"# {file}:{line}\n{text}" for file, line, text in parts)

    def html(self) -> str:
        return "".join(write_code(text, head=f"{f}, line {n}") for f, n, text in self.parts)


def code(*things) -> Code:
    """The source of functions, classes, or operators and slots (by name or as objects).

    An operator shows its formula and its derivative rules, a slot the function plugged in.

    >>> from minipaddle import viz
    >>> "m.tanh(x)" in repr(viz.code("tanh"))
    True
    """
    parts = []
    for thing in things:
        if isinstance(thing, str):
            thing = OPS[thing] if thing in OPS else find(thing).get()
        held = getattr(thing, "op", None)  # a public function knows its operator
        thing = held if isinstance(held, Op) else thing
        if isinstance(thing, Op):
            parts += [source_of(thing.body), *map(source_of, rules_of(thing))]
        else:
            parts.append(source_of(getattr(thing, "fn", thing)))
    return Code(list(dict.fromkeys(parts)))


def rules_of(op: Op) -> list:
    return [op.rules[k].fn for k in sorted(op.rules)]


def source_of(thing) -> tuple[str, int, str]:
    """(file, line, text) of a definition; the file relative to the repository when it is inside.

    For a lambda it is the whole statement that holds it: `relu.vjp(lambda g, out: ...)`.
    """
    thing = inspect.unwrap(thing)
    path = Path(inspect.getsourcefile(thing))
    if getattr(thing, "__name__", "") == "<lambda>":
        text = "".join(inspect.findsource(thing)[0])
        first = thing.__code__.co_firstlineno
        statement = next(s for s in ast.parse(text).body if s.lineno <= first <= s.end_lineno)
        text, line = ast.get_source_segment(text, statement) + "\n", statement.lineno
    else:
        lines, line = inspect.getsourcelines(thing)
        text = inspect.cleandoc("\n" + "".join(lines)) + "\n"
    shown = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return shown, max(line, 1), text
