"""Movement: elements change place, never value, in any dtype.

The index map says where output element `i` comes from, so a code generator reads through a movement
without a copy. An operator that joins several inputs, or fills places with a constant (`pad`,
`unslice`), has a map to parts.
"""

from __future__ import annotations

from ..core.dim import is_one, never, same, same_shape
from ..core.op import movement, names
from ..core.polynomial import ravel, unravel
from ..core.record import Record, Spec
from ..core.spec import fits
from .slices import as_key, find_places, slice_shape

# ---- positions and shapes --------------------------------------------------------------------


def replace_axis(items, axis: int, *new) -> tuple:
    """A tuple with the entry at `axis` replaced by any number of others."""
    return (*items[:axis], *new, *items[axis + 1 :])


# ---- one shape to another --------------------------------------------------------------------


@movement
def reshape(m, x, *, shape):
    """The same elements, in row-major order, in another shape."""
    return x.reshape(shape)


def whole(shape: tuple, x: Spec) -> tuple:
    """A shape whose -1 is replaced by the size that remains for x."""
    if -1 not in shape:
        return tuple(shape)
    k = shape.index(-1)
    known = Spec((*shape[:k], *shape[k + 1 :]), x.dtype).size
    return replace_axis(shape, k, x.size // known if known else 0)


@reshape.shape
def _(x, *, shape):
    shape = whole(shape, x)
    if not same(Spec(shape, x.dtype).size, x.size):
        raise ValueError(f"{x} has {x.size} elements, which do not fill shape {list(shape)}")
    return Spec(shape, x.dtype)


reshape.index(lambda i, x, shape: unravel(ravel(i, whole(shape, x)), x.shape))
reshape.vjp(lambda g, x_spec: reshape(g, shape=x_spec.shape))
reshape.alias = lambda record: True


@movement
def transpose(m, x, *, perm):
    """Axis `d` of the result is axis `perm[d]` of x."""
    return x.transpose(perm)


@transpose.shape
def _(x, *, perm):
    if sorted(perm) != list(range(x.ndim)):
        raise ValueError(f"perm {list(perm)} is no order of the {x.ndim} axes of {x}")
    return Spec(tuple([x.shape[d] for d in perm]), x.dtype)


def inverse(perm) -> tuple:
    """The order that undoes `perm`."""
    return tuple(map(perm.index, range(len(perm))))


transpose.index(lambda i, x, perm: [i[d] for d in inverse(perm)])
transpose.vjp(lambda g, perm: transpose(g, perm=inverse(perm)))


def in_order(record: Record) -> bool:
    """Whether a transpose keeps the order of the axes that are longer than 1."""
    shape = record.inputs[0].shape
    long = [d for d in record.attrs["perm"] if shape[d] != 1]
    return long == sorted(long)


transpose.alias = in_order


@movement
def broadcast_to(m, x, *, shape):
    """x repeated along new leading axes and along axes of size 1."""
    return m.broadcast_to(x, shape)


@broadcast_to.shape
def _(x, *, shape):
    if any(never(n, ">=", 0) for n in shape):
        raise ValueError(f"shape {list(shape)} has a negative size where {x} has no axis to keep")
    if not fits(x.shape, shape):
        raise ValueError(f"{x} does not broadcast to shape {list(shape)}")
    return Spec(tuple(shape), x.dtype)


@broadcast_to.index
def _(i, x, *, shape):
    return [0 if n == 1 else k for n, k in zip(x.shape, i[len(shape) - x.ndim :], strict=True)]


broadcast_to.vjp(lambda g, x_spec: g.sum_to(x_spec.shape))


def same_size(record: Record) -> bool:
    return record.spec.size == record.inputs[0].spec.size


broadcast_to.alias = same_size

# ---- slices ----------------------------------------------------------------------------------


@movement
def slice_(m, x, *, index):
    """The part of x that `index` names: for each axis an int, None or (start, stop, step)."""
    return x[as_key(index)]


slice_.shape(lambda x, index: Spec(slice_shape(x, index), x.dtype))
slice_.vjp(lambda g, x_spec, index: unslice(g, shape=x_spec.shape, index=index))


@slice_.index
def _(i, x, *, index):
    i, sizes, out = list(i), list(x.shape), []
    for k in index:
        j = None if isinstance(k, int) else i.pop(0)
        if k is None:
            continue
        n = sizes.pop(0)
        if j is None:
            out.append(k % n)
        else:
            start, _, step = find_places(k, n)
            out.append(start + j * step)
    return [*out, *i]


def forwards(record: Record) -> bool:
    """Whether a slice takes every element in order."""
    steps = [k[2] for k in record.attrs["index"] if type(k) is tuple]
    return same_size(record) and all(step is None or step > 0 for step in steps)


slice_.alias = forwards


@movement
def unslice(m, x, *, shape, index):
    """Zeros of `shape` with x at the place that `index` names: the adjoint of a slice."""
    y = m.zeros(shape, dtype=x.dtype)
    y[as_key(index)] = x
    return y


unslice.shape(lambda x, shape, index: Spec(tuple(shape), x.dtype))


@unslice.joins
def _(i, x, *, shape, index):
    """Only for slices of step 1, whole axes and dropped ones."""
    key = [*index, *WHOLE[: len(shape) - len(index)]]
    if None in index or any(type(k) is tuple and k[2] not in (None, 1) for k in key):
        return None
    ranges, j = [], []
    for k, n, at in zip(key, shape, i, strict=True):
        start, stop, _ = find_places(k, n) if type(k) is tuple else (k % n, k % n + 1, 1)
        ranges.append((at, start, max(stop, start)))
        j += [at - start] if type(k) is tuple else []
    return 0, [(0, j, ranges)]


unslice.shards(linear="x")
unslice.vjp(lambda g, index: slice_(g, index=index))


@movement
def slice_assign(m, x, value, *, index):
    """A copy of x with `value`, broadcast and in x's dtype, at the place that `index` names."""
    y = x.copy()
    y[as_key(index)] = value
    return y


@slice_assign.shape
def _(x, value, *, index):
    check_fits(value, slice_shape(x, index))
    return x


def check_fits(value, place: tuple) -> None:
    """Raise ValueError when a value (a spec or a number) cannot be assigned to a place.

    It may broadcast. It may have more axes than the place if these have size 1.
    """
    shape = value.shape if isinstance(value, Spec) else ()
    extra = max(len(shape) - len(place), 0)
    if not all(map(is_one, shape[:extra])) or not fits(shape[extra:], place):
        raise ValueError(
            f"a value of shape {list(shape)} does not fit into {list(place)}: they do not broadcast"
        )


slice_assign.vjp(
    x=lambda g, index: slice_assign(g, 0, index=index),
    value=lambda g, value_spec, index: sum_to_spec(slice_(g, index=index), value_spec),
)


def sum_to_spec(g, spec):
    """The cotangent of a value that was broadcast on assignment.

    The reshape brings back leading axes of size 1, which the assignment dropped.
    """
    extra = len(spec.shape) - len(g.spec.shape)
    if extra > 0:
        return reshape(g.sum_to(spec.shape[extra:]), shape=spec.shape)
    return g.sum_to(spec.shape)


# ---- several in one, one in several ----------------------------------------------------------


@movement(promote=True)
def concat(m, *xs, axis):
    """The xs, one after the other along an existing axis."""
    return m.concatenate(xs, axis)


@concat.shape
def _(*xs, axis):
    first = xs[0]
    if not first.ndim:
        raise ValueError("0-D tensors have no axis to be joined along; stack gives them one")
    for x in xs:
        if not same_shape(replace_axis(x.shape, axis), replace_axis(first.shape, axis)):
            raise ValueError(
                f"{', '.join(map(str, xs))} cannot be joined along axis {axis}: "
                "all other dimensions must be equal"
            )
    return Spec(replace_axis(first.shape, axis, sum(x.shape[axis] for x in xs)), first.dtype)


@concat.joins
def _(i, *xs, axis):
    parts, end = [], 0
    for k, x in enumerate(xs):
        start, end = end, end + x.shape[axis]
        parts.append((k, replace_axis(i, axis, i[axis] - start), [(i[axis], start, end)]))
    return 0, parts


@concat.vjp
def _(g, specs, k, axis):
    start = sum(x.shape[axis] for x in specs[:k])
    return slice_(g, index=(*WHOLE[:axis], (start, start + specs[k].shape[axis], 1)))


concat.shards(linear="xs")


WHOLE = ((None, None, None),) * 64
"""Slices that leave axes whole; NumPy allows 64."""


def letters_but(x, axis: int, instead: str = ".") -> str:
    """A letter for each axis of x but one."""
    return "".join(replace_axis(tuple(names(x.ndim)), axis, instead))


@movement
def split(m, x, *, sizes, axis):
    """x cut along `axis` into pieces of the given sizes."""
    out, start = [], 0
    for n in sizes:
        out.append(x[(slice(None),) * axis + (slice(start, start + n),)])
        start += n
    return tuple(out)


@split.shape
def _(x, *, sizes, axis):
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"sections {list(sizes)} do not add up to axis {axis} of {x}")
    return tuple(Spec(replace_axis(x.shape, axis, n), x.dtype) for n in sizes)


