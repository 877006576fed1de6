"""Convolution in any number of dimensions, and its two adjoints.

    y[n, o, p] = Σ w[o, c, t] · x[n, c, p·stride + t·dilation - padding]   over c and t

It is linear in x and in w. Each of the three operators below is the derivative of the other two,
so they have derivatives of any order. `conv_input_grad` alone is
the transposed convolution.

How it is computed: in a padded image laid out flat, the pixels that tap `t` meets while the output
runs over its positions are one slice, and for another tap the slice is shifted. So a convolution
is a sum of matrix products over slices, one for each tap, without the copies of im2col. With a
stride the image is first dealt out into phases (every stride-th pixel): within a phase neighbours
are neighbours again.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from ..core.op import opaque
from ..core.record import Spec
from ..core.slots import slot
from .movement import ravel

SHALLOW, DEEP = 16, 64
"""A matrix product that sums over few terms is slow. Taps are taken together, their slices copied
one under the other, until it sums over SHALLOW terms, and all of them when that makes no more
than DEEP."""


class TapLayout(NamedTuple):
    """The places of a kernel's taps on flat phases, for one output size."""

    out: tuple  # positions of the output along each axis
    reach: tuple  # pixels of a phase between the first tap and the last
    grid: tuple  # pixels of a phase that some tap meets: out + reach
    taps: tuple  # (phase, distance on the flat phase) of each tap, in row-major order

    @property
    def length(self) -> int:
        """Pixels of a slice: the rows of the output, each as wide as a row of the phase."""
        return self.out[0] * prod(self.grid[1:])

    @property
    def spare(self) -> int:
        """Rows to add to a phase so that the last tap's slice ends inside it."""
        return int(any(self.reach[1:]))


