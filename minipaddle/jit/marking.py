"""The last line of a report among its neighbours, with a mark below the expression, and the layers
of a record that failed in a program.
"""

import linecache

from ..engine.core.errors import line_of
from ..engine.jit.user_lines import ENDINGS, HERE, MARKED, FrameLine
from ..nn.layer.tree import layers_of, path_of

CONTEXT = 2
"""How many lines before and after the last one are shown."""
ENDLESS = """\
  a recursion that only a tensor ends is endless while it is traced: both sides are
  try: a `while` loop, or let a Python number end it"""


def mark_line(line: FrameLine) -> list[str]:
    """The line among its neighbours, the expression underlined."""
    name, first = line.code.co_filename, line.code.co_firstlineno
    last = max([line.line, *(n for *_, n in line.code.co_lines() if n)])
    numbers = range(max(first, line.line - CONTEXT), min(last, line.line + CONTEXT) + 1)
    around = {n: linecache.getline(name, n).rstrip() for n in numbers}
    if not any(around.values()):
        return [f"        {HERE}"]
    indent = min(len(t) - len(t.lstrip()) for t in around.values() if t)
    out = []
    for n, text in around.items():
        out.append(f"        {text[indent:]}".rstrip())
        if n == line.line:
            begin = len(text) - len(text.lstrip()) if line.start is None else line.start
            end = len(text) if line.end is None else line.end
            out.append(" " * (8 + begin - indent) + "~" * max(end - begin, 1) + f" {HERE}")
    while out and not out[-1]:
        out.pop()
    return out


def end_report(error: BaseException) -> list[str]:
    """The layer that a record of a program is in, and the lines that called it; why a recursion
    does not end.
    """
    if isinstance(error, RecursionError):
        return [ENDLESS]
    scope = getattr(getattr(error, "record", None), "scope", None)
    lines = dict.fromkeys(line_of(where) for *_, where in layers_of(scope) if where is not None)
    called = ["", f"    in {path_of(scope)}, called at", *(f"        {line}" for line in lines)]
    return called if lines else []


MARKED.append(mark_line)
ENDINGS.append(end_report)
