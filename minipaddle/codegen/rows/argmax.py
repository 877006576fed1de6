"""The place of the largest or the smallest element along an axis, in C.

The first of equal elements counts, and a NaN is before all others, as in NumPy.
"""

from __future__ import annotations

from ...engine.codegen.kernel import emits, read_template
from ...engine.codegen.scalar import wide
from .axis_lines import fill_kernel, lines_of
from .scans import place_type

ROW = read_template("best_in_row.c", __file__)
"""The last axis: the best block of a row, then the place in that block."""

ACROSS = read_template("best_across.c", __file__)
"""An axis before the last: a block of neighbouring lines, which are vectors."""


SIGNS = {"argmax": ">", "argmin": "<"}
"""The comparison that makes an element better than another, by operator."""


@emits(*SIGNS)
def emit_extreme(record, name: str):
    """The kernel of `argmax` and of `argmin`."""
    x = record.inputs[0].spec
    lines = lines_of(x.shape, record.attrs["axis"])
    words = {"SIGN": SIGNS[record.op.name], "PLACE": place_type(lines)}
    words["LANES"] = 64 // wide(x.dtype).itemsize
    if not record.spec.size:
        return fill_kernel(record, name, "", x.dtype)
    text = ROW if lines.inner == 1 else ACROSS
    return fill_kernel(record, name, text, x.dtype, **words, **lines.words)
