"""Sorting, searching and distinct values.

Every order is stable: equal values keep their order, and nan counts as the largest value. So a
result does not depend on the library or the executor that sorts.
"""

from ..engine.core import dim as dims
from ..engine.core.dtype import int64
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.gather import scatter_sum
from ..engine.ops.movement import replace_axis, reshape
from .scan import lines
from .scatter import along_index


def sort_places(m, x, axis: int, descending: bool):
    """The stable order of x along `axis`, as places."""
    if not descending:
        return m.argsort(x, axis, kind="stable")
    back = m.flip(m.argsort(m.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def places(x, axis: int, size: int) -> Spec:
    """The spec of `size` places along `axis` of x."""
    return Spec(replace_axis(x.shape, axis, size), int64.numpy)


@opaque
def argsort(m, x, *, axis, descending):
    """The places of the elements along `axis` in rising (or falling) order."""
    return sort_places(m, x, axis, descending)


argsort.shape(lambda x, axis, descending: places(x, axis, x.shape[axis]))


@opaque
def sort(m, x, *, axis, descending):
    """The elements along `axis` in rising (or falling) order."""
    y = m.sort(x, axis)
    return m.flip(y, axis) if descending else y


sort.shape(lambda x, axis, descending: x)


@sort.vjp
def _(g, x, axis, descending):
    """Adds each cotangent at the source of its element."""
    spec = x.spec
    order = along_index(argsort(x, axis=axis, descending=descending), shape=spec.shape, axis=axis)
    flat = scatter_sum(
        reshape(g, shape=(spec.size,)),
        reshape(order, shape=(spec.size,)),
        shape=(spec.size,),
        axis=0,
    )
    return reshape(flat, shape=spec.shape)


@opaque
def topk_index(m, x, *, k, axis, largest):
    """The places of the `k` largest (or smallest) elements along `axis`, best first."""
    topk_index.infer(x, k=k, axis=axis, largest=largest)  # a slice would be silently short
    few = largest and k <= FEW and k * MANY <= x.size
    if few and m.name == "numpy" and x.dtype.kind == "f":
        best = find_best(m, m.moveaxis(x, axis, -1), k)
        if best is not None:
            return m.moveaxis(best, -1, axis)
    first = (*(slice(None),) * axis, slice(0, k))
    return sort_places(m, x, axis, largest)[first]


FEW, MANY = 16, 512
"""As many elements are found faster one after the other than by sorting, where the array has as
many for each of them."""


def find_best(m, x, k):
    """The places of the `k` largest elements of each row, the best first; None if there may be -inf
    among them, which here stands for an element that is taken.
    """
    n, rows = x.shape[-1], x.size // x.shape[-1]
    left = m.array(x).reshape(rows, n)  # a copy
    flat, starts = left.reshape(-1), m.arange(rows) * n
    best = m.empty((rows, k), "int64")
    for j in range(k):
        best[:, j] = place = m.argmax(left, 1)
        place += starts
        if (flat[place] == -m.inf).any():
            return None
        flat[place] = -m.inf
    return best.reshape(*x.shape[:-1], k)


@topk_index.shape
def _(x, *, k, axis, largest):
    if dims.never(k, ">=", 1) or dims.never(k, "<=", x.shape[axis]):
        raise ValueError(f"k={k} elements of the {x.shape[axis]} along axis {axis} of {x}")
    dims.suppose(k, ">=", 1)
    dims.suppose(k, "<=", x.shape[axis])
    return places(x, axis, k)


@opaque
def mode_index(m, x, *, axis):
    """The last place of the most frequent element along `axis`; of several, the smallest."""
    order = m.moveaxis(sort_places(m, x, axis, False), axis, -1)
    n = order.shape[-1]
    rows = m.take_along_axis(m.moveaxis(x, axis, -1), order, -1).reshape(-1, n)
    new = m.ones(rows.shape, dtype=bool)
    new[:, 1:] = rows[:, 1:] != rows[:, :-1]
    run = m.cumsum(new, -1) - 1  # the number of the run of equal elements each one is in
    lengths = m.zeros(rows.shape, dtype="int64")
    m.add.at(lengths, (m.arange(len(rows))[:, None], run), 1)
    end = m.cumsum(lengths, -1)[m.arange(len(rows)), m.argmax(lengths, -1)] - 1
    last = m.take_along_axis(order, end.reshape(*order.shape[:-1], 1), -1)
    return m.moveaxis(last, -1, axis)


mode_index.shape(lambda x, axis: places(x, axis, 1))


@opaque
def searchsorted(m, sorted_sequence, values, *, right):
    """Where to insert `values` so that each row stays sorted: the leftmost place, or the right."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return m.searchsorted(sorted_sequence, values, side)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    wanted = values.reshape(len(rows), values.shape[-1])
    hits = [m.searchsorted(row, v, side) for row, v in zip(rows, wanted, strict=True)]
    return m.stack(hits).reshape(values.shape) if hits else m.zeros(values.shape, dtype="int64")


@searchsorted.shape
def _(sorted_sequence, values, *, right):
    if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"a sorted sequence of shape {list(sorted_sequence.shape)} serves values of shape "
            f"[{', '.join(map(str, sorted_sequence.shape[:-1]))}, any], not {list(values.shape)}"
        )
    return Spec(values.shape, int64.numpy)


@opaque
def unique(m, x, *, axis):
    """The distinct elements (slices, with an axis) in rising order.

    With them come the first place of each, the number of each element among them, and the counts.
    """
    y, first, which, counts = m.unique(x, True, True, True, axis=axis)
    return y, first, which.reshape(-1), counts


@opaque
def unique_consecutive(m, x, *, axis):
    """x without elements that repeat the one before.

    With it come the number of the run of each element, and the lengths of the runs.
    """
    x = x.reshape(-1) if axis is None else m.moveaxis(x, axis, 0)
    n = len(x)
    new = m.ones(n, dtype=bool)
    new[1:] = (x[1:] != x[:-1]).any(tuple(range(1, x.ndim)))
    starts = m.flatnonzero(new)
    counts = m.diff(m.concatenate([starts, m.array([n])]))
    return m.moveaxis(x[new], 0, axis or 0), m.cumsum(new) - 1, counts


def distinct(x, axis) -> tuple[Spec, Spec, Spec]:
    """The specs of the distinct elements (slices, with an axis), how many nobody knows yet; of a
    number for each of them; and of a number for each element of x.
    """
    count, size = dims.create_unknown(), x.size if axis is None else x.shape[axis]
    shape = (count,) if axis is None else replace_axis(x.shape, axis, count)
    return Spec(shape, x.dtype), Spec((count,), int64.numpy), Spec((size,), int64.numpy)


@unique.shape
def _(x, *, axis):
    values, each, which = distinct(x, axis)
    return values, each, which, each


@unique_consecutive.shape
def _(x, *, axis):
    values, each, which = distinct(x, axis)
    return values, which, each


for op in (argsort, sort, topk_index, mode_index):
    op.shards(lines)
