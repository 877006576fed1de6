"""Pooling: the largest value of windows that slide over an image [N, C, *size].

`windows` has for each image axis (kernel, stride, pixels of padding before, positions). A window
may reach beyond the image, where all is -inf. Means are in `mean_pooling`.
"""

from itertools import product
from math import inf

from ..engine.core.op import opaque
from ..engine.core.record import Spec

# ---- helpers of the bodies -------------------------------------------------------------------


def add_frame(m, x, windows, fill):
    """x with `fill` around it, as far as the windows reach."""
    need = [(out - 1) * s + k for k, s, _, out in windows]
    after = [n - low - m_ for n, (_, _, low, _), m_ in zip(need, windows, x.shape[2:])]
    before = [low for _, _, low, _ in windows]
    if not any(before) and max(after) <= 0:
        return x
    size = [low + n + max(a, 0) for low, n, a in zip(before, x.shape[2:], after)]
    wide = m.full((*x.shape[:2], *size), fill, dtype=x.dtype)
    wide[(..., *(slice(low, low + n) for low, n in zip(before, x.shape[2:])))] = x
    return wide


def tap_index(tap, windows):
    """The index of the pixels at one place of the windows, for all positions."""
    steps = zip(tap, windows)
    return (..., *(slice(t, t + (out - 1) * s + 1, s) for t, (_, s, _, out) in steps))


def reduce_windows(m, x, windows, pair, whole):
    """Reduce each window, one axis after the other: k + k passes, not k · k."""
    for d, (k, s, _, out) in enumerate(windows):
        axis = d + 2
        lead = (slice(None),) * axis
        if out == 1:
            x = whole(x[(*lead, slice(0, k))], axis=axis, keepdims=True)
            continue
        slices = [x[(*lead, slice(t, t + (out - 1) * s + 1, s))] for t in range(k)]
        x = pair(slices[0], slices[1]) if k > 1 else slices[0]
        for more in slices[2:]:
            pair(x, more, out=x)
    return m.ascontiguousarray(x)


def winners(m, x, y, windows):
    """For each place in a window: the index of its pixels, and a mask of the maximum y.

    Of equal pixels the first in row-major order wins.
    """
    free = None
    for tap in product(*(range(k) for k, *_ in windows)):
        at = tap_index(tap, windows)
        here = x[at] == y
        if free is None:
            free = ~here
        else:
            here &= free
            free ^= here
        yield tap, at, here


# ---- the largest -----------------------------------------------------------------------------


@opaque
def max_pool(m, x, *, windows):
    """The largest value of each window."""
    return reduce_windows(m, add_frame(m, x, windows, -inf), windows, m.maximum, m.max)


@opaque
def max_pool_grad(m, g, x, y, *, windows):
    """The adjoint of choosing the maxima y of x: adds each g at the place of its maximum."""
    wide = add_frame(m, x, windows, -inf)
    gx = m.zeros(wide.shape, g.dtype)
    for _, at, here in winners(m, wide, y, windows):
        gx[at] += m.keep(g, here)
    inside = (slice(low, low + n) for (_, _, low, _), n in zip(windows, x.shape[2:]))
    return m.ascontiguousarray(gx[(..., *inside)])


@opaque
def max_pool_take(m, u, x, y, *, windows):
    """The values of u where the maxima y of x stood."""
    wide, u = add_frame(m, x, windows, -inf), add_frame(m, u, windows, 0)
    total = m.zeros(y.shape, u.dtype)
    for _, at, here in winners(m, wide, y, windows):
        total += m.keep(u[at], here)
    return total


# ---- derivatives -----------------------------------------------------------------------------

max_pool.vjp(lambda g, out, x, windows: max_pool_grad(g, x, out, windows=windows))
max_pool_grad.vjp(g=lambda u, x, y, windows: max_pool_take(u, x, y, windows=windows))
max_pool_take.vjp(u=lambda g, x, y, windows: max_pool_grad(g, x, y, windows=windows))


for op in (max_pool, max_pool_grad, max_pool_take):
    op.shards(lambda *xs, windows: ",".join([images(xs[0])] * len(xs)) + "->" + images(xs[0]))


def images(x) -> str:
    """The letters of images: windows run along the axes of their size."""
    return "bc" + "." * (x.ndim - 2)


# ---- shapes ----------------------------------------------------------------------------------


def spec_of_pooling(x, windows) -> Spec:
    """The spec of pooled x."""
    return Spec((*x.shape[:2], *(out for *_, out in windows)), x.dtype)


max_pool.shape(lambda x, *, windows: spec_of_pooling(x, windows))
max_pool_grad.shape(lambda g, x, y, *, windows: Spec(x.shape, g.dtype))
max_pool_take.shape(lambda u, x, y, *, windows: Spec(y.shape, u.dtype))


max_pool_grad.compares = max_pool_take.compares = True
