"""Gather and scatter: places named by arrays of whole numbers.

Three operators do the work, on one axis: `take` reads, `put` overwrites, `scatter_sum` adds up
(the adjoint of `take`). All other ways of naming places are first turned into positions along one
axis, by operators on whole numbers: `flat_index` (one index array per axis), `along_index`.
`take` and `put` are movements, but where from is in the data: they have no index map.
"""

from __future__ import annotations

import math

from ..core.dim import never, unknown
from ..core.dtype import bool_, int64
from ..core.errors import value_error
from ..core.op import movement, opaque
from ..core.record import Spec
from ..core.spec import broadcast_shapes
from .elementwise import where
from .movement import check_fits, fitted, replaced, reshape, strides_of

# ---- read, overwrite, add up -----------------------------------------------------------------


@movement
def take(m, x, index, *, axis):
    """The slices of x at the places `index` along `axis`, which takes the shape of `index`.

    Negative numbers count from the end; beyond it is an IndexError.
    """
    if not x.size:  # NumPy looks at places only if something is moved
        wrapped(m, index, x.shape[axis])
    return x.take(index, axis)


@take.shape
def _(x, index, *, axis):
    if index.dtype.kind not in "iu":
        raise TypeError(f"indices are whole numbers, not {index}")
    return Spec(replaced(x.shape, axis, *index.shape), x.dtype)


@take.vjp("x")
def _(g, x_spec, index, axis):
    return scatter_sum(g, index, shape=x_spec.shape, axis=axis)


@opaque
def scatter_sum(m, x, index, *, shape, axis):
    """Zeros of `shape` with the slices of x added at the places `index` along `axis`."""
    scatter_sum.infer(x, index, shape=shape, axis=axis)  # another shape might fit by accident
    size, rest = shape[axis], replaced(shape, axis)
    rows = m.moveaxis(x.reshape(replaced(shape, axis, index.size)), axis, 0)
    rows = rows.reshape(index.size, math.prod(rest))
    y = add_rows(m, rows, wrapped(m, index.reshape(-1), size), size)
    return m.moveaxis(y.reshape(size, *rest), 0, axis)


@scatter_sum.shape
def _(x, index, *, shape, axis):
    if x.shape != replaced(shape, axis, *index.shape):
        raise ValueError(
            f"updates of shape {list(x.shape)} for places {list(index.shape)} of axis {axis} of "
            f"{list(shape)}: {list(replaced(shape, axis, *index.shape))} is needed"
        )
    return Spec(tuple(shape), x.dtype)


scatter_sum.vjp(x=lambda g, index, axis: take(g, index, axis=axis))


def add_rows(m, rows, index, size: int):
    """y[index[k]] += rows[k] on `size` rows of zeros.

    A large sum is the product with the sparse matrix that has a one at (index[k], k): five to
    ten times as fast as adding one by one.
    """
    if m.name == "numpy" and rows.size > FEW and rows.dtype.kind in "fiu":
        n = len(index)
        ones, starts = m.ones(n, dtype=rows.dtype), m.arange(n + 1)
        return m.sparse.csc_array((ones, index, starts), shape=(size, n)) @ rows
    y = m.zeros((size, rows.shape[1]), dtype=rows.dtype)
    m.add.at(y, index, rows)
    return y


FEW = 1024


def wrapped(m, index, size: int):
    """Places counted from the front; raises IndexError for one outside [-size, size).

    On a GPU that is not looked for: each operator would have to wait for the values. (A compiled
    program looks, once in a run.)
    """
    if m.name == "numpy" and index.size:
        if index.view(f"u{index.itemsize}").max() < size:  # as unsigned, negative ones are huge
            return index
        low, high = index.min(), index.max()
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise IndexError(f"index {bad} is out of range for an axis of size {size}")
    return m.where(index < 0, index + size, index)


@movement
def put(m, x, index, value, *, axis):
    """A copy of x with `value`, broadcast, in the places `index` along `axis`.

    A place named twice keeps the last value; the gradient goes to every value put there.
    """
    y = x.copy()
    y[(*(slice(None),) * axis, index, ...)] = value
    return y


@put.shape
def _(x, index, value, *, axis):
    check_fits(value, take.infer(x, index, axis=axis).shape)
    return x


put.vjp(
    x=lambda g, index, axis: put(g, index, 0, axis=axis),
    value=lambda g, index, value_spec, axis: fitted(take(g, index, axis=axis), value_spec),
)

# ---- other ways to name places ---------------------------------------------------------------


@opaque
def flat_index(m, *indices, shape):
    """The positions in a row-major array of `shape` of the places given by one array per axis."""
    flat = 0
    for i, n in zip(indices, shape, strict=True):
        flat = flat * n + wrapped(m, i.astype("int64", copy=False), n)
    return flat


@flat_index.shape
def _(*indices, shape):
    if any(i.dtype.kind not in "iu" for i in indices):
        raise TypeError(f"indices are whole numbers, not {', '.join(map(str, indices))}")
    return Spec(broadcast_shapes(*(i.shape for i in indices)), int64.numpy)


