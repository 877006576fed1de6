"""Operations on vectors of sizes that only a run knows."""

from math import prod

import numpy

from ...engine.core.dim import as_guarded, larger, smaller
from .shapes import clip_bound

SIZES = {
    "Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "Div": numpy.floor_divide,
    "Mod": lambda x, y, fmod=0: x % y, "Neg": numpy.negative,
    "Max": lambda *xs: fold_sizes(larger, xs), "Min": lambda *xs: fold_sizes(smaller, xs),
    "Identity": lambda x: x, "Floor": lambda x: x, "Ceil": lambda x: x,
    "Concat": lambda *xs, axis: numpy.concatenate(xs, axis),
    "Gather": lambda x, i, axis=0: numpy.take(x, i.astype(int), axis),
    "Reshape": lambda x, shape, allowzero=0: x.reshape([int(n) for n in shape]),
    "Unsqueeze": lambda x, axes: numpy.expand_dims(x, tuple(map(int, axes))),
    "Squeeze": lambda x, axes=None: x.squeeze(None if axes is None else tuple(map(int, axes))),
    "Equal": numpy.frompyfunc(lambda a, b: as_guarded(a, True) == as_guarded(b, True), 2, 1),
    "Where": lambda c, x, y: numpy.where(c.astype(bool), x, y),
    "ReduceProd": lambda x, axes=None, keepdims=1, noop_with_empty_axes=0: one(prod(x), keepdims),
    "ReduceSum": lambda x, axes=None, keepdims=1, noop_with_empty_axes=0: one(sum(x), keepdims),
}  # fmt: skip
"""Operations on vectors of sizes that only a run knows."""


def one(n, keepdims: int) -> numpy.ndarray:
    array = numpy.empty(1, object)
    array[0] = n
    return array if keepdims else array.reshape(())


def fold_sizes(choose, xs):
    total = xs[0]
    for x in xs[1:]:
        total = numpy.frompyfunc(choose, 2, 1)(total, x)
    return total


def slice_of_sizes(x, starts, ends, axes=None, steps=None):
    (start,), (end,) = starts, ends
    step = 1 if steps is None else int(steps[0])
    return x[slice(clip_bound(int(start)), clip_bound(int(end)), step)]


SIZES |= {
    "Slice": slice_of_sizes,
    "Cast": lambda x, to, saturate=1, round_mode="": x if to in (6, 7) else NotImplemented,
}
