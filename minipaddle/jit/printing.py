"""Lines for a reader: `print` in a program prints when the program runs; a log is refused there."""

import builtins

from ..eager.numbers import Number, plain
from ..engine.core.dispatch import current
from ..engine.core.dtype import bool_
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.eager.tensor import Tensor
from ..engine.jit.calling import CHECKS, TABLE
from ..engine.jit.refusal import refusal
from .texts import ProgramText, join_parts, take_apart, text


@opaque
def show(m, *values, parts, sep, end):
    """Print `parts` while the program runs: texts, the `stop_gradient` of a tensor among the
    values, pieces of a text (see `texts.py`).
    """
    waiting = iter(values)
    builtins.print(*[format_part(waiting, part) for part in parts], sep=sep, end=end)
    return m.asarray(True)


def format_part(arrays, part) -> str:
    """A text, the pieces of one, or the next array as `print` shows a tensor."""
    if isinstance(part, str):
        return part
    return join_parts(part if isinstance(part, tuple) else ((part, ord("s"), ""),), arrays)


@show.shape
def _(*values, parts, sep, end):
    return Spec((), bool_.numpy)


show.effect = True  # no pass may drop, double or reorder it


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
    values, parts = [], []
    for x in args:
        x = text((x, ord("s"), "")) if isinstance(x, Number) else x
        if isinstance(x, Tensor):
            own, part = [x], x.stop_gradient
        else:
            own, part = take_apart(x) if type(x) is ProgramText else ([], str(x))
        values += own
        parts.append(part)
    sep, end = " " if sep is None else sep, "\n" if end is None else end
    show(*map(plain_value, values), parts=tuple(parts), sep=sep, end=end)


def plain_value(x):
    """A value as `show` takes it: a float in double precision."""
    return plain(x) if isinstance(x, Number) else x


LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}


def check_log(function) -> None:
    """Refuse a function that writes a line for a reader."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    if name in LEVELS and module in ("logging", "warnings", "_warnings"):
        raise refusal(
            f"{module}.{name} in a branch or a loop that depends on a tensor: it would write a "
            "line while the program is traced, not when it runs",
            hint="print() there, or log outside",
        )


CHECKS.append(check_log)
TABLE[print] = print_
