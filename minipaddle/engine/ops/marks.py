"""Marks on values: where they lie on a mesh of ranks, and values that wait for others."""

from __future__ import annotations

from ..core.op import opaque


@opaque
def reshard(m, x, *, mesh, placements):
    """x, which lies on a mesh of ranks as `placements` say from here on; None: as before."""
    return x


reshard.shape(lambda x, *, mesh, placements: x)
reshard.vjp(lambda g, x: placed_as(g, x))
reshard.view = True


@opaque
def placed_as(m, x, y):
    """x, which lies from here on as y does: a gradient, as its value. Of terms each is a copy."""
    return x


placed_as.shape(lambda x, y: x)
placed_as.vjp(x=lambda g, x: placed_as(g, x))
placed_as.view = True


@opaque
def after(m, x, *others):
    """x itself, available once all others are computed: its users run after them."""
    return x


after.shape(lambda x, *others: x)
after.vjp(lambda g, k: g if k == 0 else None)
after.view = True
after.evaluate = lambda m, arrays, attrs: arrays[0]  # whatever dtypes the others have
