"""How transposes move through operators: each operator is applied to the bases of views.

An operator of one input has a function in `ON_BASE` (a reduction has `on_reduction`) of its view,
its attributes and the shape of the result. It returns the attributes with which the operator is
applied to the base, and the permutation of its result (of several results: of each), or None if the
operator needs its input without a view. The others have a function in `HANDLERS` or `KINDS` of the
sinker, the record, and a view for each input (None for a number). It returns the result's view.
"""

from __future__ import annotations

from ..engine.ops.creation import assign
from ..engine.ops.movement import (
    broadcast_to,
    concat,
    inverse,
    reshape,
    slice_,
    split,
    transpose,
    unslice,
    unstack,
)
from ..ops.arrangement import pad
from ..ops.products import product
from .permuted_views import PermutedView, perm_for, plain, reshape_view, without


def through_transpose(sinker, record, views):
    return views[0].transpose(record.attrs["perm"])


def through_elementwise(sinker, record, views):
    ndim = len(record.shape)
    wide = {}
    for k, v in enumerate(views):
        if v is not None and v.perm:
            whole = len(v.perm) == ndim
            wide[k] = v if whole else plain(sinker.with_rank(sinker.transpose(*v), ndim))
    target = sinker.order(record, list(wide.values()))
    inputs = [r if v is None else v.base for r, v in zip(record.inputs, views)]
    for k, v in wide.items():
        inputs[k] = sinker.transpose(v.base, perm_for(v, target))
    view = PermutedView(sinker.emit(record.op, inputs, record.attrs), target)
    if len({v.perm for v in wide.values() if v.base.spec.size == record.spec.size}) > 1:
        sinker.choice(record, view)
    if view.is_identity:
        sinker.note_state_order(view.base)
    return view


def through_base(sinker, record, views):
    """The operator applied to the base of its one input, as `ON_BASE` says."""
    form = ON_BASE.get(record.op, on_reduction)(views[0], record.attrs, record.shape)
    if form is None:
        return None
    attrs, perm = form
    base = sinker.emit(record.op, [views[0].base], record.attrs | attrs)
    return (
        PermutedView(base, perm) if record.dtype is not None else (base, [perm] * len(record.shape))
    )


def in_base(view: PermutedView, entries) -> tuple:
    """Entries for the axes of a view, reordered for the axes of its base."""
    return tuple(entries[d] for d in inverse(view.perm))


def of_all_axes(index: tuple, ndim: int) -> tuple:
    """An index with an entry for every axis."""
    return (*index, *[(None, None, None)] * (ndim - len(index)))


def on_reduction(view, attrs, shape):
    moved = tuple(sorted(view.perm[d] for d in attrs["axis"]))
    return {"axis": moved}, view.perm if attrs["keepdim"] else without(view.perm, attrs["axis"])


def on_reshape(view, attrs, shape):
    form = reshape_view(view, shape)
    return form and ({"shape": form[0]}, form[1])


def on_broadcast(view, attrs, shape):
    return ({"shape": in_base(view, shape)}, view.perm) if len(view.perm) == len(shape) else None


def on_slice(view, attrs, shape):
    if None in attrs["index"]:
        return None
    index = of_all_axes(attrs["index"], len(view.perm))
    gone = [d for d, k in enumerate(index) if not isinstance(k, tuple)]
    return {"index": in_base(view, index)}, without(view.perm, gone)


def on_unslice(view, attrs, shape):
    if None in attrs["index"]:
        return None
    index = of_all_axes(attrs["index"], len(shape))
    own = [d for d, k in enumerate(index) if isinstance(k, tuple)]
    gone = [d for d, k in enumerate(index) if not isinstance(k, tuple)]
    axes = *gone, *(own[d] for d in inverse(view.perm))  # of the result, as the base has them
    moved = {"shape": tuple(shape[d] for d in axes), "index": tuple(index[d] for d in axes)}
    return moved, inverse(axes)


def on_split(view, attrs, shape):
    return {"axis": view.perm[attrs["axis"]]}, view.perm


def on_unstack(view, attrs, shape):
    return {"axis": view.perm[attrs["axis"]]}, without(view.perm, [attrs["axis"]])


ON_BASE = {
    assign: lambda view, attrs, shape: ({}, view.perm),
    broadcast_to: on_broadcast,
    pad: lambda view, attrs, shape: ({"widths": in_base(view, attrs["widths"])}, view.perm),
    reshape: on_reshape,
    slice_: on_slice,
    split: on_split,
    unslice: on_unslice,
    unstack: on_unstack,
}


def through_concat(sinker, record, views):
    target = sinker.order(record, views)
    inputs = [sinker.transpose(v.base, perm_for(v, target)) for v in views]
    base = sinker.emit(concat, inputs, {"axis": target[record.attrs["axis"]]})
    return sinker.choice(record, PermutedView(base, target))


def through_product(sinker, record, views):
    x, y = views
    attrs = record.attrs | {
        "x_perm": x.transpose(record.attrs["x_perm"]).perm,
        "y_perm": y.transpose(record.attrs["y_perm"]).perm,
    }
    target = sinker.preferences.get(record, tuple(range(len(record.shape))))
    attrs["out_perm"] = tuple(attrs["out_perm"][d] for d in inverse(target))
    return sinker.choice(
        record, PermutedView(sinker.emit(product, [x.base, y.base], attrs), target)
    )


KINDS = {"elementwise": through_elementwise, "reduction": through_base}
HANDLERS = {
    **dict.fromkeys(ON_BASE, through_base),
    concat: through_concat,
    product: through_product,
    transpose: through_transpose,
}
