"""Means and norms in small operators: functions that bodies of norms call, the mean of whole
numbers with the rules of NumPy, whose sum is exact, and whose quotient is rounded to 0; distances.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dtype import FLOATS, float64, int64
from ..engine.ops import movement, reduction
from ..engine.ops.elementwise import sqrt, square
from ..engine.passes.decompose import FUNCTIONS, RULES, CannotDecompose, by_body
from ..engine.passes.registry import LOOKS_FOR
from ..ops import norm


def mean(record, x):
    """Σ x / n in double."""
    if record.dtype in FLOATS:
        return by_body(record, x)
    axis, shape = record.attrs["axis"], record.inputs[0].shape
    count = prod(shape[d] for d in axis)
    total = reduction.sum(x.astype(int64.numpy), axis=axis, keepdim=record.attrs["keepdim"])
    return (total.astype(float64.numpy) / count).astype(record.dtype)


def distances(record, x, y):
    """The norm of each difference of rows."""
    (*a, m, n), (*b, k, _) = x.spec.shape, y.spec.shape
    apart = movement.reshape(x, shape=(*a, m, 1, n)) - movement.reshape(y, shape=(*b, 1, k, n))
    return sqrt(reduction.sum(square(apart), axis=(apart.spec.ndim - 1,), keepdim=False))


RULES[reduction.mean], RULES[norm.distances] = mean, distances
LOOKS_FOR["decompose"].append(norm.distances)


def expand_dims(x, axes):
    """x with axes of size 1 at these places."""
    shape = list(x.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return x.reshape(shape)


def einsum(rule: str, x, y):
    """Σ x·y, where x and y have the same axes: bodies ask for no other sum of products."""
    letters, result = rule.split("->")
    left, right = letters.split(",")
    if left != right:
        raise CannotDecompose(rule)
    return (x * y).sum(tuple(d for d, c in enumerate(left) if c not in result))


FUNCTIONS.update(expand_dims=expand_dims, einsum=einsum)
