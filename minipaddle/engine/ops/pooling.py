"""Pooling: the largest or the mean value of windows that slide over an image [N, C, *size].

`windows` has for each image axis (kernel, stride, pixels of padding before, positions). A window
may reach beyond the image: for a maximum what lies there is -inf, for a sum it is 0.
"""

from __future__ import annotations

from itertools import product
from math import inf, prod

from ..core.dtype import int32
from ..core.op import opaque
from ..core.record import Spec

# ---- helpers of the bodies -------------------------------------------------------------------


def framed(m, x, windows, fill):
    """x with as much of `fill` around it as the windows reach."""
    need = [(out - 1) * s + k for k, s, _, out in windows]
    after = [n - low - m_ for n, (_, _, low, _), m_ in zip(need, windows, x.shape[2:])]
    before = [low for _, _, low, _ in windows]
    if not any(before) and max(after) <= 0:
        return x
    size = [low + n + max(a, 0) for low, n, a in zip(before, x.shape[2:], after)]
    wide = m.full((*x.shape[:2], *size), fill, dtype=x.dtype)
    wide[(..., *(slice(low, low + n) for low, n in zip(before, x.shape[2:])))] = x
    return wide


def unframed(wide, windows, size):
    """The image inside the frame."""
    return wide[(..., *(slice(low, low + n) for (_, _, low, _), n in zip(windows, size)))]


def met(tap, windows):
    """The index of the pixels that one place in the windows meets, for all positions."""
    steps = zip(tap, windows)
    return (..., *(slice(t, t + (out - 1) * s + 1, s) for t, (_, s, _, out) in steps))


def places(windows):
    """All places in a window, in row-major order."""
    return product(*(range(k) for k, *_ in windows))


def fold(m, x, windows, pair, whole):
    """Combine each window's pixels, one axis after the other: k + k passes, not k · k."""
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


def chosen(m, x, y, windows):
    """For each place in a window: the index of its pixels, and where the maximum y stands there.

    Of equal pixels the first in row-major order is chosen.
    """
    free = None
    for tap in places(windows):
        at = met(tap, windows)
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
    return fold(m, framed(m, x, windows, -inf), windows, m.maximum, m.max)


@opaque
def max_pool_grad(m, g, x, y, *, windows):
    """The adjoint of choosing the maxima y of x: each g goes back to where its maximum stood."""
    wide = framed(m, x, windows, -inf)
    gx = m.zeros(wide.shape, g.dtype)
    for _, at, here in chosen(m, wide, y, windows):
        gx[at] += m.kept(g, here)
    return m.ascontiguousarray(unframed(gx, windows, x.shape[2:]))


@opaque
def max_pool_take(m, u, x, y, *, windows):
    """The values of u where the maxima y of x stood."""
    wide, u = framed(m, x, windows, -inf), framed(m, u, windows, 0)
    total = m.zeros(y.shape, u.dtype)
    for _, at, here in chosen(m, wide, y, windows):
        total += m.kept(u[at], here)
    return total


@opaque
def max_pool_index(m, x, y, *, windows):
    """Where in the flat image the maximum y of each window of x stands, in int32."""
    size, found = x.shape[2:], m.zeros(y.shape, int32.numpy)
    for tap, _, here in chosen(m, framed(m, x, windows, -inf), y, windows):
        flat = 0
        for d, (t, (_, s, low, out), n) in enumerate(zip(tap, windows, size)):
            at = m.arange(out) * s + (t - low)
            flat = flat * n + at.reshape(-1, *(1,) * (len(size) - d - 1))
        found += (flat * here).astype(int32.numpy)
    return found


