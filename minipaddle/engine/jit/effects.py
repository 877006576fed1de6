"""The checks of a program: conditions under which a run raises an error of Python."""

from __future__ import annotations

import builtins

from ..core.dispatch import current
from ..core.op import opaque
from .refusal import refusal


@opaque
def check(m, held, *, text, kind):
    """`held`; if it is false, the error of Python called `kind` is raised, with `text`."""
    if not held.all():
        raise getattr(kind, "error", None) or getattr(builtins, kind)(*[text] * bool(text))
    return held


check.effect = True  # no pass may drop, double or reorder it


@check.shape
def _(held, *, text, kind):
    return held


class ErrorKind(str):
    """The name of a kind of error; in the process that traced a program also the `error` itself."""

    error: Exception | None = None


def check_held(held, text: str, kind: type, error: Exception | None = None, own: bool = False):
    """`held`; if it is false, the program raises Python's error `kind` in place of `error`; the
    process that traced it raises its `own` error.
    """
    if any(isinstance(error or kind(text), kinds()) for kinds in current.top.handlers):
        raise refusal(
            f"{type(error or kind(text)).__name__} is raised under a condition on a tensor, inside "
            "a `try` that catches it: when the program runs nothing can catch it",
            hint="write the handler as the other side of the condition",
        )
    name = ErrorKind(kind.__name__)
    name.error = error if own else None
    return check(held, text=text, kind=name)
