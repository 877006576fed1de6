"""Marks on values: their placements on a mesh of ranks, and values that wait for others."""

from __future__ import annotations

from ..core.op import opaque


@opaque
def reshard(m, x, *, mesh, placements):
    """x with these placements on a mesh of ranks from here on; None: as before."""
    return x


reshard.shape(lambda x, *, mesh, placements: x)
reshard.vjp(lambda g, x: placed_as(g, x))
reshard.view = True


@opaque
def placed_as(m, x, y):
    """x with y's placements from here on: a gradient like its value. Partial sums are copies."""
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
after.alias = lambda record: True
after.evaluate = lambda m, arrays, attrs: arrays[0]  # whatever dtypes the others have
