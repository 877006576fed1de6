"""Forms of scans: every element combines all elements up to its place, in log₂ n steps."""

from collections.abc import Callable

import numpy

from ..formulas import MODULE, Scalar, scalar
from ..graph import INT64, OnnxGraph, OnnxValue
from ..table import LAST, form, numbers


def doubling(g: OnnxGraph, xs: list, axis: int, combine: Callable) -> list[Scalar]:
    """The scan of several arrays: `combine(early, late)` joins places that are 1, 2, 4, … apart."""
    (n,) = numbers(xs[0].shape[axis : axis + 1], "the sizes of scanned axes")
    step = 1
    cut = lambda x, start, stop: scalar(g("Slice", x, (start,), (stop,), (axis,)))
    while step < n:
        early, late = ([cut(x, *ends) for x in xs] for ends in ((0, n - step), (step, LAST)))
        joined = combine(early, late)
        parts = zip(xs, joined, strict=True)
        xs = [g("Concat", cut(x, 0, step), y, axis=axis, shape=x.shape) for x, y in parts]
        step *= 2
    return [scalar(x) for x in xs]


def flip_axis(g: OnnxGraph, x: OnnxValue, axis: int) -> OnnxValue:
    """x from its end to its start."""
    return g("Slice", x, (-1,), (-LAST,), (axis,), (-1,), shape=x.shape)


@form("recurrence")
def _(g, a, x, *, axis, reverse):
    def combine(early, late):
        (a, x), (b, y) = early, late
        return b * a, y + b * x

    a = a if a.shape == x.shape else g("Expand", a, x.shape, shape=x.shape)
    pair = [flip_axis(g, v, axis) if reverse else v for v in (a, x)]
    y = doubling(g, pair, axis, combine)[1]
    return flip_axis(g, y, axis) if reverse else y


@form("cumprod")
def _(g, x, *, axis, reverse):
    x = flip_axis(g, x, axis) if reverse else x
    (y,) = doubling(g, [x], axis, lambda early, late: [early[0] * late[0]])
    return flip_axis(g, y, axis) if reverse else y


@form("logcumsumexp")
def _(g, x, *, axis):
    return doubling(g, [x], axis, lambda early, late: [MODULE.logaddexp(late[0], early[0])])[0]


def running_place(ahead: Callable):
    """The place of the best element so far: the latest of equal ones, and a NaN for good."""

    def rule(g, x, *, axis):
        def combine(early, late):
            won = ahead(early[0], late[0])
            won = won | (early[0] != early[0]) if x.dtype.kind == "f" else won
            return [MODULE.where(won, a, b) for a, b in zip(early, late, strict=True)]

        (n,) = numbers(x.shape[axis : axis + 1], "the sizes of scanned axes")
        column = numpy.arange(n).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        places = g("Expand", column, tuple(x.shape), dtype=INT64, shape=x.shape)
        return doubling(g, [x, places], axis, combine)[1]

    return rule


form("cummax_index")(running_place(lambda a, b: a > b))
form("cummin_index")(running_place(lambda a, b: a < b))