split.vjp(lambda g, axis: concat(*g, axis=axis))


@movement(promote=True)
def stack(m, *xs, axis):
    """The xs, all of one shape, side by side along a new axis."""
    first = xs[0]
    shape = (*first.shape[:axis], len(xs), *first.shape[axis:])
    y = m.empty(shape, dtype=first.dtype)
    lead = (slice(None),) * axis
    for k, x in enumerate(xs):
        if x.shape != first.shape:
            raise ValueError("shapes differ")
        y[(*lead, k)] = x
    return y


@stack.shape
def _(*xs, axis):
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        raise ValueError(f"stack needs equal shapes, not {', '.join(map(str, xs))}")
    return Spec((*shape[:axis], len(xs), *shape[axis:]), xs[0].dtype)


@stack.joins
def _(i, *xs, axis):
    rest = replace_axis(i, axis)
    return 0, [(k, rest, [(i[axis], k, k + 1)]) for k in range(len(xs))]


stack.vjp(lambda g, k, axis: slice_(g, index=(*WHOLE[:axis], k)))
stack.shards(linear="xs")


MOST_PARTS = 1 << 16


@movement
def unstack(m, x, *, axis):
    """The slices of x along `axis`, each without that axis."""
    lead = (slice(None),) * axis
    return tuple([x[(*lead, k, ...)] for k in range(x.shape[axis])])


@unstack.shape
def _(x, *, axis):
    if x.shape[axis] > MOST_PARTS:
        raise ValueError(f"unstack makes {MOST_PARTS:,} tensors at most, not those of {x}")
    return (Spec(replace_axis(x.shape, axis), x.dtype),) * x.shape[axis]


unstack.vjp(lambda g, axis: stack(*g, axis=axis))
unstack.shards(
    lambda x, axis: (
        letters_but(x, axis) + "->" + ",".join([letters_but(x, axis, "")] * x.shape[axis])
    ),
    linear="x",
)
split.shards(
    lambda x, sizes, axis: (
        letters_but(x, axis) + "->" + ",".join([letters_but(x, axis)] * len(sizes))
    ),
    linear="x",
)
unstack.view = split.view = True
