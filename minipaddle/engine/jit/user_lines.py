"""Errors of conversion, of tracing and of runs, reported with the lines of the user's file.

The frames of this package are folded into a count, and a function appears once, however many blocks
its conversion made of it. The last line is shown among its neighbours, with a mark.
"""

from __future__ import annotations

import linecache
import os
from itertools import groupby
from types import CodeType
from typing import NamedTuple

from ..core.errors import PACKAGE, inside
from ..core.slots import slot

TITLE = "In transformed code:"
HERE = "<--- HERE"


class FrameLine(NamedTuple):
    """The position of a frame."""

    code: CodeType
    line: int
    start: int | None  # columns, if the line holds all of the expression
    end: int | None

    @property
    def text(self) -> str:
        return linecache.getline(self.code.co_filename, self.line).rstrip()


def in_user_lines(error: Exception) -> Exception:
    """The error itself, with the report as a note; its traceback begins anew.

    TRANSLATOR_DISABLE_NEW_ERROR=1 leaves errors as they are.
    """
    if os.environ.get("TRANSLATOR_DISABLE_NEW_ERROR") == "1":
        return error
    if not any(note.startswith(TITLE) for note in getattr(error, "__notes__", ())):
        error.add_note(report(error))
    return error.with_traceback(None)


def report(error: BaseException) -> str:
    """The user's lines that lead to an error."""
    lines, folded = user_lines(error.__traceback__)
    where = getattr(getattr(error, "record", None), "where", None)
    if type(where) is tuple:  # raised by a record of a program that ran: its line
        lines.append(FrameLine(where[0], *place(*where[:2])))
    out, last = [TITLE, ""], lines[-1] if lines else None
    for line, same in groupby(lines):
        code, count = line.code, len(list(same))
        out.append(f'    File "{code.co_filename}", line {line.line}, in {code.co_name}')
        out += MARKED[-1](line) if line is last else [f"        {line.text.strip()}"]
        out += [f"        (and so on, {count} times)"] * (count > 1)
    if folded:
        out += ["", f"    ({folded} frames of {PACKAGE})"]
    return "\n".join([*out, *ENDINGS[-1](error)])


@slot("jit.user_lines")
def user_lines(traceback) -> tuple[list[FrameLine], int]:
    """The user's frames, outermost first, and how many others there are."""
    lines: list[FrameLine] = []
    folded, between = 0, False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if inside(traceback.tb_frame) or code.co_filename == "<string>":  # made by a named tuple
            folded, between = folded + 1, True
        else:
            if lines and between and holds(lines[-1].code, code):
                lines.pop()  # a block of the same function: its own line says more
            lines.append(FrameLine(code, *place(code, traceback.tb_lasti)))
            between = False
        traceback = traceback.tb_next
    return lines, folded


@slot("jit.place")
def place(code: CodeType, offset: int) -> tuple:
    """The line of an instruction, and the columns of its expression if it is on one line."""
    first, last, start, end = list(code.co_positions())[offset // 2]
    return (first, start, end) if first == last else (first, None, None)


@slot("jit.block_of")
def holds(outer: CodeType, inner: CodeType) -> bool:
    """Whether a function was created inside another's code."""
    codes = [c for c in outer.co_consts if isinstance(c, CodeType)]
    return inner in codes or any(holds(c, inner) for c in codes)


MARKED = [lambda line: [f"        {line.text.strip()}  {HERE}"]]
"""The last one shows the last line of a report."""
ENDINGS = [lambda error: []]
"""The last one has the lines that a report ends with."""
