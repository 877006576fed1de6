"""Arithmetic and mathematics. Every elementwise operator has its face here without a second edit."""

from __future__ import annotations

from ..core.op import OPS, Elementwise
from ..core.spec import normalize_axes
from ..ops import reduction
from .face import face

FACES = {op.name: face(op) for op in OPS.values() if isinstance(op, Elementwise)}
globals().update(FACES)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):
    """Sum over `axis` (an int, a list, or None for all axes).

    Integers and booleans are summed in int64. Source: Paddle API `paddle.sum`.

    >>> import minipaddle as paddle
    >>> paddle.sum(paddle.ones([2, 3]), axis=1).tolist()
    [3.0, 3.0]
    """
    x = x if dtype is None else x.astype(dtype)
    return reduction.sum(x, axis=normalize_axes(axis, x.spec.ndim), keepdim=keepdim)


__all__ = [*FACES, "sum"]
