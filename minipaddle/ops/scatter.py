"""Places along an axis, and scatter with other reductions than the sum."""

from ..engine.core.dim import create_unknown, never
from ..engine.core.dtype import int64
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.elementwise import where
from ..engine.ops.gather import scatter_sum, take, wrap_negative
from ..engine.ops.movement import ravel, replace_axis, reshape
from .strided import spread_axes


@opaque
def along_index(m, index, *, shape, axis):
    """The positions in a row-major array of `shape` of place `index[i]` along `axis`, each at i."""
    along_index.infer(
        index, shape=shape, axis=axis
    )  # else positions may be beyond the end of another axis
    at = wrap_negative(m, index.astype("int64", copy=False), shape[axis])
    return ravel(replace_axis(spread_axes([m.arange(n) for n in index.shape]), axis, at), shape)


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
def repeated(m, repeats):
    """0 repeats[0] times, 1 repeats[1] times, and so on."""
    ends = m.cumsum(repeats)
    return m.searchsorted(ends, m.arange(int(ends[-1]) if len(ends) else 0), "right")


repeated.shape(lambda repeats: Spec((create_unknown(),), int64.numpy))


@opaque
def scatter_add(m, x, index, value, *, axis):
    """x with the slices of `value` added at the places `index` along `axis`.

    A program has it for x + scatter_sum(value, index): a kernel that may write over x touches these
    slices alone.
    """
    scatter_add.infer(x, index, value, axis=axis)
    return x + scatter_sum.body(m, value, index, shape=x.shape, axis=axis)


@scatter_add.shape
def _(x, index, value, *, axis):
    sums = scatter_sum.infer(value, index, shape=x.shape, axis=axis)
    if sums.dtype != x.dtype:
        raise ValueError(f"{value} cannot be added to {x}")
    return x


scatter_add.vjp(x=lambda g: g, value=lambda g, index, axis: take(g, index, axis=axis))


@opaque
def equal_places(m, index):
    """For each number of a vector a place at which it stands, the same for all that are equal."""
    _, place, inverse = m.unique(index, return_index=True, return_inverse=True)
    return place[inverse].astype("int64", copy=False)


equal_places.shape(lambda index: Spec(index.shape, int64.numpy))


@opaque
def scatter_prod(m, x, index, value):
    """The vector x with x[index[k]] multiplied by value[k], for each k.

    The first derivative is exact with zeros among the factors, the second without.
    """
    index = wrap_negative(m, index, len(x))
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


def count_hits(hits, index, like):
    """For each place of the vector `like`: how often `index` names it where `hits` holds."""
    return scatter_sum(hits.astype(like.dtype), index, shape=like.shape, axis=0)


def product_and_zeros(x, index, value):
    """For each place the product of its factors that are not 0, and how many are 0."""
    product = scatter_prod(where(x == 0, 1, x), index, where(value == 0, 1, value))
    return product, count_hits(value == 0, index, x.spec) + (x == 0).astype(x.spec.dtype)


def multiply_others(factor, product, zeros):
    """The product of a place's other factors: 0 if there is a 0 among them."""
    zero = factor == 0
    rest = where(zero, product, product / where(zero, 1, factor))
    return where(zeros == zero.astype(zeros.spec.dtype), rest, 0)


@scatter_prod.vjp("x")
def _(g, x, index, value):
    return g * multiply_others(x, *product_and_zeros(x, index, value))


@scatter_prod.vjp("value")
def _(g, x, index, value):
    product, zeros = product_and_zeros(x, index, value)
    rest = multiply_others(value, take(product, index, axis=0), take(zeros, index, axis=0))
    return take(g, index, axis=0) * rest


def tie_share(out, x, index, value):
    """1 / how many of a place's values equal the extremum: they share its gradient."""
    hits = value == take(out, index, axis=0)
    return 1 / (count_hits(hits, index, x.spec) + (x == out).astype(x.spec.dtype))


def cotangent_of_x(g, out, x, index, value):
    """The cotangent of the value that stood at the place before."""
    return where(x == out, g * tie_share(out, x, index, value), 0)


def cotangent_of_value(g, out, x, index, value):
    """The cotangent of the values that were put there."""
    share = take(g * tie_share(out, x, index, value), index, axis=0)
    return where(value == take(out, index, axis=0), share, 0)


scatter_max.vjp(x=cotangent_of_x, value=cotangent_of_value)
scatter_min.vjp(x=cotangent_of_x, value=cotangent_of_value)
