"""What a program checks when it runs: conditions under which it raises an error of Python."""

from __future__ import annotations

import builtins

from ..core.dispatch import current
from ..core.errors import PACKAGE, inside
from ..core.op import opaque
from .refusal import refusal


@opaque
def check(m, held, *, text, kind):
    """`held`; if it is false, the error of Python called `kind` is raised, with `text`."""
    if not held.all():
        raise getattr(builtins, kind)(*[text] * bool(text))
    return held


check.effect = True  # no pass may drop, double or reorder it


@check.shape
def _(held, *, text, kind):
    return held


def check_held(held, text: str, kind: type, error: Exception | None = None):
    """`held`; if it is false, the program raises Python's error `kind` in place of `error`."""
    if any(isinstance(error or kind(text), kinds()) for kinds in current.top.handlers):
        raise refusal(
            f"{type(error or kind(text)).__name__} is raised under a condition on a tensor, inside "
            "a `try` that catches it: when the program runs nothing can catch it",
            hint="write the handler as the other side of the condition",
        )
    return check(held, text=text, kind=kind.__name__)


def check_raised(held, error: Exception) -> None:
    """Make the program raise an error like this one if `held` is false."""
    own, text = type(error), error.args[0] if error.args else ""
    text = text if isinstance(text, str) else str(error)
    kind = next(k for k in own.__mro__ if getattr(builtins, k.__name__, None) is k)
    try:
        kind(text)
    except TypeError:  # it takes more than a text
        kind = RuntimeError
    if kind is not own and own.__module__.partition(".")[0] != PACKAGE:
        text = f"{own.__name__}: {error}"
    held = check_held(held, text, kind, error)
    held.array.record.where = raised_at(error) or held.array.record.where


def raised_at(error: Exception) -> tuple | None:
    """The user's line that raised an error, in the form that records have."""
    steps = [t for t in traceback_steps(error.__traceback__) if not inside(t.tb_frame)]
    return (steps[-1].tb_frame.f_code, steps[-1].tb_lasti) if steps else None


def traceback_steps(traceback):
    """The steps of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
