"""Errors that teach: the fact, what was expected, the line in the user's file, what to try."""

from __future__ import annotations

import sys

PACKAGE = __name__.partition(".")[0]


def line_of(where) -> str:
    """`file.py:12, in train` for a (code object, instruction offset) pair as records keep it; a
    third entry says what a compiler wrote the record for.

    A program that was read from a file has this text itself.
    """
    if isinstance(where, str):
        return where
    code, line, why = where[0], line_number(where), "".join(f", for {x}" for x in where[2:])
    if "ipykernel_" in code.co_filename:  # a file of that name exists for the kernel alone
        return f"line {line} of a notebook cell{why}"
    return f"{code.co_filename}:{line}, in {code.co_name}{why}"


def line_number(where) -> int:
    """The line in its file of a (code object, instruction offset) pair."""
    code, offset = where[:2]
    return next((n for start, end, n in code.co_lines() if start <= offset < end and n), 0)


BETWEEN = {PACKAGE, "contextlib"}
"""Modules between the user's line and an operator: `contextlib` around a decorator."""


def inside(frame) -> bool:
    """Whether a frame belongs to this package, or to code between it and the user."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN


def user_frame():
    """The innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame = frame.f_back  # `inside`, written out: each record asks for its line
    return frame


def caller() -> tuple:
    """The user's line that is running, as (code object, instruction offset)."""
    frame = user_frame()
    return frame.f_code, frame.f_lasti


def find_caller(depth: int = 1) -> str:
    """The function of this package that the user's code called, such as `softmax`."""
    frame, name = sys._getframe(depth), ""
    while frame and inside(frame):
        if frame.f_code.co_name[0] not in "_<":  # neither a lambda nor `__call__`
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name


def teach(what: str, expected: str = "", *, hint: str = "", where=None) -> str:
    """Lay out one error message: the fact, then what was expected, the line, and what to try.

    The line is the user's: that of the wrong call, or `where` the user's code made a record.
    """
    lines = [what]
    if expected:
        lines.append(f"  expected: {expected}")
    lines.append(f"  at: {line_of(where or caller())}")
    if hint:
        lines.append(f"  try: {hint}")
    return "\n".join(lines)


def value_error(what: str, expected: str = "", **more) -> ValueError:
    """A ValueError with the message that `teach` lays out of the same arguments."""
    return ValueError(teach(what, expected, **more))


def type_error(what: str, expected: str = "", **more) -> TypeError:
    """A TypeError with the message that `teach` lays out of the same arguments."""
    return TypeError(teach(what, expected, **more))


def runtime_error(what: str, expected: str = "", **more) -> RuntimeError:
    """A RuntimeError with the message that `teach` lays out of the same arguments."""
    return RuntimeError(teach(what, expected, **more))


def not_supported(what: str, expected: str = "", **more) -> NotImplementedError:
    """A NotImplementedError with the message that `teach` lays out of the same arguments."""
    return NotImplementedError(teach(what, expected, **more))
