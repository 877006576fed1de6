"""Rows of a table are looked up where a product of one-hot rows would pick them out.

    matmul(cast(places == arange(n)), table)   →   take(table, places), and zeros for places outside

`places` has one whole number for each row, so n products become one row that is copied. A column
of the table that is not finite is NaN in the product of any row: zero times infinity is NaN.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ops.creation import arange
from ..engine.ops.elementwise import cast, where
from ..engine.ops.gather import take
from ..engine.ops.linalg import matmul
from ..engine.ops.logic import equal
from ..engine.ops.movement import broadcast_to, reshape
from ..engine.ops.reduction import sum
from ..engine.passes.rewriting import made_by
from ..ops.affine import linear


def find_places(ones: Record | None) -> Record | None:
    """The whole numbers [..., 1] of one-hot rows [..., n]; None for any other value."""
    compared = ones.inputs[0] if ones is not None and ones.op is cast else None
    if compared is None or compared.op is not equal:
        return None
    places, row = compared.inputs
    counted = row
    while counted.op in (reshape, broadcast_to):
        counted = counted.inputs[0]
    if counted.op is not arange or (counted.attrs["start"], counted.attrs["step"]) != (0, 1):
        return None
    one_each = places.shape[-1:] == (1,) and places.dtype.kind in "iu"
    whole = row.shape[-1:] == counted.shape and row.spec.size == counted.spec.size
    return places if one_each and whole else None


def look_up(record: Record, x, table):
    """The rows of a table for a product that picks them out; None for another product."""
    places = find_places(made_by(x)) if record.op in (matmul, linear) else None
    if places is None or not x.spec.dtype == table.spec.dtype == record.dtype:
        return None
    if record.attrs.get("transpose") or table.spec.ndim != 2:
        return None
    places, n = current.top.builder.tensor(places), table.spec.shape[0]
    inside = (places >= 0) & (places < n)
    rows = take(table, reshape(where(inside, places, 0), shape=record.shape[:-1]), axis=0)
    return where(inside, rows, 0.0) + sum(table * 0.0, axis=(0,), keepdim=False)