@lru_cache(maxsize=1024)
def layout(out, kernel, stride, dilation) -> TapLayout:
    """The layout of a convolution that gives `out` positions."""
    reach = tuple((k - 1) * d // s for k, d, s in zip(kernel, dilation, stride))
    grid = tuple(n + r for n, r in zip(out, reach))
    taps = []
    for tap in product(*map(range, kernel)):
        at = [t * d for t, d in zip(tap, dilation)]
        phase = tuple(a % s for a, s in zip(at, stride))
        taps.append((phase, ravel([a // s for a, s in zip(at, stride)], grid)))
    return TapLayout(tuple(out), reach, grid, tuple(taps))


def meeting(phase, grid, stride, padding, size):
    """The indices, into a phase and into the image, of the pixels they share."""
    inside, image = [...], [...]
    for p, n, s, (low, _), m in zip(phase, grid, stride, padding, size):
        first = max(0, -((p - low) // s))
        end = max(first, min(n, (m - 1 + low - p) // s + 1))
        start = first * s + p - low
        inside.append(slice(first, end))
        image.append(slice(start, start + (end - first) * s, s))
    return tuple(inside), tuple(image)


def set_in(m, x, at, shape, spare):
    """x at index `at` of zeros: [batch, channel, *shape], with `spare` more rows at the end."""
    if not spare and x.shape[2:] == shape:
        return x
    framed = m.zeros((*x.shape[:2], shape[0] + spare, *shape[1:]), x.dtype)
    framed[at] = x
    return framed


def split_groups(x, groups):
    """An image as [batch, group, channel, flat pixel]."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, prod(x.shape[2:]))


def tap_slices(m, x, lay: TapLayout, stride, padding, groups):
    """For each tap the pixels of x it meets: [batch, group, channel, lay.length]."""
    flat = {}
    for phase in dict(lay.taps):
        inside, image = meeting(phase, lay.grid, stride, padding, x.shape[2:])
        flat[phase] = split_groups(set_in(m, x[image], inside, lay.grid, lay.spare), groups)
    return [flat[phase][..., d : d + lay.length] for phase, d in lay.taps]


def bundles(taps: int, channels: int, groups: int):
    """The taps that go into one matrix product together. A depthwise one stays tap by tap."""
    step = taps if taps * channels <= DEEP else -(-SHALLOW // channels)
    step = 1 if groups > 1 and channels == 1 else step
    return [slice(k, k + step) for k in range(0, taps, step)]


def beside(m, slices):
    """The slices of several taps, one under the other; a single one stays a view."""
    return slices[0] if len(slices) == 1 else m.concatenate(slices, axis=2)


@slot("conv.correlate")
def correlate(m, slices, w):
    """Σ over taps of w[tap, group, out, in] · slice[batch, group, in, pixel]."""
    taps, groups, outs, channels = w.shape
    total = part = None
    for some in bundles(taps, channels, groups):
        matrix = m.ascontiguousarray(m.transpose(w[some], (1, 2, 0, 3))).reshape(groups, outs, -1)
        times = m.matmul if matrix.shape[2] > 1 else m.multiply  # one term: nothing to sum
        if total is None:
            total = times(matrix, beside(m, slices[some]))
        else:
            part = times(matrix, beside(m, slices[some]), out=part)
            total += part
    return total


def taps_first(m, w, groups):
    """The kernel as [tap, group, out, in]."""
    by_group = w.reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    return m.ascontiguousarray(m.transpose(by_group, (3, 0, 1, 2)))


def crop(m, y, channels, rows, lay: TapLayout, at):
    """Flat results as an image of `channels`, cut at index `at`, in memory of its own."""
    return m.ascontiguousarray(y.reshape(y.shape[0], channels, rows, *lay.grid[1:])[at])


@opaque(promote=True)
def conv(m, x, w, *, stride, padding, dilation, groups):
    """Convolution of x [N, C, *size] with w [O, C / groups, *kernel].

    `stride` and `dilation` hold a number for each axis of the image, `padding` a pair.
    """
    out = out_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    lay = layout(out, w.shape[2:], stride, dilation)
    slices = tap_slices(m, x, lay, stride, padding, groups)
    y = correlate(m, slices, taps_first(m, w, groups))
    return crop(m, y, w.shape[0], out[0], lay, (..., *map(slice, out)))


@opaque(promote=True)
def conv_input_grad(m, g, w, *, size, stride, padding, dilation, groups):
    """The adjoint of `conv` in x: from g [N, O, *out] back to an image of `size`.

    Each phase of the image is a convolution of g with the taps that fall on it, in reverse order.
    """
    lay = layout(g.shape[2:], w.shape[2:], stride, dilation)
    lead, channels, total = ravel(lay.reach, lay.grid), groups * w.shape[1], prod(lay.grid)
    shape = (lay.reach[0] + lay.grid[0], *lay.grid[1:])
    behind = (..., *(slice(r, r + n) for r, n in zip(lay.reach, lay.out)))
    flat = split_groups(set_in(m, g, behind, shape, lay.spare), groups)
    w = m.transpose(taps_first(m, w, groups), (0, 1, 3, 2))
    x = m.zeros((g.shape[0], channels, *size), g.dtype)
    for phase in dict(lay.taps):
        mine = [k for k, (p, _) in enumerate(lay.taps) if p == phase]
        starts = [lead - lay.taps[k][1] for k in mine]
        y = correlate(m, [flat[..., d : d + total] for d in starts], w[mine])
        inside, image = meeting(phase, lay.grid, stride, padding, size)
        x[image] = y.reshape(g.shape[0], channels, *lay.grid)[inside]
    return x


@opaque(promote=True)
def conv_weight_grad(m, x, g, *, kernel, stride, padding, dilation, groups):
    """The adjoint of `conv` in w: every tap meets its pixels of x and the gradient g of the result.

    [O, C / groups, *kernel] from x [N, C, *size] and g [N, O, *out].
    """
    lay = layout(g.shape[2:], kernel, stride, dilation)
    slices = tap_slices(m, x, lay, stride, padding, groups)
    shape = (lay.out[0], *lay.grid[1:])
    g = split_groups(set_in(m, g, (..., *map(slice, lay.out)), shape, 0), groups)
    outs, channels = g.shape[2], x.shape[1] // groups
    w = m.empty((len(slices), groups, outs, channels), x.dtype)
    for some in bundles(len(slices), channels, groups):
        pixels = m.swapaxes(beside(m, slices[some]), 2, 3)
        met = m.sum(m.matmul(g, pixels), axis=0).reshape(groups, outs, -1, channels)
        w[some] = m.transpose(met, (2, 0, 1, 3))
    return m.ascontiguousarray(m.transpose(w, (1, 2, 3, 0))).reshape(-1, channels, *kernel)


# ---- derivatives: each is the adjoint of the others ------------------------------------------


@conv.vjp("x")
def _(g, x_spec, w, **at):
    return conv_input_grad(g, w, size=x_spec.shape[2:], **at)


@conv.vjp("w")
def _(g, x, w_spec, **at):
    return conv_weight_grad(x, g, kernel=w_spec.shape[2:], **at)


@conv_input_grad.vjp("w")
def _(u, g, w_spec, size, **at):
    return conv_weight_grad(u, g, kernel=w_spec.shape[2:], **at)


@conv_weight_grad.vjp("x")
def _(u, x_spec, g, kernel, **at):
    return conv_input_grad(g, u, size=x_spec.shape[2:], **at)


conv_input_grad.vjp(g=lambda u, w, size, **at: conv(u, w, **at))
conv_weight_grad.vjp(g=lambda u, x, kernel, **at: conv(x, u, **at))


# ---- shapes ----------------------------------------------------------------------------------


@slot("conv.out_size")
def out_size(size, kernel, stride, padding, dilation) -> tuple:
    """The number of positions of the kernel along each axis of the padded image, at least one."""
    out = tuple(
        (n + low + high - (k - 1) * d - 1) // s + 1
        for n, k, s, (low, high), d in zip(size, kernel, stride, padding, dilation)
    )
    if any(isinstance(n, int) and n < 1 for n in out):  # an open one shows when it runs
        raise ValueError(
            f"the kernel {list(kernel)} with dilation {list(dilation)} does not fit into the image "
            f"{list(size)} with padding {list(map(list, padding))}"
        )
    return out


@conv.shape
def _(x, w, *, stride, padding, dilation, groups):
    if x.ndim != w.ndim or x.ndim != len(stride) + 2:
        raise ValueError(
            f"{len(stride)}-D convolution needs x [N, C, *size] and a weight "
            f"[O, C / groups, *kernel] of {len(stride) + 2} dimensions, not {x} and {w}"
        )
    if x.shape[1] != w.shape[1] * groups:
        raise ValueError(
            f"x {list(x.shape)} has {x.shape[1]} channels, the weight {list(w.shape)} with "
            f"groups={groups} takes {w.shape[1]} · {groups}"
        )
    if w.shape[0] % groups:
        raise ValueError(f"{w.shape[0]} output channels do not fall into {groups} groups")
    out = out_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    return Spec((x.shape[0], w.shape[0], *out), x.dtype)


@conv_input_grad.shape
def _(g, w, *, size, stride, padding, dilation, groups):
    if g.ndim != w.ndim or g.ndim != len(stride) + 2 or g.shape[1] != w.shape[0]:
        raise ValueError(
            f"{len(stride)}-D transposed convolution needs x [N, C, *size] and a weight "
            f"[C, O / groups, *kernel] with the same C, not {g} and {w}"
        )
    if w.shape[0] % groups:
        raise ValueError(f"{w.shape[0]} input channels do not fall into {groups} groups")
    out = out_size(size, w.shape[2:], stride, padding, dilation)
    if out != g.shape[2:]:
        raise ValueError(f"an image of {list(size)} comes from {list(out)}, x has {g.shape[2:]}")
    return Spec((g.shape[0], w.shape[1] * groups, *size), g.dtype)


@conv_weight_grad.shape
def _(x, g, *, kernel, stride, padding, dilation, groups):
    return Spec((g.shape[1], x.shape[1] // groups, *kernel), x.dtype)


def letters(first: str, second: str, result: str):
    """A sharding rule: images are cut anywhere, channels only if they are one group."""

    def rule(x, w, *, groups, **attrs):
        parts = [
            part if groups == 1 else part.translate(WHOLE_CHANNELS)
            for part in (first, second, result)
        ]
        return "{},{}->{}".format(*(part.replace("*", "." * (x.ndim - 2)) for part in parts))

    return rule


WHOLE_CHANNELS = str.maketrans("oc", "..")

conv.shards(letters("bc*", "oc*", "bo*"), multilinear="x,w")
conv_input_grad.shards(letters("bo*", "oc*", "bc*"), multilinear="g,w")
conv_weight_grad.shards(letters("bc*", "bo*", "oc*"), multilinear="x,g")
