"""What a program does besides computing: it prints, and it checks what it was told to hold."""

from __future__ import annotations

import builtins
import threading

from ..core.dispatch import current
from ..core.dtype import bool_
from ..core.errors import PACKAGE, inside
from ..core.op import Op, opaque
from ..core.record import Spec
from ..eager.printing import format_tensor
from ..eager.tensor import Tensor, wrap
from .refusal import refusal

BOOL = Spec((), bool_.numpy)


@opaque
def check(m, held, *, text, kind):
    """`held`; if it is false, the error of Python called `kind` is raised, with `text`."""
    if not held.all():
        raise getattr(builtins, kind)(*[text] * bool(text))
    return held


@check.shape
def _(held, *, text, kind):
    return held


class Catching(threading.local):
    """What the `try` statements around catch on this thread, the innermost last."""

    def __init__(self):
        self.open: list = []


catching = Catching()


def check_held(held, text: str, kind: type, error: Exception | None = None):
    """`held`; the program raises the error of Python `kind` if it is false, for `error`."""
    if any(isinstance(error or kind(text), kinds()) for kinds in catching.open):
        raise refusal(
            f"{type(error or kind(text)).__name__} is raised under a condition on a tensor, inside "
            "a `try` that catches it: when the program runs nothing can catch it",
            hint="write the handler as the other side of the condition",
        )
    return check(held, text=text, kind=kind.__name__)


def check_raised(held, error: Exception) -> None:
    """Let the program raise an error like this one if `held` is false."""
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
    """The user's line that raised an error, as a record keeps it."""
    steps = [t for t in walk(error.__traceback__) if not inside(t.tb_frame)]
    return (steps[-1].tb_frame.f_code, steps[-1].tb_lasti) if steps else None


def walk(traceback):
    """The steps of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


@opaque
def show(m, *values, parts, sep, end):
    """Print `parts` while the program runs; for each value one says its `stop_gradient`."""
    waiting = iter(values)
    texts = [part if isinstance(part, str) else shown(next(waiting), part) for part in parts]
    builtins.print(*texts, sep=sep, end=end)
    return m.asarray(True)


def shown(array, stop_gradient: bool) -> str:
    """An array as `print` shows a tensor."""
    x = wrap(array)
    x.stop_gradient = stop_gradient
    return format_tensor(x)


@show.shape
def _(*values, parts, sep, end):
    return BOOL


EFFECTS: tuple[Op, ...] = (check, show)
"""Operators that are there for what they do: no pass may drop, double or reorder them."""
for op in EFFECTS:
    op.effect = True


def print_(*args, sep=" ", end="\n", file=None, flush=False) -> None:
    """`print`: in a program it prints when the program runs, as often as that is."""
    if file is not None and current.top.tracing and current.top.builder is not current.top.root:
        raise refusal(
            "print(file=...) in a branch or a loop that depends on a tensor: it would write while "
            "the program is traced, not when it runs",
            hint="leave `file` out, or print outside",
        )
    if file is not None or not current.top.tracing:
        builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
        return
    tensors = [x for x in args if isinstance(x, Tensor)]
    parts = tuple(x.stop_gradient if isinstance(x, Tensor) else str(x) for x in args)
    sep, end = " " if sep is None else sep, "\n" if end is None else end
    show(*tensors, parts=parts, sep=sep, end=end)
