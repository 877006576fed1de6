"""Transposes sink: they are carried along as a way of seeing a value, and most are never done.

A transpose makes a `View` of its input. An operator on views is applied to their bases, and its
result is seen in the same way: so a transpose travels through elementwise operators, reductions,
slices, and reshapes that keep its axes together. A matrix product reads its operands through any
view (`x_perm`, `y_perm`), and two transposes that meet cancel. Only what a result, or an operator
that knows nothing of views, needs in order is transposed. Where that moves what a product made, all
is done again with the product writing in that order (`out_perm`), if then less is moved.

Where inputs are seen differently the operator is applied in the order for which the least has to
move; of two orders alike, that of values that are made of states alone (an optimizer's moments),
else the one in which the transposes stay waiting.
"""

from __future__ import annotations

from ..core.record import Record, Spec
from ..core.slots import slot
from ..ir.program import ITEM, NUMBER, Program, regions
from ..ops.creation import assign, full
from ..ops.linalg import product
from ..ops.movement import (
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
from .rewriting import with_inputs, with_records
from .specialise import open_sizes
from .views import View, blocks, brought, keeps_order, plain, reshaped, without


class Sinker:
    """Writes a program anew, with views for transposes; `wishes` are orders for what products
    write, by their records in the old program.
    """

    def __init__(self, program: Program, wishes: dict[Record, tuple]):
        self.old, self.wishes = program, wishes
        self.wished: dict[Record, tuple] = {}  # in which order they should have been written
        self.made: dict[Record, Record] = {}  # products of the new program -> those of the old
        self.cost = 0  # elements that are moved
        self.records: list[Record] = []
        self.views: dict[Record, View] = {}  # how an old value is seen, if not as it was
        self.moved: dict[tuple, Record] = {}  # transposes that were done: (base, perm) -> result
        self.whole: dict[Record, tuple] = {}  # several results: (their record, a view's perm each)
        self.kept = {s.record for s in program.states}  # made of states alone

    def run(self) -> Program:
        for record in self.old.records:
            self.source = record
            if record.op is ITEM:
                self.item(record)
            else:
                self.write(record)
        results = {}
        for r in self.old.results:
            self.source = r
            results[r] = self.straight(self.view(r)) if r.op is not NUMBER else r
        return with_records(
            self.old, self.records, {r: x for r, x in results.items() if r is not x}
        )

    # ---- reading -----------------------------------------------------------------------------

    def view(self, record: Record) -> View:
        return self.views.get(record) or plain(record)

    def straight(self, view: View) -> Record:
        """What is seen, as a value in order."""
        return self.turned(view.base, view.perm)

    def turned(self, base: Record, perm: tuple) -> Record:
        """The transpose of a value: done once, or not at all where a cheap value can be made so."""
        if perm == tuple(range(len(perm))):
            return base
        found = self.moved.get((base, perm))
        if found is None:
            found = self.moved[base, perm] = self.turn(base, perm)
        return found

    def turn(self, base: Record, perm: tuple) -> Record:
        shape = tuple(base.shape[d] for d in perm)
        if keeps_order(perm, base.shape):
            return self.emit(reshape, [base], {"shape": shape})
        if base.op is full:
            return self.emit(full, [], base.attrs | {"shape": shape})
        if cheap(base) and base.op is broadcast_to:
            small = self.turned(self.widened(base.inputs[0], len(perm)), perm)
            return self.emit(broadcast_to, [small], {"shape": shape})
        if cheap(base):
            inputs = [self.turned_input(r, perm) for r in base.inputs]
            return self.emit(base.op, inputs, base.attrs)
        self.cost += base.spec.size
        self.wish(base, perm)
        return self.emit(transpose, [base], {"perm": perm})

    def wish(self, base: Record, perm: tuple | None) -> None:
        """Note that a product's value, or what was made of it by moving nothing, is transposed."""
        while perm is not None and base.op is not product:
            perm = before_reshape(base, perm) if base.op is reshape else perm
            large = [r for r in base.inputs if r.op is not NUMBER and r.spec.size == base.spec.size]
            if not large or base.op.kind not in ("elementwise", "movement") or base.op is transpose:
                return
            base = next((r for r in large if leads_to_product(r)), large[0])
        if perm is not None and base in self.made:
            self.wished.setdefault(self.made[base], perm)

    def turned_input(self, record: Record, perm: tuple) -> Record:
        if record.op is NUMBER or not record.shape:
            return record
        return self.turned(self.widened(record, len(perm)), perm)

    def widened(self, record: Record, ndim: int) -> Record:
        """A value with the leading axes of size 1 that broadcasting gives it."""
        extra = ndim - len(record.shape)
        if not extra:
            return record
        return self.emit(reshape, [record], {"shape": (1,) * extra + record.shape})

    # ---- writing -----------------------------------------------------------------------------

    def emit(self, op, inputs, attrs) -> Record:
        """A new record in the place of the one that is being written."""
        spec = op.result_spec(
            [r.attrs["value"] if r.op is NUMBER else r.spec for r in inputs], attrs
        )
        several = not isinstance(spec, Spec)
        shape, dtype = (spec, None) if several else spec
        source = self.source
        flow = (1 << len(inputs)) - 1 if source.saved else 0
        record = Record(op, inputs, attrs, shape, dtype, flow, source.scope)
        record.where = source.where
        self.records.append(record)
        return record

    def write(self, record: Record) -> None:
        """What stands for an old record: a view of something, or the record in order."""
        views = [None if r.op is NUMBER else self.view(r) for r in record.inputs]
        handler = HANDLERS.get(record.op) or KINDS.get(record.op.kind)
        waiting = any(v is not None and not v.straight for v in views)
        if handler and (waiting or record.op in (transpose, product)):
            found = handler(self, record, views)
            if found is not None:
                if isinstance(found, View):
                    self.see(record, found)
                else:
                    self.whole[record] = found
                return
        inputs = [r if v is None else self.straight(v) for r, v in zip(record.inputs, views)]
        inside = {k: sinking(v) for k, v in regions(record).items()}
        new = with_inputs(record, inputs, inside)
        self.records.append(new)
        if record.dtype is None:
            self.whole[record] = new, [None] * len(record.shape)
        else:
            self.see(record, plain(new))
            if record.op.kind == "elementwise" and record.inputs and all(map(self.keeps, inputs)):
                self.kept.add(new)

    def see(self, record: Record, view: View) -> None:
        """From now on an old value is seen so. Where only axes of size 1 move it is a reshape."""
        if not view.straight and keeps_order(view.perm, view.base.shape):
            view = plain(self.straight(view))
        if view.base is not record:
            self.views[record] = view

    def keeps(self, record: Record) -> bool:
        """Is a value made of states alone, or small?"""
        return record in self.kept or record.op is NUMBER or record.spec.size == 1

    def item(self, record: Record) -> None:
        whole, perms = self.whole[record.inputs[0]]
        k = record.attrs["k"]
        perm = perms[k]
        if whole is record.inputs[0]:
            new = record
            self.records.append(new)
        else:
            new = self.emit_item(whole, k)
        self.see(record, plain(new) if perm is None else View(new, perm))

    def emit_item(self, whole: Record, k: int) -> Record:
        new = Record(ITEM, [whole], {"k": k}, *whole.shape[k], 1, self.source.scope)
        new.where = self.source.where
        self.records.append(new)
        return new

    # ---- the cheapest order for several inputs -------------------------------------------------

    def order(self, views: list[View]) -> tuple:
        """The order in which an operator is applied to values of one rank, seen differently."""

        def cost(target):
            return sum(self.price(v, brought(v, target)) for v in views)

        straight = tuple(range(len(views[0].perm)))
        waiting = sorted((v for v in views if not v.straight), key=lambda v: -v.base.spec.size)
        orders = dict.fromkeys(v.perm for v in waiting)
        if any(v.base in self.kept for v in views):
            return min([straight, *orders], key=cost)
        return min([*orders, straight], key=cost)

    def price(self, view: View, perm: tuple) -> int:
        """How many elements a transpose of the base would move."""
        base = view.base
        still = perm == tuple(range(len(perm))) or keeps_order(perm, base.shape)
        return 0 if still or cheap(base) or (base, perm) in self.moved else base.spec.size


def cheap(record: Record, depth: int = 4) -> bool:
    """Can a value be made in another order without moving it: is it a few values, repeated?"""
    if record.op is full or record.spec.size <= 1:
        return True
    if record.op is broadcast_to:
        return record.inputs[0].spec.size * 8 <= record.spec.size
    if record.op.kind == "elementwise" and depth and record.inputs:
        return all(r.op is NUMBER or cheap(r, depth - 1) for r in record.inputs)
    return False


# ---- operators on views: each gives a view, or None if it takes its inputs in order ------------


def through_transpose(sinker, record, views):
    return views[0].turned(record.attrs["perm"])


def through_elementwise(sinker, record, views):
    ndim = len(record.shape)
    places = [k for k, v in enumerate(views) if v is not None and v.perm]
    wide = {}
    for k in places:
        v, extra = views[k], ndim - len(views[k].perm)
        base = sinker.widened(sinker.straight(v), ndim) if extra else v.base
        wide[k] = plain(base) if extra else v
    target = sinker.order(list(wide.values()))
    inputs = list(record.inputs)
    for k, v in enumerate(views):
        if k in wide:
            inputs[k] = sinker.turned(wide[k].base, brought(wide[k], target))
        elif v is not None:
            inputs[k] = v.base
    return View(sinker.emit(record.op, inputs, record.attrs), target)


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
    """What is said of each axis that is seen, said of the axes of the base."""
    return tuple(entries[d] for d in inverse(view.perm))


WHOLE = (None, None, None)


def through_slice(sinker, record, views):
    index, view = record.attrs["index"], views[0]
    if None in index:
        return None
    index = (*index, *[WHOLE] * (len(view.perm) - len(index)))
    gone = [d for d, k in enumerate(index) if not isinstance(k, tuple)]
    base = sinker.emit(slice_, [view.base], {"index": in_base(view, index)})
    return View(base, without(view.perm, gone))


def through_unslice(sinker, record, views):
    index, view, shape = record.attrs["index"], views[0], record.shape
    if None in index:
        return None
    index = (*index, *[WHOLE] * (len(shape) - len(index)))
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
    target = sinker.order(views)
    inputs = [sinker.turned(v.base, brought(v, target)) for v in views]
    base = sinker.emit(concat, inputs, {"axis": target[record.attrs["axis"]]})
    return View(base, target)


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
        "x_perm": x.turned(record.attrs["x_perm"]).perm,
        "y_perm": y.turned(record.attrs["y_perm"]).perm,
    }
    wish = sinker.wishes.get(record)
    if wish is not None:
        attrs["out_perm"] = tuple(attrs["out_perm"][d] for d in wish)
    base = sinker.emit(product, [x.base, y.base], attrs)
    sinker.made[base] = record
    return plain(base) if wish is None else View(base, inverse(wish))


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


