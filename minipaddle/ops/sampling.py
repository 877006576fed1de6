"""Images read at any places: each new pixel blends a few old ones."""

from __future__ import annotations

from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.gather import scatter_sum
from ..engine.ops.movement import WHOLE, broadcast_to, reshape, slice_, stack
from ..engine.ops.reduction import sum
from .scatter import along_index, take_along


@opaque(promote=("x", "weight"))
def blend(m, x, place, weight):
    """Σₖ weight[n, k, p] · x[n, c, place[n, k, p]], for images x [N, C, pixels]: [N, C, P]."""
    total = 0
    for k in range(place.shape[1]):
        total = total + m.take_along_axis(x, place[:, k, None], 2) * weight[:, k, None]
    return total


@blend.shape
def _(x, place, weight):
    if place.dtype.kind not in "iu":
        raise TypeError(f"places are whole numbers, not {place}")
    if x.ndim != 3 or place.ndim != 3 or place.shape != weight.shape or not place.shape[1]:
        raise ValueError(
            f"images {x} [N, C, pixels], places {place} and weights {weight} [N, K, P]"
        )
    return Spec((*x.shape[:2], place.shape[2]), x.dtype)


def of_tap(x, k: int):
    """The part [N, 1, P] of places or weights that belongs to pixel k of each sum."""
    return slice_(x, index=(WHOLE[0], (k, k + 1, 1)))


def for_channels(place, channels: int):
    """Places [N, 1, P], repeated for all channels."""
    n, _, count = place.spec.shape
    return broadcast_to(place, shape=(n, channels, count))


@blend.vjp("x")
def _(g, x_spec, place, weight):
    """Each cotangent goes back to the pixels, by their weights."""
    total = None
    for k in range(place.spec.shape[1]):
        at = for_channels(of_tap(place, k), x_spec.shape[1])
        at = along_index(at, shape=x_spec.shape, axis=2)
        part = reshape(g * of_tap(weight, k), shape=(g.spec.size,))
        part = scatter_sum(part, reshape(at, shape=(g.spec.size,)), shape=(x_spec.size,), axis=0)
        total = part if total is None else total + part
    return reshape(total, shape=x_spec.shape)


@blend.vjp("weight")
def _(g, x, place):
    taps = []
    for k in range(place.spec.shape[1]):
        read = take_along(x, for_channels(of_tap(place, k), x.spec.shape[1]), 2)
        taps.append(sum(g * read, axis=(1,), keepdim=False))
    return stack(*taps, axis=1)
