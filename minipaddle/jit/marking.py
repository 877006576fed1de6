"""The last line of a report among its neighbours, with a mark below the expression."""

from __future__ import annotations

import linecache

from ..engine.jit.user_lines import HERE, MARKED, FrameLine

CONTEXT = 2
"""How many lines before and after the last one are shown."""


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


MARKED.append(mark_line)
