"""Lines for a reader: `print` in a program prints when the program runs; a log is refused there."""

from __future__ import annotations

import builtins

from ..engine.core.dispatch import current
from ..engine.core.dtype import bool_
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.eager.tensor import Tensor, wrap
from ..engine.jit.calling import CHECKS, TABLE
from ..engine.jit.refusal import refusal


@opaque
def show(m, *values, parts, sep, end):
    """Print `parts` while the program runs; for each value one says its `stop_gradient`."""
    waiting = iter(values)
    texts = [part if isinstance(part, str) else format_array(next(waiting), part) for part in parts]
    builtins.print(*texts, sep=sep, end=end)
    return m.asarray(True)


def format_array(array, stop_gradient: bool) -> str:
    """An array as `print` shows a tensor."""
    x = wrap(array)
    x.stop_gradient = stop_gradient
    return repr(x)


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
    tensors = [x for x in args if isinstance(x, Tensor)]
    parts = tuple(x.stop_gradient if isinstance(x, Tensor) else str(x) for x in args)
    sep, end = " " if sep is None else sep, "\n" if end is None else end
    show(*tensors, parts=parts, sep=sep, end=end)


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
