"""Movement, continued: repeating, flipping, rolling, diagonals, borders.

`embed_diagonal`, `tril` and `triu` fill places with a constant: they have no index map.
"""

from functools import partial

from ..engine.core.dim import larger, smaller
from ..engine.core.op import movement, opaque
from ..engine.core.record import Spec
from ..engine.eager.device import NUMPY
from ..engine.ops.movement import as_key, reshape, slice_

# ---- repeated, turned round ------------------------------------------------------------------


@movement
def tile(m, x, *, repeats):
    """x laid side by side with itself, `repeats[d]` times along axis `d`."""
    return m.tile(x, repeats)


@tile.shape
def _(x, *, repeats):
    if len(repeats) != x.ndim:
        raise ValueError(f"{len(repeats)} repeats for the {x.ndim} axes of {x}")
    return Spec(tuple(n * r for n, r in zip(x.shape, repeats, strict=True)), x.dtype)


@tile.vjp
def _(g, x_spec, repeats):
    """Every copy sends its gradient back: split each axis in (copy, place), sum over the copies."""
    pairs = list(zip(repeats, x_spec.shape, strict=True))
    g = reshape(g, shape=tuple(n for pair in pairs for n in pair))
    once = tuple(n for _, size in pairs for n in (1, size))
    return reshape(g.sum_to(once), shape=x_spec.shape)


tile.index(lambda i, x, repeats: [k % n for k, n in zip(i, x.shape, strict=True)])


@movement
def flip(m, x, *, axis):
    """x back to front along each axis in `axis`."""
    return m.flip(x, axis)


flip.shape(lambda x, axis: x)
flip.index(
    lambda i, x, axis: [
        n - 1 - k if d in axis else k for d, (k, n) in enumerate(zip(i, x.shape, strict=True))
    ]
)
flip.vjp(lambda g, axis: flip(g, axis=axis))
flip.on_sizes = partial(flip.body, NUMPY)


@movement
def roll(m, x, *, shifts, axis):
    """x moved by `shifts[j]` along axis `axis[j]`; the last elements come first again."""
    return m.roll(x, shifts, axis)


roll.shape(lambda x, shifts, axis: x)
roll.vjp(lambda g, shifts, axis: roll(g, shifts=tuple(-s for s in shifts), axis=axis))


@roll.index
def _(i, x, *, shifts, axis):
    i = list(i)
    for s, d in zip(shifts, axis, strict=True):
        i[d] = (i[d] - s) % x.shape[d]
    return i


# ---- diagonals and windows -------------------------------------------------------------------


@movement
def diagonal(m, x, *, offset, axis1, axis2):
    """The diagonals of the planes (axis1, axis2), as the last axis; `offset` > 0 is above."""
    return x.diagonal(offset, axis1, axis2)


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    """The length of the diagonal `offset`."""
    return larger(smaller(rows + smaller(offset, 0), columns - larger(offset, 0)), 0)


@diagonal.shape
def _(x, *, offset, axis1, axis2):
    kept = tuple(n for d, n in enumerate(x.shape) if d not in (axis1, axis2))
    return Spec((*kept, diagonal_length(x.shape[axis1], x.shape[axis2], offset)), x.dtype)


@diagonal.index
def _(i, x, *, offset, axis1, axis2):
    places = {axis1: i[-1] + larger(-offset, 0), axis2: i[-1] + larger(offset, 0)}
    rest = iter(i)
    return [places[d] if d in places else next(rest) for d in range(x.ndim)]


@diagonal.vjp
def _(g, x_spec, offset, axis1, axis2):
    plane = {"offset": offset, "axis1": axis1, "axis2": axis2}
    return embed_diagonal(g, shape=x_spec.shape, fill=0, **plane)


@movement
def embed_diagonal(m, x, *, shape, offset, axis1, axis2, fill):
    """`fill` everywhere but on the diagonals of the planes (axis1, axis2), which are x."""
    y = m.full(shape, fill, dtype=x.dtype)
    k = m.arange(x.shape[-1])
    m.moveaxis(y, (axis1, axis2), (-2, -1))[..., k + larger(-offset, 0), k + larger(offset, 0)] = x
    return y


embed_diagonal.shape(lambda x, shape, **_: Spec(tuple(shape), x.dtype))


@embed_diagonal.vjp
def _(g, offset, axis1, axis2):
    return diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


@movement
def tril(m, x, *, diagonal):
    """x with zeros above its diagonal number `diagonal`."""
    return m.tril(x, diagonal)


@movement
def triu(m, x, *, diagonal):
    """x with zeros below its diagonal number `diagonal`."""
    return m.triu(x, diagonal)


tril.shape(lambda x, diagonal: x)
triu.shape(lambda x, diagonal: x)


def triangle(i, x, low: int, high: int):
    """x where its columns minus its rows are in [low, high)."""
    return 0, [(0, i, [(i[-1] - i[-2], low, high)])]


tril.joins(lambda i, x, diagonal: triangle(i, x, -x.shape[-2], diagonal + 1))
triu.joins(lambda i, x, diagonal: triangle(i, x, diagonal, x.shape[-1]))
tril.vjp(lambda g, diagonal: tril(g, diagonal=diagonal))
triu.vjp(lambda g, diagonal: triu(g, diagonal=diagonal))


# ---- the same bytes --------------------------------------------------------------------------


@opaque
def reinterpret(m, x, *, dtype):
    """The bytes of x read as another dtype; the last axis shrinks or grows with the size of one."""
    y = m.ascontiguousarray(x)
    return y.view("uint8") != 0 if dtype.kind == "b" else y.view(dtype)


@reinterpret.shape
def _(x, *, dtype):
    if x.dtype.itemsize == dtype.itemsize:
        return Spec(x.shape, dtype)
    last, rest = divmod(x.shape[-1] * x.dtype.itemsize, dtype.itemsize) if x.ndim else (0, 1)
    if rest:
        raise ValueError(f"the bytes of {x} cannot be read as {dtype.name}")
    return Spec((*x.shape[:-1], last), dtype)


@opaque
def eye(m, *, rows, columns, dtype):
    """Ones on the main diagonal, zeros elsewhere."""
    return m.eye(rows, columns, dtype=dtype)


eye.shape(lambda rows, columns, dtype: Spec((rows, columns), dtype))


@movement
def pad(m, x, *, widths, value):
    """x with `widths[d]` = (before, after) entries of `value` added along axis `d`."""
    y = m.full([n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], value, dtype=x.dtype)
    y[as_key(inner(x.shape, widths))] = x
    return y


def inner(shape, widths) -> tuple:
    """The index of x in the padded result."""
    return tuple((a, a + n, 1) for n, (a, _) in zip(shape, widths, strict=True))


@pad.shape
def _(x, *, widths, value):
    if len(widths) != x.ndim or any(w < 0 for pair in widths for w in pair):
        raise ValueError(
            f"pad needs a pair (before, after) of counts >= 0 for each of the {x.ndim} axes of {x}"
        )
    return Spec(tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), x.dtype)


@pad.joins
def _(i, x, *, widths, value):
    where = inner(x.shape, widths)
    ranges = [(k, a, b) for k, (a, b, _) in zip(i, where, strict=True)]
    return value, [(0, [k - a for k, (a, _, _) in zip(i, where, strict=True)], ranges)]


pad.vjp(lambda g, x_spec, widths: slice_(g, index=inner(x_spec.shape, widths)))