@opaque
def along_index(m, index, *, shape, axis):
    """The positions in a row-major array of `shape` of place `index[i]` along `axis`, each at i."""
    along_index.infer(index, shape=shape, axis=axis)  # positions beyond the end of another axis
    index = index.astype("int64", copy=False)
    flat = wrapped(m, index, shape[axis]) * strides_of(shape)[axis]
    for d, step in enumerate(strides_of(shape)):
        if d != axis:
            lead = m.arange(index.shape[d]) * step
            flat = flat + lead.reshape(-1, *(1,) * (index.ndim - 1 - d))
    return flat


@along_index.shape
def _(index, *, shape, axis):
    pairs = enumerate(zip(index.shape, shape, strict=False))
    long = [d for d, (n, k) in pairs if d != axis and never(n, "<=", k)]
    if long or index.ndim != len(shape):
        raise ValueError(f"indices {index} do not fit along axis {axis} of {list(shape)}")
    return Spec(index.shape, int64.numpy)


def take_along(x, index, axis: int):
    """`x[i]` with `i[axis]` replaced by `index[i]`."""
    shape = x.spec.shape
    return take(
        reshape(x, shape=(x.spec.size,)), along_index(index, shape=shape, axis=axis), axis=0
    )


@opaque
def nonzero(m, x):
    """The index of every element that is not zero, one a row."""
    return m.argwhere(x)


nonzero.shape(lambda x: Spec((unknown(), x.ndim), int64.numpy))


@opaque
def flatnonzero(m, x):
    """The row-major position of every element that is not zero."""
    return m.flatnonzero(x)


flatnonzero.shape(lambda x: Spec((unknown(),), int64.numpy))


@opaque
def repeated(m, repeats):
    """0 repeats[0] times, 1 repeats[1] times, and so on."""
    ends = m.cumsum(repeats)
    return m.searchsorted(ends, m.arange(int(ends[-1]) if len(ends) else 0), "right")


repeated.shape(lambda repeats: Spec((unknown(),), int64.numpy))


@opaque
def extent(m, count):
    """As many places as `count` says, with nothing in them: so a value becomes a size."""
    count = int(count)
    if count < 0:
        hint = "the -1 of a reshape must be a number of Python: which size remains is known then"
        raise value_error(f"a size of {count}", expected="0 or more", hint=hint)
    return m.broadcast_to(m.zeros((), dtype=bool), (count,))


extent.shape(lambda count: Spec((unknown(),), bool_.numpy))

# ---- scatter with other folds than the sum ---------------------------------------------------


@opaque
def scatter_prod(m, x, index, value):
    """The vector x with x[index[k]] multiplied by value[k], for each k.

    The first derivative is exact with zeros among the factors, the second without.
    """
    index = wrapped(m, index, len(x))
    order = m.argsort(index, kind="stable")
    index, value = index[order], value[order]
    step = 1
    while step < len(index):  # value[k] becomes the product of the next 2, 4, 8, … of its place
        same = index[:-step] == index[step:]
        value[:-step] = m.where(same, value[:-step] * value[step:], value[:-step])
        step *= 2
    first = m.ones(len(index), dtype=bool)
    first[1:] = index[1:] != index[:-1]
    y = x.copy()
    y[index[first]] *= value[first]
    return y


@opaque
def scatter_max(m, x, index, value):
    """The vector x with x[index[k]] raised to at least value[k], for each k."""
    y = x.copy()
    m.maximum.at(y, index, value)
    return y


@opaque
def scatter_min(m, x, index, value):
    """The vector x with x[index[k]] lowered to at most value[k], for each k."""
    y = x.copy()
    m.minimum.at(y, index, value)
    return y


for op in (scatter_prod, scatter_max, scatter_min):
    op.shape(lambda x, index, value: x)


def counted(hits, index, like):
    """How often each place of the vector `like` is named by an index where `hits` holds."""
    return scatter_sum(hits.astype(like.dtype), index, shape=like.shape, axis=0)


def others(x, index, value):
    """For each place the product of its factors that are not 0, and how many are 0."""
    product = scatter_prod(where(x == 0, 1, x), index, where(value == 0, 1, value))
    return product, counted(value == 0, index, x.spec) + (x == 0).astype(x.spec.dtype)


def without(factor, product, zeros):
    """The product of a place's other factors: 0 if there is a 0 among them."""
    zero = factor == 0
    rest = where(zero, product, product / where(zero, 1, factor))
    return where(zeros == zero.astype(zeros.spec.dtype), rest, 0)


@scatter_prod.vjp("x")
def _(g, x, index, value):
    return g * without(x, *others(x, index, value))


@scatter_prod.vjp("value")
def _(g, x, index, value):
    product, zeros = others(x, index, value)
    rest = without(value, take(product, index, axis=0), take(zeros, index, axis=0))
    return take(g, index, axis=0) * rest


def shared(out, x, index, value):
    """1 / how many of a place's values equal the extremum: they share its gradient."""
    hits = value == take(out, index, axis=0)
    return 1 / (counted(hits, index, x.spec) + (x == out).astype(x.spec.dtype))


def extremum_x(g, out, x, index, value):
    """The gradient of a running extremum for what stood there before."""
    return where(x == out, g * shared(out, x, index, value), 0)


def extremum_value(g, out, x, index, value):
    """The gradient of a running extremum for what was put there."""
    share = take(g * shared(out, x, index, value), index, axis=0)
    return where(value == take(out, index, axis=0), share, 0)


scatter_max.vjp(x=extremum_x, value=extremum_value)
scatter_min.vjp(x=extremum_x, value=extremum_value)
