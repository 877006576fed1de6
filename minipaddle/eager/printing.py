"""Tensors as text, laid out as Paddle does."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..engine.core.dispatch import current
from ..engine.core.spec import leaves
from ..engine.eager.tensor import Tensor
from ..engine.ir.builder import SymbolicArray
from ..engine.sharding.array import sharded


@dataclass(frozen=True)
class PrintOptions:
    """The settings of `set_printoptions`."""

    precision: int = 8  # digits after the point
    threshold: int = 1000  # more elements than this are summarised
    edgeitems: int = 3  # how many stay at each end of an axis then
    sci_mode: bool = False  # 1.0e+00 instead of 1.0
    linewidth: int = 80


options = PrintOptions()


def set_printoptions(precision=None, threshold=None, edgeitems=None, sci_mode=None, linewidth=None):
    """How tensors are printed; options not given stay as they are.

    >>> paddle.set_printoptions(precision=2)
    >>> paddle.to_tensor([0.5, 1.0])
    Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
           [0.50, 1.  ])
    >>> paddle.set_printoptions(precision=8)
    """
    global options
    changes = {k: v for k, v in locals().items() if v is not None}
    options = replace(options, **changes)


def format_tensor(tensor) -> str:
    """`Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True, [1., 2.])`.

    Of a program that is written by hand, what is known before it runs.
    """
    shape, dtype = list(tensor.spec.shape), tensor.dtype.name
    if is_variable(tensor):
        name = "" if tensor._name is None else f"name={tensor.name}, "
        return f"Variable({name}shape={shape}, dtype={dtype}, stop_gradient={tensor.stop_gradient})"
    title = "Parameter containing:\n" if tensor.is_parameter else ""
    lies, array = "", tensor.array
    if sharded(array):
        where = f"process_mesh={array.view.mesh}, placements={[*array.placements]}"
        lies = f" {where}, GlobalDenseTensor="
    return (
        f"{title}Tensor(shape={shape}, dtype={dtype}, place={tensor.place!r}, "
        f"stop_gradient={tensor.stop_gradient},{lies}\n       {format_values(tensor.numpy())})"
    )


def is_variable(tensor) -> bool:
    """Whether it is a part of the program that is written by hand; of a trace, nothing is shown."""
    return current.top.by_hand and type(tensor.array) is SymbolicArray


def format_one(tensor, spec: str) -> str:
    """`f"{x:.2f}"`: the only element as a number, or the text of a tensor of several."""
    one = not tensor.spec.ndim and not is_variable(tensor)
    return format(tensor.item() if one else str(tensor), spec)


def format_values(array, indent: int = 7) -> str:
    """The values in brackets, for a place `indent` columns from the left.

    All are as wide as the widest; where some are below 0, the others leave room for a sign.
    """
    nested = shorten(array.tolist()) if array.size > options.threshold else array.tolist()
    if not array.ndim:
        return format_value(nested)
    values = [v for v in leaves(nested) if v is not ...]
    width = max((len(format_value(v)) for v in values), default=0)
    signed = any(v < 0 for v in values)

    def cell(v):
        text = format_value(v)
        room = signed and not v < 0 and len(text) < width
        return (" " * room + text).ljust(width)

    return layout(map_nested(cell, nested), array.ndim, indent + 1, width)


def format_value(value) -> str:
    """One number. A float without a fraction is written `2.`."""
    if not isinstance(value, float):
        return str(value)
    if options.sci_mode:
        return f"{value:.{options.precision}e}"
    return (
        f"{value:.0f}." if value % 1 == 0 or abs(value) == INF else f"{value:.{options.precision}f}"
    )


INF = float("inf")


def shorten(nested):
    """Nested lists with the middle of each long axis replaced by `...`."""
    if not isinstance(nested, list):
        return nested
    n = options.edgeitems
    if len(nested) > 2 * n:
        nested = [*nested[:n], ..., *nested[len(nested) - n :]]
    return [shorten(part) for part in nested]


def map_nested(f, nested):
    """`f` of every element of nested lists; the ellipsis of `shorten` becomes text."""
    if isinstance(nested, list):
        return [map_nested(f, part) for part in nested]
    return "..." if nested is ... else f(nested)


def layout(cells, ndim: int, indent: int, width: int) -> str:
    """Nested cells in brackets: rows broken at the line width, a blank line between matrices."""
    gap = "\n" + " " * indent
    if ndim == 1:
        per_line = max(1, (options.linewidth - indent + 1) // (width + 2))
        lines = [cells[i : i + per_line] for i in range(0, len(cells), per_line)]
        return f"[{f',{gap}'.join(map(', '.join, lines))}]"
    parts = [c if isinstance(c, str) else layout(c, ndim - 1, indent + 1, width) for c in cells]
    blank = "\n" * (ndim - 2)
    return f"[{f',{blank}{gap}'.join(parts)}]"


Tensor.register({"__repr__": format_tensor, "__format__": format_one})
