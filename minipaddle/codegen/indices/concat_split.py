"""Kernels of `concat`, `stack` and `split`: contiguous parts of arrays are copied."""

from __future__ import annotations

from functools import partial
from math import prod

from ...engine.codegen.kernel import emits, is_number
from ...engine.codegen.scalar import CannotWrite
from ..c_target import emit
from ..target import KernelTarget, kernel


@kernel("split")
def split(k: KernelTarget) -> None:
    """Cut an array along an axis."""
    x, axis = k.specs[0], k.attrs["axis"]
    copy_pieces(k, "out", k.outs, "in0", x, axis)


def join_arrays(k: KernelTarget) -> None:
    """Put arrays side by side along an axis, or along a new one. (In CUDA this is a nest.)"""
    if any(is_number(x) or x.dtype != k.out.dtype for x in k.record.inputs):
        raise CannotWrite("pieces of several dtypes")
    copy_pieces(k, "in", k.specs, "out0", k.out, k.attrs["axis"])


emits("concat", "stack")(partial(emit, join_arrays))


def copy_pieces(k: KernelTarget, parts: str, specs, target: str, x, axis: int) -> None:
    """Copy parts from, or to, their positions in the rows of a whole array x."""
    outer, start, moves = prod(x.shape[:axis]), 0, []
    row = x.size // max(outer, 1)
    for number, spec in enumerate(specs):
        n = spec.size // max(outer, 1)
        here = f"{parts}{number} + o * {n}", f"{target} + o * {row} + {start}"
        moves.append((*(here if parts == "out" else here[::-1]), n))
        start += n
    k.copies(outer, moves)
