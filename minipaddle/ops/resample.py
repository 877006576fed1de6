"""Images made larger, smaller, or cut into windows. All of it is linear in the image, and
each operator's derivative is its adjoint.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod

from ..core.op import opaque
from ..core.record import Spec
from .conv import out_size
from .movement import pad

# ---- elements of one axis, at fixed places ---------------------------------------------------


@opaque
def remap(m, x, *, axis, index):
    """Element `index[i]` of x at place i of `axis`, for a tuple of whole numbers."""
    return x.take(m.asarray(index), axis)


@opaque
def remap_grad(m, g, *, axis, index, size):
    """The adjoint of `remap`: element i of g is added at place `index[i]` of an axis of `size`."""
    lead = (slice(None),) * axis
    y = m.zeros((*g.shape[:axis], size, *g.shape[axis + 1 :]), g.dtype)
    for places, elements in rounds(index):
        y[(*lead, run(m, places))] += g[(*lead, run(m, elements))]
    return y


@lru_cache(maxsize=256)
def rounds(index) -> list:
    """Pairs (places, elements of `index` that name them), no place twice in a pair."""
    found, seen = [], {}
    for i, place in enumerate(index):
        turn = seen[place] = seen.get(place, -1) + 1
        if turn == len(found):
            found.append(([], []))
        found[turn][0].append(place)
        found[turn][1].append(i)
    return found


def run(m, places):
    """Evenly rising places as a slice, which is quick; others as an array."""
    step = places[1] - places[0] if len(places) > 1 else 1
    even = range(places[0], places[0] + step * len(places), step) if step > 0 else ()
    return slice(even.start, even.stop, step) if list(even) == places else m.asarray(places)


def resized(x, axis, size) -> Spec:
    return Spec((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)


remap.shape(lambda x, *, axis, index: resized(x, axis, len(index)))
remap_grad.shape(lambda g, *, axis, index, size: resized(g, axis, size))


@remap.vjp
def _(g, x_spec, axis, index):
    return remap_grad(g, axis=axis, index=index, size=x_spec.shape[axis])


remap_grad.vjp(lambda u, axis, index: remap(u, axis=axis, index=index))

# ---- one axis, resampled by a matrix ---------------------------------------------------------


def sources(m, n: int, out: int, corners: bool, centers: bool, step):
    """Where in an axis of n pixels the pixels of `out` come from, in float64."""
    i = m.arange(out, dtype="float64")
    if corners:
        return i * ((n - 1) / (out - 1) if out > 1 else 0.0)
    step = n / out if step is None else step
    return (i + 0.5) * step - 0.5 if centers else i * step


def linear_weights(m, at, n: int):
    """A hat around each source."""
    at = m.clip(at, 0, n - 1)
    return m.maximum(1 - m.abs(at[:, None] - m.arange(n)), 0)


def cubic_weights(m, at, n: int):
    """Keys' cubic convolution with a = -0.75; beyond the ends the last pixel repeats."""
    left = m.floor(at)
    total = 0
    for k in (-1, 0, 1, 2):
        t = m.abs(at - left - k)
        near = (1.25 * t - 2.25) * t * t + 1
        far = ((-0.75 * t + 3.75) * t - 6) * t + 3
        place = m.clip(left + k, 0, n - 1)[:, None] == m.arange(n)
        total = total + m.where(t <= 1, near, far)[:, None] * place
    return total


