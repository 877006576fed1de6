"""The mean value of windows, and the place of the largest value of a window.

`windows` is that of `pooling`: for each image axis (kernel, stride, pixels of padding
before, positions).
"""

from itertools import product
from math import inf, prod

from ..engine.core.dtype import int32
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.movement import ravel
from .pooling import add_frame, images, reduce_windows, spec_of_pooling, winners
from .strided import spread_axes


@opaque
def max_pool_index(m, x, y, *, windows):
    """The index in the flat image of the maximum y of each window of x, in int32."""
    size, index = x.shape[2:], m.zeros(y.shape, int32.numpy)
    for tap, _, here in winners(m, add_frame(m, x, windows, -inf), y, windows):
        at = [m.arange(out) * s + (t - low) for t, (_, s, low, out) in zip(tap, windows)]
        index += (ravel(spread_axes(at), size) * here).astype(int32.numpy)
    return index


@opaque
def adaptive_max_index(m, x, *, out):
    """The indices in the flat image of the maxima when `out` windows share each axis, in int32.

    Window i of an axis of n pixels is [⌊i·n/out⌋, ⌈(i+1)·n/out⌉).
    """
    size = x.shape[2:]
    first = [m.arange(o) * n // o for o, n in zip(out, size)]
    last = [-(-(m.arange(o) + 1) * n // o) - 1 for o, n in zip(out, size)]
    longest = [int(m.max(b - a)) + 1 for a, b in zip(first, last)]
    best = index = None
    for tap in product(*map(range, longest)):
        at = [m.minimum(a + t, b) for a, b, t in zip(first, last, tap)]
        at = spread_axes(at)
        values, flat = x[(..., *at)], ravel(at, size)
        if best is None:
            best, index = values, m.zeros(values.shape, int32.numpy) + flat
        else:
            more = values > best
            best, index = m.where(more, values, best), m.where(more, flat, index)
    return index.astype(int32.numpy)


def pixel_weights(m, x, size, windows, exclusive, divisor):
    """1 / (the number of pixels that count in a window), a number or an array.

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
    return 1 / prod(spread_axes([m.asarray(c, dtype=x.dtype) for c in counts]))


@opaque
def avg_pool(m, x, *, windows, exclusive, divisor):
    """The mean of each window, or its sum over `divisor`."""
    total = reduce_windows(m, add_frame(m, x, windows, 0), windows, m.add, m.sum)
    return total * pixel_weights(m, x, x.shape[2:], windows, exclusive, divisor)


@opaque
def avg_pool_grad(m, g, *, size, windows, exclusive, divisor):
    """The adjoint of `avg_pool`: every pixel of an image of `size` gets its share of g."""
    g = g * pixel_weights(m, g, size, windows, exclusive, divisor)
    for d, ((k, s, low, out), n) in enumerate(zip(windows, size)):
        if (k, 0, out * k) == (s, low, n):
            g = m.repeat(g, k, d + 2)
            continue
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


avg_pool.vjp(lambda g, x_spec, **how: avg_pool_grad(g, size=x_spec.shape[2:], **how))
avg_pool_grad.vjp(lambda u, size, **how: avg_pool(u, **how))

avg_pool.shape(lambda x, *, windows, exclusive, divisor: spec_of_pooling(x, windows))
max_pool_index.shape(lambda x, y, *, windows: Spec(y.shape, int32.numpy))
adaptive_max_index.shape(lambda x, *, out: Spec((*x.shape[:2], *out), int32.numpy))
avg_pool_grad.shape(lambda g, *, size, **how: Spec((*g.shape[:2], *size), g.dtype))

images_alone = lambda x, **_: f"{images(x)}->{images(x)}"
max_pool_index.shards(lambda x, y, windows: f"{images(x)},{images(x)}->{images(x)}")
avg_pool.shards(images_alone, linear="x")
avg_pool_grad.shards(images_alone, linear="g")
