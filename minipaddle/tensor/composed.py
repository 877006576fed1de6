"""Functions that are a line or two of others; the second names that Paddle took from PyTorch."""

import itertools

from ..core.prelude import axis_of, e, indexing, movement, type_error, value_error
from ..engine.core.spec import broadcast_shapes as common_shape
from ..engine.ops.logic import logical_not
from ..ops import arrangement
from ..ops.truth import isfinite
from . import along, arranging, creation, inplace, joining, linalg, math, reduce, search, shaping

SECOND_NAMES = {
    joining: {"concat": "cat concatenate", "vstack": "row_stack"},
    math: {
        "clip": "clamp", "divide": "div", "equal": "eq", "greater_equal": "ge",
        "greater_than": "greater gt", "less_equal": "le", "less_than": "lt", "multiply": "mul",
        "neg": "negative", "not_equal": "ne", "subtract": "sub",
    },
    inplace: {"clip_": "clamp_", "divide_": "div_", "multiply_": "mul_", "subtract_": "sub_"},
    arranging: {"flip": "reverse"},
    shaping: {"swapaxes": "swapdims"},
    linalg: {"outer": "ger"},
    along: {"take_along_axis": "take_along_dim"},
}  # fmt: skip
ALIASES = {
    second: getattr(module, first)
    for module, names in SECOND_NAMES.items()
    for first, seconds in names.items()
    for second in seconds.split()
}
globals().update(ALIASES)

# ---- made ------------------------------------------------------------------------------------


def as_tensor(data, dtype=None):
    """`to_tensor`.

    >>> paddle.as_tensor([1, 2]).tolist()
    [1, 2]
    """
    return creation.to_tensor(data, dtype)


def asarray(obj, *, dtype=None, copy=None):
    """`to_tensor`; the same tensor if `obj` is one and `copy` is not True.

    >>> x = paddle.ones([2])
    >>> paddle.asarray(x) is x
    True
    """
    if hasattr(obj, "spec") and not copy:
        return obj if dtype is None else obj.astype(dtype)
    return creation.to_tensor(obj, dtype)


def from_numpy(ndarray):
    """A tensor with a copy of an array.

    >>> paddle.from_numpy(paddle.ones([2]).numpy()).tolist()
    [1.0, 1.0]
    """
    return creation.to_tensor(ndarray)


