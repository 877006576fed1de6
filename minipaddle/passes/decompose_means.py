"""Means in small operators: functions that bodies of norms call, and the mean of whole numbers with
the rules of NumPy, whose sum is exact, and whose quotient is rounded to 0.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dtype import FLOATS, float64, int64
from ..engine.ops import reduction
from ..engine.passes.decompose import FUNCTIONS, RULES, CannotDecompose, by_body


def mean(record, x):
    """Σ x / n in double."""
    if record.dtype in FLOATS:
        return by_body(record, x)
    axis, shape = record.attrs["axis"], record.inputs[0].shape
    count = prod(shape[d] for d in axis)
    total = reduction.sum(x.astype(int64.numpy), axis=axis, keepdim=record.attrs["keepdim"])
    return (total.astype(float64.numpy) / count).astype(record.dtype)


RULES[reduction.mean] = mean


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
