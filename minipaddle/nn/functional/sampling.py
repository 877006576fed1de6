"""Images read at places given by a grid: spatial transformers."""

from itertools import product

from ...core.checks import require_one_of
from ...core.prelude import as_guarded, elementwise, int64, movement, same, same_shape, value_error
from ...ops import rounding, sampling
from ...tensor import creation, manipulation
from .windows import whole_numbers

__all__ = ["affine_grid", "grid_sample"]


def centers(size: int, corners: bool, dtype):
    """Pixel places on a line from -1 to 1: these are its edges or, with `corners`, end pixels."""
    if corners and as_guarded(size, True) > 1:
        return creation.arange(0, size, dtype=dtype) * (2 / (size - 1)) - 1
    if corners:
        return creation.zeros([size], dtype=dtype)
    return creation.arange(0, size, dtype=dtype) * (2 / size) + (1 / size - 1)


def affine_grid(theta, out_shape, align_corners=True, name=None):
    """Places for `grid_sample`: affine maps `theta` [N, 2, 3] of the pixels of [N, C, H, W].

    The result is [N, H, W, 2], coordinates (x, y) between -1 and 1; with theta [N, 3, 4] and an
    `out_shape` [N, C, D, H, W] it is [N, D, H, W, 3]. An axis of one pixel lies at 0. Source:
    Jaderberg et al., 2015.

    >>> same = paddle.to_tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> paddle.nn.functional.affine_grid(same, [1, 1, 2, 2]).tolist()[0]
    [[[-1.0, -1.0], [1.0, -1.0]], [[-1.0, 1.0], [1.0, 1.0]]]
    """
    shape = whole_numbers(out_shape)
    n, size = len(shape) - 2, shape[2:]
    if n not in (2, 3) or not same_shape(theta.spec.shape, (shape[0], n, n + 1)):
        raise value_error(
            f"affine_grid was given theta of {theta.spec} and out_shape={shape}",
            "[N, 2, 3] with [N, C, H, W], or [N, 3, 4] with [N, C, D, H, W]",
        )
    dtype = theta.spec.dtype
    lines = []
    for d, m in enumerate(size):
        line = centers(m, align_corners, dtype)
        line = movement.reshape(line, shape=tuple(m if k == d else 1 for k in range(n)))
        lines.append(movement.broadcast_to(line, shape=tuple(size)))
    lines = [*lines[::-1], creation.ones(size, dtype=dtype)]
    base = movement.reshape(manipulation.stack(lines, axis=-1), shape=(1, -1, n + 1))
    places = base @ movement.transpose(theta, perm=(0, 2, 1))
    return movement.reshape(places, shape=(shape[0], *size, n))


def pixel_places(grid, size: int, corners: bool):
    """From coordinates between -1 and 1 to pixels."""
    return (grid + 1) * ((size - 1) / 2) if corners else ((grid + 1) * size - 1) * 0.5


def reflect(place, size: int, corners: bool):
    """Places beyond the ends, folded back at the first and last pixels or at the edges."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return place * 0.0
    inside = elementwise.remainder(place - low, 2 * span)
    return span - abs(inside - span) + low


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True, name=None):
    """x [N, C, H, W] read at `grid` [N, h, w, 2], coordinates (x, y) between -1 and 1.

    The result is [N, C, h, w]; with x [N, C, D, H, W] and grid [N, d, h, w, 3] it is [N, C, d, h,
    w]. `mode` is bilinear or nearest; beyond the image lie zeros, its border, or its reflection.
    Source: Jaderberg et al., 2015.

    >>> x = paddle.to_tensor([[[[1.0, 3.0]]]])
    >>> middle = paddle.zeros([1, 1, 1, 2])
    >>> paddle.nn.functional.grid_sample(x, middle).item()
    2.0
    """
    n = x.spec.ndim - 2
    if n not in (2, 3) or grid.spec.ndim != n + 2 or not same(grid.spec.shape[-1], n):
        raise value_error(
            f"grid_sample was given x of {x.spec} and a grid of {grid.spec}",
            "x [N, C, H, W] and a grid [N, h, w, 2], or one dimension more of each",
        )
    require_one_of("grid_sample", ("bilinear", "nearest"), mode=mode)
    require_one_of("grid_sample", ("zeros", "border", "reflection"), padding_mode=padding_mode)
    size, places = x.spec.shape[2:], []
    for coordinate, m in zip(manipulation.unbind(grid, axis=-1)[::-1], size):
        pixel = pixel_places(coordinate, m, align_corners)
        if padding_mode == "reflection":
            pixel = reflect(pixel, m, align_corners)
        if padding_mode != "zeros":
            pixel = elementwise.minimum(elementwise.maximum(pixel, 0.0), m - 1.0)
        places.append(pixel)
    corners = [[(rounding.round(p), 1.0) for p in places]]
    if mode == "bilinear":
        corners = product(*(neighbours(p) for p in places))
    taps = [tap(corner, size) for corner in corners]
    (batch, channels), out = x.spec.shape[:2], grid.spec.shape[1:-1]
    flat, weight = (
        movement.reshape(manipulation.stack(list(parts), axis=1), shape=(batch, len(taps), -1))
        for parts in zip(*taps, strict=True)
    )
    x = movement.reshape(x, shape=(batch, channels, -1))
    return movement.reshape(sampling.blend(x, flat, weight), shape=(batch, channels, *out))


def neighbours(place) -> list:
    """The pixels before and after a place on an axis, and how near the place is to each."""
    low = rounding.floor(place)
    return [(low, low + 1.0 - place), (low + 1.0, place - low)]


def tap(corner, size):
    """The flat index and the weight, 0 outside, of a pixel: (its place, how near) on each axis."""
    flat, weight = None, None
    for (p, near), m in zip(corner, size, strict=True):
        inside = (p >= 0.0) & (p <= m - 1.0)
        i = elementwise.where(inside, p, 0.0).astype(int64.numpy)
        part = inside.astype(p.spec.dtype) * near
        flat = i if flat is None else flat * m + i
        weight = part if weight is None else weight * part
    return flat, weight
