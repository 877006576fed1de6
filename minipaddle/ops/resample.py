"""Images made larger, smaller, or cut into windows. All of it is linear in the image, and
each operator's derivative is its adjoint.
"""

from functools import lru_cache
from itertools import product
from math import prod

from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.conv import out_size
from ..engine.ops.movement import replace_axis
from .arrangement import pad

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
    turns, seen = [], {}
    for i, place in enumerate(index):
        turn = seen[place] = seen.get(place, -1) + 1
        if turn == len(turns):
            turns.append(([], []))
        turns[turn][0].append(place)
        turns[turn][1].append(i)
    return turns


def run(m, places):
    """Evenly rising places as a slice, which is quick; others as an array."""
    step = places[1] - places[0] if len(places) > 1 else 1
    even = range(places[0], places[0] + step * len(places), step) if step > 0 else ()
    return slice(even.start, even.stop, step) if list(even) == places else m.asarray(places)


def resize_axis(x, axis, size) -> Spec:
    return Spec(replace_axis(x.shape, axis, size), x.dtype)


remap.shape(lambda x, *, axis, index: resize_axis(x, axis, len(index)))
remap_grad.shape(lambda g, *, axis, index, size: resize_axis(g, axis, size))


remap.vjp(lambda g, x_spec, **at: remap_grad(g, size=x_spec.shape[at["axis"]], **at))
remap_grad.vjp(lambda u, size, **at: remap(u, **at))

# ---- one axis, each pixel a sum of a few weighed ones ------------------------------------------


def sources(m, n: int, out: int, corners: bool, centers: bool, step):
    """The source of each of `out` pixels on an axis of n pixels, in float64."""
    i = m.arange(out, dtype="float64")
    if corners:
        return i * ((n - 1) / (out - 1) if out > 1 else 0.0)
    step = n / out if step is None else step
    return (i + 0.5) * step - 0.5 if centers else i * step


def linear_taps(m, at, n: int):
    """The two pixels beside each source."""
    at = m.clip(at, 0, n - 1)
    left = m.floor(at)
    return m.stack([left, m.minimum(left + 1, n - 1)], 1), m.stack([1 - (at - left), at - left], 1)


def cubic_taps(m, at, n: int):
    """Keys' cubic convolution with a = -0.75; beyond the ends the last pixel repeats."""
    left, k = m.floor(at)[:, None], m.arange(-1, 3)
    t = m.abs(at[:, None] - left - k)
    near = (1.25 * t - 2.25) * t * t + 1
    far = ((-0.75 * t + 3.75) * t - 6) * t + 3
    return m.clip(left + k, 0, n - 1), m.where(t <= 1, near, far)


def area_taps(m, n: int, out: int):
    """The mean over [⌊i·n/out⌋, ⌈(i+1)·n/out⌉)."""
    i = m.arange(out)[:, None]
    first, end = i * n // out, -(-(i + 1) * n // out)
    places = first + m.arange(int(m.max(end - first)))
    return m.where(places < end, places, n), (places < end) / (end - first)


@lru_cache(maxsize=256)
def taps(m, n, out, method, corners, centers, step, adjoint):
    """(places, weights) [pixels, k]: the k pixels that each new pixel is a sum of.

    A place beyond the last pixel stands for none. A pixel without part in a sum is not multiplied
    by 0: a NaN would spread over the whole axis.
    """
    if method == "area":
        places, weights = area_taps(m, n, out)
    else:
        at = sources(m, n, out, corners, centers, step)
        places, weights = (cubic_taps if method == "cubic" else linear_taps)(m, at, n)
    places = places.astype("int64")
    return transpose_taps(m, places, weights, n) if adjoint else (places, weights)


def transpose_taps(m, places, weights, n: int):
    """The taps of the adjoint: each of n pixels is a sum over the sums that contain it."""
    i, k = m.nonzero(places < n)
    to = places[i, k]
    order = m.argsort(to, kind="stable")
    i, k, to = i[order], k[order], to[order]
    rank = m.arange(to.size) - m.searchsorted(to, m.arange(n))[to]
    shape = n, int(m.max(rank)) + 1
    sums, shares = m.full(shape, places.shape[0]), m.zeros(shape)
    sums[to, rank], shares[to, rank] = i, weights[i, k]
    return sums, shares


@opaque
def resample(m, x, *, axis, size, to, method, corners, centers, step, adjoint):
    """One axis of `size` pixels resampled to `to`; with `adjoint` the transposed map.

    `method` is linear, cubic or area. `corners`: first and last pixels keep their places;
    otherwise output pixel i comes from i · step, or with `centers` from (i + ½) · step - ½. The
    step is size / to if it is None.
    """
    places, weights = taps(m, size, to, method, corners, centers, step, adjoint)
    weights, n = weights.astype(x.dtype), x.shape[axis]
    if int(places.max()) == n:
        x = m.concatenate([x, m.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)], axis)
    beside = (-1, *(1,) * (x.ndim - axis - 1))
    total = x.take(places[:, 0], axis) * weights[:, 0].reshape(beside)
    for k in range(1, places.shape[1]):
        total += x.take(places[:, k], axis) * weights[:, k].reshape(beside)
    return total


resample.shape(
    lambda x, axis, size, to, adjoint, **how: resize_axis(x, axis, size if adjoint else to)
)
resample.vjp(lambda g, adjoint, **how: resample(g, adjoint=not adjoint, **how))

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


unfold.vjp(lambda g, x_spec, **how: fold(g, size=x_spec.shape[2:], **how))
fold.vjp(lambda u, size, **how: unfold(u, **how))