@opaque
def adaptive_max_index(m, x, *, out):
    """Where in the flat image the maxima stand when `out` windows share each axis, in int32.

    Window i of an axis of n pixels is [⌊i·n/out⌋, ⌈(i+1)·n/out⌉).
    """
    size = x.shape[2:]
    first = [m.arange(o) * n // o for o, n in zip(out, size)]
    last = [-(-(m.arange(o) + 1) * n // o) - 1 for o, n in zip(out, size)]
    longest = [int(m.max(b - a)) + 1 for a, b in zip(first, last)]
    best = found = None
    for tap in product(*map(range, longest)):
        at = [m.minimum(a + t, b) for a, b, t in zip(first, last, tap)]
        at = [a.reshape(-1, *(1,) * (len(size) - d - 1)) for d, a in enumerate(at)]
        flat = 0
        for a, n in zip(at, size):
            flat = flat * n + a
        values = x[(..., *at)]
        if best is None:
            best, found = values, m.zeros(values.shape, int32.numpy) + flat
        else:
            more = values > best
            best, found = m.where(more, values, best), m.where(more, flat, found)
    return found.astype(int32.numpy)


# ---- the mean --------------------------------------------------------------------------------


def shares(m, x, size, windows, exclusive, divisor):
    """1 / (how many pixels a window counts), as a number or an array of the windows' shape.

    Padding counts unless `exclusive`; what lies beyond the image and one padding never does.
    """
    if divisor:
        return 1 / divisor
    counts = []
    for (k, s, low, out), n in zip(windows, size):
        start = [p * s - low for p in range(out)]
        end = [min(a + k, n + (0 if exclusive else low)) for a in start]
        start = [max(a, 0) for a in start] if exclusive else start
        counts.append([max(b - a, 1) for a, b in zip(start, end)])
    if all(len(set(c)) == 1 for c in counts):
        return 1 / prod(c[0] for c in counts)
    total = 1
    for d, c in enumerate(counts):
        total = total * m.asarray(c, dtype=x.dtype).reshape(-1, *(1,) * (len(size) - d - 1))
    return 1 / total


@opaque
def avg_pool(m, x, *, windows, exclusive, divisor):
    """The mean of each window, or its sum over `divisor`."""
    total = fold(m, framed(m, x, windows, 0), windows, m.add, m.sum)
    return total * shares(m, x, x.shape[2:], windows, exclusive, divisor)


@opaque
def avg_pool_grad(m, g, *, size, windows, exclusive, divisor):
    """The adjoint of `avg_pool`: every pixel of an image of `size` gets its share of g."""
    g = g * shares(m, g, size, windows, exclusive, divisor)
    for d, ((k, s, low, out), n) in enumerate(zip(windows, size)):
        lead = (slice(None),) * (d + 2)
        length = low + max(n, (out - 1) * s + k - low)
        wide = m.zeros((*g.shape[: d + 2], length, *g.shape[d + 3 :]), g.dtype)
        if out == 1:
            wide[(*lead, slice(0, k))] = g
        else:
            for t in range(k):
                wide[(*lead, slice(t, t + (out - 1) * s + 1, s))] += g
        g = wide[(*lead, slice(low, low + n))]
    return m.ascontiguousarray(g)


# ---- derivatives -----------------------------------------------------------------------------

max_pool.vjp(lambda g, out, x, windows: max_pool_grad(g, x, out, windows=windows))
max_pool_grad.vjp(g=lambda u, x, y, windows: max_pool_take(u, x, y, windows=windows))
max_pool_take.vjp(u=lambda g, x, y, windows: max_pool_grad(g, x, y, windows=windows))


@avg_pool.vjp
def _(g, x_spec, windows, exclusive, divisor):
    how = {"windows": windows, "exclusive": exclusive, "divisor": divisor}
    return avg_pool_grad(g, size=x_spec.shape[2:], **how)


@avg_pool_grad.vjp
def _(u, windows, exclusive, divisor):
    return avg_pool(u, windows=windows, exclusive=exclusive, divisor=divisor)


# ---- shapes ----------------------------------------------------------------------------------


def pooled(x, windows) -> Spec:
    """The spec of pooled x."""
    return Spec((*x.shape[:2], *(out for *_, out in windows)), x.dtype)


max_pool.shape(lambda x, *, windows: pooled(x, windows))
avg_pool.shape(lambda x, *, windows, exclusive, divisor: pooled(x, windows))
max_pool_grad.shape(lambda g, x, y, *, windows: Spec(x.shape, g.dtype))
max_pool_take.shape(lambda u, x, y, *, windows: Spec(y.shape, u.dtype))
max_pool_index.shape(lambda x, y, *, windows: Spec(y.shape, int32.numpy))
adaptive_max_index.shape(lambda x, *, out: Spec((*x.shape[:2], *out), int32.numpy))


@avg_pool_grad.shape
def _(g, *, size, windows, exclusive, divisor):
    return Spec((*g.shape[:2], *size), g.dtype)


max_pool_grad.compares = max_pool_take.compares = True
