"""Values that wait: what is computed from them can not be computed earlier."""

from __future__ import annotations

from ..core.op import opaque


@opaque
def after(m, x, *others):
    """x as it is, once all others are there: what is made of it is made again after them."""
    return x


after.shape(lambda x, *others: x)
after.vjp(lambda g, k: g if k == 0 else None)
after.view = True
after.evaluate = lambda m, arrays, attrs: arrays[0]  # whatever dtypes the others have