# ---- in which order products write ---------------------------------------------------------------


def leads_to_product(record: Record) -> bool:
    """Was a value made by a product, but for scaling and the like?"""
    while record.op.kind == "elementwise" or record.op is reshape:
        large = [r for r in record.inputs if r.op is not NUMBER and r.spec.size == record.spec.size]
        if len(large) != 1:
            return False
        record = large[0]
    return record.op is product


def before_reshape(record: Record, perm: tuple) -> tuple | None:
    """The transpose of a reshape's input that becomes the transpose `perm` of its result; None
    where there is none.
    """
    source = record.inputs[0].shape
    long = [d for d, n in enumerate(source) if n != 1]
    own = [d for d, n in enumerate(record.shape) if n != 1]
    groups = blocks([record.shape[d] for d in own], [source[d] for d in long])
    if groups is None or any(len(left) > 1 for left, _ in groups):
        return None
    parts = {own[left[0]]: [long[d] for d in right] for left, right in groups}
    ones = [d for d, n in enumerate(source) if n == 1]
    return (*ones, *(d for axis in perm for d in parts.get(axis, ())))


@slot("passes.sinking")
def sinking(program: Program) -> Program:
    """The program with as few transposes as the order of its results allows."""
    if open_sizes(program):
        return program
    first = Sinker(program, {})
    found = first.run()
    if first.wished:
        second = Sinker(program, first.wished)
        again = second.run()
        return again if second.cost < first.cost else found
    return found
