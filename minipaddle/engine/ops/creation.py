"""Arrays from attributes alone: operators without inputs. And the copy."""

from __future__ import annotations

from ..core.op import movement, opaque
from ..core.record import Spec


@opaque
def full(m, *, shape, value, dtype):
    """An array of `shape` with `value` in every place."""
    return m.full(shape, value, dtype=dtype)


full.shape(lambda shape, value, dtype: Spec(tuple(shape), dtype))
full.joins(lambda i, shape, value, dtype: (value, []))


def number(i, start, step):
    """Number i of a progression."""
    i = i if step == 1 else i * step
    return i if start == 0 else i + start


@opaque
def arange(m, *, size, dtype, start=0, step=1):
    """start, start + step, start + 2 step, … : `size` numbers."""
    return number(m.arange(size), start, step).astype(dtype, copy=False)


arange.shape(lambda size, dtype, start, step: Spec((size,), dtype))
arange.makes(lambda i, size, dtype, start, step: number(i, start, step))


@movement
def assign(m, x):
    """The same values in memory of their own."""
    return m.array(x, order="C")


assign.shape(lambda x: x)
assign.index(lambda i, x: i)
assign.view = False
assign.alias = lambda record: True
assign.vjp(lambda g: g)
