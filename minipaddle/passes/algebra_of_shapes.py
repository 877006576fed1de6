"""Algebra of casts, movements and sums: rules that the pass `algebra` applies too.

Casts disappear where the first one loses nothing. The order in which a sum adds is free, as it is
in NumPy and in a compiled loop, so two sums become one.
"""

from __future__ import annotations

from ..engine.core.dtype import FLOATS
from ..engine.ops.elementwise import cast
from ..engine.ops.movement import broadcast_to, concat, reshape, slice_, transpose
from ..engine.ops.reduction import sum
from ..engine.passes.algebra import OTHERS, itself
from ..engine.passes.patterns import RewriteRule
from ..engine.passes.registry import LOOKS_FOR
from ..ops.products import product
from .concat_of_slices import places_of


def lossless(x, p, q) -> bool:
    """Whether the first cast keeps different values different."""
    a, b = x.spec.dtype, p
    if a.kind == "b" or a == b:
        return True
    if a in FLOATS or b in FLOATS:
        return a in FLOATS and b in FLOATS and a.itemsize < b.itemsize
    return a.kind == b.kind and a.itemsize <= b.itemsize


def whole(x, index) -> bool:
    """Whether a slice takes every element in order."""
    return all(places_of(k, n) == (0, n, 1) for k, n in zip(index, x.spec.shape))


def both(first: tuple, second: tuple, ndim: int) -> tuple:
    """The axes of x that two sums reduce, where the first removes its axes."""
    left = [d for d in range(ndim) if d not in first]
    return tuple(sorted({*first, *(left[d] for d in second)}))


OTHERS += [
    # casts
    RewriteRule(lambda x, *, p: cast(x, dtype=p), itself, lambda x, p: x.spec.dtype == p),
    RewriteRule(lambda x, *, p, q: cast(cast(x, dtype=p), dtype=q),
         lambda x, *, p, q: cast(x, dtype=q), lossless),
    # movement
    RewriteRule(lambda x, *, p: reshape(x, shape=p), itself, lambda x, p: x.spec.shape == p),
    RewriteRule(lambda x, *, p, q: reshape(reshape(x, shape=p), shape=q),
         lambda x, *, p, q: reshape(x, shape=q), lambda x, p, q: -1 not in q),
    RewriteRule(lambda x, *, p: broadcast_to(x, shape=p), itself, lambda x, p: x.spec.shape == p),
    RewriteRule(lambda x, *, p, q: broadcast_to(broadcast_to(x, shape=p), shape=q),
         lambda x, *, p, q: broadcast_to(x, shape=q)),
    RewriteRule(lambda x, *, index: slice_(x, index=index), itself, whole),
    RewriteRule(lambda x, *, axis: concat(x, axis=axis), itself),
    RewriteRule(lambda x, y, *, x_perm, y_perm, out_perm, p:
             transpose(product(x, y, x_perm=x_perm, y_perm=y_perm, out_perm=out_perm), perm=p),
         lambda x, y, *, x_perm, y_perm, out_perm, p:
             product(x, y, x_perm=x_perm, y_perm=y_perm, out_perm=tuple(out_perm[d] for d in p)),
         alone=True),
    # sums
    RewriteRule(lambda x, *, a, b: sum(sum(x, axis=a, keepdim=True), axis=b, keepdim=True),
         lambda x, *, a, b: sum(x, axis=tuple(sorted({*a, *b})), keepdim=True)),
    RewriteRule(lambda x, *, a, b: sum(sum(x, axis=a, keepdim=False), axis=b, keepdim=False),
         lambda x, *, a, b: sum(x, axis=both(a, b, x.spec.ndim), keepdim=False)),
]  # fmt: skip
LOOKS_FOR["algebra"] += [rule.op for rule in OTHERS]