def area_weights(m, n: int, out: int):
    """The mean over [⌊i·n/out⌋, ⌈(i+1)·n/out⌉)."""
    i, j = m.arange(out)[:, None], m.arange(n)
    inside = (j >= i * n // out) & (j < -(-(i + 1) * n // out))
    return inside / m.sum(inside, axis=1, keepdims=True)


def weights(m, n, out, method, corners, centers, step):
    """The matrix [out, n] that resamples one axis."""
    if method == "area":
        return area_weights(m, n, out)
    at = sources(m, n, out, corners, centers, step)
    return (cubic_weights if method == "cubic" else linear_weights)(m, at, n)


@opaque
def resample(m, x, *, axis, size, to, method, corners, centers, step, adjoint):
    """One axis of `size` pixels resampled to `to`; with `adjoint` the transposed map.

    `method` is linear, cubic or area. `corners`: first and last pixels keep their places;
    otherwise output pixel i comes from i · step, or with `centers` from (i + ½) · step - ½. The
    step is size / to if it is None.
    """
    w = weights(m, size, to, method, corners, centers, step).astype(x.dtype)
    w = w.T if adjoint else w
    if axis == x.ndim - 1:
        return m.matmul(x, w.T)
    rows = x.reshape(*x.shape[: axis + 1], -1)
    return m.matmul(w, rows).reshape(*x.shape[:axis], w.shape[0], *x.shape[axis + 1 :])


@resample.shape
def _(x, *, axis, size, to, method, corners, centers, step, adjoint):
    return resized(x, axis, size if adjoint else to)


@resample.vjp
def _(g, axis, size, to, method, corners, centers, step, adjoint):
    how = {"method": method, "corners": corners, "centers": centers, "step": step}
    return resample(g, axis=axis, size=size, to=to, adjoint=not adjoint, **how)


# ---- windows as columns ----------------------------------------------------------------------


def window_slices(kernel, stride, dilation, out):
    """For each place in a window, the index of its pixels in the padded image."""
    for tap in product(*map(range, kernel)):
        steps = zip(tap, dilation, stride, out)
        yield (..., *(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, s, o in steps))


@opaque
def unfold(m, x, *, kernel, stride, padding, dilation):
    """The windows of x [N, C, *size] as columns [N, C · kernel pixels, positions]."""
    batch, channels, *size = x.shape
    out = out_size(size, kernel, stride, padding, dilation)
    wide = pad.body(m, x, widths=((0, 0), (0, 0), *padding), value=0)
    taps = [wide[at] for at in window_slices(kernel, stride, dilation, out)]
    return m.stack(taps, axis=2).reshape(batch, channels * len(taps), -1)


@opaque
def fold(m, g, *, size, kernel, stride, padding, dilation):
    """The adjoint of `unfold`: columns, added up where windows overlap, as an image of `size`."""
    out = out_size(size, kernel, stride, padding, dilation)
    slices = list(window_slices(kernel, stride, dilation, out))
    taps = g.reshape(g.shape[0], g.shape[1] // len(slices), len(slices), *out)
    shape = [n + low + high for n, (low, high) in zip(size, padding)]
    wide = m.zeros((g.shape[0], taps.shape[1], *shape), g.dtype)
    for k, at in enumerate(slices):
        wide[at] += taps[:, :, k]
    inner = tuple(slice(low, low + n) for n, (low, _) in zip(size, padding))
    return m.ascontiguousarray(wide[(..., *inner)])


@unfold.shape
def _(x, *, kernel, stride, padding, dilation):
    if x.ndim != len(kernel) + 2:
        raise ValueError(f"x must have {len(kernel) + 2} dimensions [N, C, *size], not be {x}")
    out = out_size(x.shape[2:], kernel, stride, padding, dilation)
    return Spec((x.shape[0], x.shape[1] * prod(kernel), prod(out)), x.dtype)


@fold.shape
def _(g, *, size, kernel, stride, padding, dilation):
    out = out_size(size, kernel, stride, padding, dilation)
    if g.ndim != 3 or g.shape[1] % prod(kernel) or g.shape[2] != prod(out):
        raise ValueError(
            f"x must be [N, C · {prod(kernel)}, {prod(out)}] to fold into {list(size)}, not {g}"
        )
    return Spec((g.shape[0], g.shape[1] // prod(kernel), *size), g.dtype)


@unfold.vjp
def _(g, x_spec, kernel, stride, padding, dilation):
    how = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return fold(g, size=x_spec.shape[2:], **how)


@fold.vjp
def _(u, kernel, stride, padding, dilation):
    return unfold(u, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