def tril_indices(row, col, offset=0, dtype="int64"):
    """The rows and the columns of a matrix's lower triangle: [2, count].

    >>> paddle.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    places = [(i, j) for i in range(row) for j in range(min(col, max(0, i + offset + 1)))]
    return two_rows(places, dtype)


def triu_indices(row, col=None, offset=0, dtype="int64"):
    """The rows and the columns of a matrix's upper triangle: [2, count].

    >>> paddle.triu_indices(2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    col = row if col is None else col
    return two_rows([(i, j) for i in range(row) for j in range(max(0, i + offset), col)], dtype)


def two_rows(pairs: list, dtype):
    return creation.to_tensor([[pair[k] for pair in pairs] for k in (0, 1)], dtype)


def broadcast_shapes(*shapes):
    """The shape of a sum of tensors of these shapes.

    >>> paddle.broadcast_shapes([2, 1], [3], [1, 1])
    [2, 3]
    """
    return list(common_shape(*map(tuple, shapes)))


# ---- arithmetic ------------------------------------------------------------------------------


def true_divide(input, other):
    """input / other.

    >>> paddle.true_divide(paddle.to_tensor([1, 2]), 2).tolist()
    [0.5, 1.0]
    """
    return math.divide(input, other)


def positive(x, name=None):
    """x itself.

    >>> paddle.positive(paddle.to_tensor([-1.0])).tolist()
    [-1.0]
    """
    if x.spec.dtype.kind == "b":
        raise type_error(f"positive of {x.spec}", "numbers")
    return x


def frexp(x, name=None):
    """(mantissa, exponent), both in x's dtype: x = mantissa · 2^exponent, 0.5 ≤ |mantissa| < 1.

    Of 0, ∞ and NaN the mantissa is x and the exponent 0.

    >>> [part.tolist() for part in paddle.frexp(paddle.to_tensor([8.0, -0.75]))]
    [[0.5, -0.75], [4.0, 0.0]]
    """
    ordinary = isfinite(x) & (x != 0)
    safe = e.where(ordinary, x, 1.0)
    exponent = math.floor(math.log2(e.abs(safe))) + 1
    half = math.floor(exponent / 2)  # two steps: 2^exponent can be more than the dtype holds
    mantissa = safe * 2.0 ** (-half) * 2.0 ** (half - exponent)
    for wrong, factor in ((e.abs(mantissa) >= 1, 0.5), (e.abs(mantissa) < 0.5, 2.0)):
        mantissa = e.where(wrong, mantissa * factor, mantissa)
        exponent = e.where(wrong, exponent + (1 if factor < 1 else -1), exponent)
    return e.where(ordinary, mantissa, x), e.where(ordinary, exponent, 0.0)


def cumulative_trapezoid(y, x=None, dx=None, axis=-1, name=None):
    """`trapezoid` from the beginning up to each place but the first.

    >>> paddle.cumulative_trapezoid(paddle.to_tensor([1.0, 2.0, 3.0])).tolist()
    [1.5, 4.0]
    """
    return reduce.cumsum(*math.trapezoids(y, x, dx, axis))


def reduce_as(x, target, name=None):
    """x summed over the axes along which `target` would be broadcast to it.

    >>> paddle.reduce_as(paddle.ones([2, 3]), paddle.ones([3])).tolist()
    [2.0, 2.0, 2.0]
    """
    wide, shape = x.spec.shape, target.spec.shape
    if common_shape(wide, shape) != wide:
        raise value_error(f"reduce_as of {x.spec} to {target.spec}", "part of it")
    return movement.reshape(x.sum_to(shape), shape=shape)


# ---- searched --------------------------------------------------------------------------------


def argwhere(input):
    """The index of each element that is not zero: [count, ndim].

    >>> paddle.argwhere(paddle.to_tensor([0, 5])).tolist()
    [[1]]
    """
    return search.nonzero(input)


def msort(input):
    """Sorted along the first axis.

    >>> paddle.msort(paddle.to_tensor([2, 1])).tolist()
    [1, 2]
    """
    return search.sort(input, axis=0)


def isin(x, test_x, assume_unique=False, invert=False, name=None):
    """For each element of x, whether it is one of `test_x` (or is none, with `invert`).

    >>> paddle.isin(paddle.to_tensor([1, 2, 3]), paddle.to_tensor([3, 1])).tolist()
    [True, False, True]
    """
    row, size = shaping.flatten(test_x), test_x.spec.size
    if not size:
        inside = x != x if x.spec.dtype.kind != "f" else creation.full_like(x, False, "bool")
    else:
        row = search.sort(row)
        place = e.minimum(search.searchsorted(row, x), size - 1)
        inside = math.equal(indexing.take(row, place, axis=0), x)
    return logical_not(inside) if invert else inside


# ---- shapes ----------------------------------------------------------------------------------


def ravel(input):
    """All elements in one axis.

    >>> paddle.ravel(paddle.ones([2, 3])).shape
    [6]
    """
    return shaping.flatten(input)


def narrow(input, dim, start, length):
    """`length` places along `dim`, from `start` on.

    >>> paddle.narrow(paddle.arange(5), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    size = input.spec.shape[dim]
    start = start.item() if hasattr(start, "spec") else start
    begin = start + size if start < 0 else start
    if not (0 <= begin <= size and 0 <= length <= size - begin):
        raise value_error(
            f"narrow of {input.spec} along axis {dim} to {length} from {start} on",
            f"places of 0 to {size}",
        )
    return joining.slice(input, [dim], [begin], [begin + length])


def column_stack(x, name=None):
    """Joined side by side, vectors as columns.

    >>> paddle.column_stack([paddle.zeros([2]), paddle.ones([2])]).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    return joining.concat([t if t.spec.ndim > 1 else t.reshape([-1, 1]) for t in x], 1)


def block_diag(inputs, name=None):
    """One matrix with the matrices of a list along its diagonal, zeros elsewhere.

    >>> paddle.block_diag([paddle.ones([1, 1]), paddle.ones([1, 2])]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    blocks = [shaping.atleast_2d(block) for block in inputs]
    widths = [block.spec.shape[1] for block in blocks]
    rows = [
        arrangement.pad(block, widths=((0, 0), (sum(widths[:k]), sum(widths[k + 1 :]))), value=0)
        for k, block in enumerate(blocks)
    ]
    return joining.concat(rows, 0)


def cartesian_prod(x, name=None):
    """Each choice of one element of every vector in a list, as a row.

    >>> paddle.cartesian_prod([paddle.to_tensor([1, 2]), paddle.to_tensor([3, 4])]).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if len(x) == 1:
        return x[0]
    return joining.stack([shaping.flatten(t) for t in joining.meshgrid(*x)], 1)


def combinations(x, r=2, with_replacement=False, name=None):
    """Each choice of r elements of a vector, in order, as a row.

    >>> paddle.combinations(paddle.to_tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if x.spec.ndim != 1 or r < 0:
        raise value_error(f"combinations of {r} of {x.spec}", "a vector, r >= 0")
    kind = "combinations_with_replacement" if with_replacement else "combinations"
    rows = list(getattr(itertools, kind)(range(x.spec.size), r))
    if not rows or not r:
        return creation.empty([0, r] if r else [0], x.spec.dtype)
    return indexing.take(x, creation.to_tensor(rows, "int64"), axis=0)


# ---- written ---------------------------------------------------------------------------------


def diagonal_scatter(x, y, offset=0, axis1=0, axis2=1, name=None):
    """x with y in the place of its diagonal.

    >>> paddle.diagonal_scatter(paddle.zeros([2, 2]), paddle.ones([2])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = x.spec.shape
    places = creation.arange(x.spec.size).reshape(list(shape))
    places = arranging.diagonal(places, offset, axis1, axis2)
    if places.spec.shape != y.spec.shape:
        raise value_error(f"a diagonal of {y.spec}", f"shape {places.shape}")
    flat = indexing.put(shaping.flatten(x), shaping.flatten(places), shaping.flatten(y), axis=0)
    return movement.reshape(flat, shape=shape)


def select_scatter(x, values, axis, index, name=None):
    """x with `values` at one place along an axis.

    >>> paddle.select_scatter(paddle.zeros([2, 2]), paddle.ones([2]), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return put_at(x, values, {axis_of(axis, x.spec.ndim): index})


def slice_scatter(x, value, axes, starts, ends, strides, name=None):
    """x with `value` in the place of a slice.

    >>> paddle.slice_scatter(paddle.zeros([4]), paddle.ones([2]), [0], [0], [4], [2]).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    slices = map(slice, starts, ends, strides)
    return put_at(x, value, {axis_of(d, x.spec.ndim): s for d, s in zip(axes, slices)})


def put_at(x, value, places: dict):
    """A copy of x with `value` at the places (a number or a slice) given for some axes."""
    y = creation.assign(x)
    y[tuple(places.get(d, slice(None)) for d in range(x.spec.ndim))] = value
    return y


__all__ = [
    *ALIASES, "argwhere", "as_tensor", "asarray", "block_diag", "broadcast_shapes",
    "cartesian_prod", "column_stack", "combinations", "cumulative_trapezoid", "diagonal_scatter",
    "frexp", "from_numpy", "isin", "msort", "narrow", "positive", "ravel", "reduce_as",
    "select_scatter", "slice_scatter", "tril_indices", "triu_indices", "true_divide",
]  # fmt: skip
