"""How transposes move through operators: each operator is applied to the bases of views.

`HANDLERS` and `KINDS` have a rule for each operator. A rule gets the sinker, the record, and a view
for each input (None for a number). It returns the view of the result, or None if the operator needs
its inputs without views; for an operator of several results, the new record and the permutation of
each result.
"""

from __future__ import annotations

from ..engine.ops.creation import assign
from ..engine.ops.linalg import product
from ..engine.ops.movement import (
    broadcast_to,
    concat,
    inverse,
    pad,
    reshape,
    slice_,
    split,
    transpose,
    unslice,
    unstack,
)
from .permuted_views import View, brought, plain, reshaped, without


def through_transpose(sinker, record, views):
    return views[0].transposed(record.attrs["perm"])


def through_elementwise(sinker, record, views):
    ndim = len(record.shape)
    places = [k for k, v in enumerate(views) if v is not None and v.perm]
    wide = {}
    for k in places:
        v, extra = views[k], ndim - len(views[k].perm)
        base = sinker.with_rank(sinker.materialize(v), ndim) if extra else v.base
        wide[k] = plain(base) if extra else v
    target = sinker.order(record, list(wide.values()))
    inputs = list(record.inputs)
    for k, v in enumerate(views):
        if k in wide:
            inputs[k] = sinker.transposed(wide[k].base, brought(wide[k], target))
        elif v is not None:
            inputs[k] = v.base
    view = View(sinker.emit(record.op, inputs, record.attrs), target)
    if len({v.perm for v in wide.values() if v.base.spec.size == record.spec.size}) > 1:
        sinker.choice(record, view)
    if view.is_identity:
        sinker.note_state_order(view.base)
    return view


def through_reduction(sinker, record, views):
    axis, keepdim, view = record.attrs["axis"], record.attrs["keepdim"], views[0]
    moved = tuple(sorted(view.perm[d] for d in axis))
    base = sinker.emit(record.op, [view.base], {"axis": moved, "keepdim": keepdim})
    return View(base, view.perm if keepdim else without(view.perm, axis))


def through_reshape(sinker, record, views):
    found = reshaped(views[0], record.shape)
    if found is None:
        return None
    shape, perm = found
    return View(sinker.emit(reshape, [views[0].base], {"shape": shape}), perm)


def through_broadcast(sinker, record, views):
    view = views[0]
    if len(view.perm) != len(record.shape):
        return None
    shape = tuple(record.shape[d] for d in inverse(view.perm))
    return View(sinker.emit(broadcast_to, [view.base], {"shape": shape}), view.perm)


def in_base(view: View, entries) -> tuple:
    """Entries for the axes of a view, reordered for the axes of its base."""
    return tuple(entries[d] for d in inverse(view.perm))


def of_all_axes(index: tuple, ndim: int) -> tuple:
    """An index with an entry for every axis."""
    return (*index, *[(None, None, None)] * (ndim - len(index)))


def through_slice(sinker, record, views):
    index, view = record.attrs["index"], views[0]
    if None in index:
        return None
    index = of_all_axes(index, len(view.perm))
    gone = [d for d, k in enumerate(index) if not isinstance(k, tuple)]
    base = sinker.emit(slice_, [view.base], {"index": in_base(view, index)})
    return View(base, without(view.perm, gone))


def through_unslice(sinker, record, views):
    index, view, shape = record.attrs["index"], views[0], record.shape
    if None in index:
        return None
    index = of_all_axes(index, len(shape))
    own = [d for d, k in enumerate(index) if isinstance(k, tuple)]
    gone = [d for d, k in enumerate(index) if not isinstance(k, tuple)]
    axes = (
        *gone,
        *(own[d] for d in inverse(view.perm)),
    )  # those of the result, as the base has them
    attrs = {"shape": tuple(shape[d] for d in axes), "index": tuple(index[d] for d in axes)}
    return View(sinker.emit(unslice, [view.base], attrs), inverse(axes))


def through_pad(sinker, record, views):
    attrs = record.attrs | {"widths": in_base(views[0], record.attrs["widths"])}
    return View(sinker.emit(pad, [views[0].base], attrs), views[0].perm)


def through_concat(sinker, record, views):
    target = sinker.order(record, views)
    inputs = [sinker.transposed(v.base, brought(v, target)) for v in views]
    base = sinker.emit(concat, inputs, {"axis": target[record.attrs["axis"]]})
    return sinker.choice(record, View(base, target))


def through_split(sinker, record, views):
    view, axis = views[0], record.attrs["axis"]
    whole = sinker.emit(split, [view.base], record.attrs | {"axis": view.perm[axis]})
    return whole, [view.perm] * len(record.shape)


def through_unstack(sinker, record, views):
    view, axis = views[0], record.attrs["axis"]
    whole = sinker.emit(unstack, [view.base], {"axis": view.perm[axis]})
    return whole, [without(view.perm, [axis])] * len(record.shape)


def through_assign(sinker, record, views):
    return View(sinker.emit(assign, [views[0].base], {}), views[0].perm)


def through_product(sinker, record, views):
    x, y = views
    attrs = record.attrs | {
        "x_perm": x.transposed(record.attrs["x_perm"]).perm,
        "y_perm": y.transposed(record.attrs["y_perm"]).perm,
    }
    target = sinker.preferences.get(record, tuple(range(len(record.shape))))
    attrs["out_perm"] = tuple(attrs["out_perm"][d] for d in inverse(target))
    return sinker.choice(record, View(sinker.emit(product, [x.base, y.base], attrs), target))


KINDS = {"elementwise": through_elementwise, "reduction": through_reduction}
HANDLERS = {
    transpose: through_transpose,
    reshape: through_reshape,
    broadcast_to: through_broadcast,
    slice_: through_slice,
    unslice: through_unslice,
    pad: through_pad,
    concat: through_concat,
    split: through_split,
    unstack: through_unstack,
    assign: through_assign,
    product: through_product,
}
