"""Transposes sink: they are carried along as a way of seeing a value, and most are never done.

A transpose makes a `View` of its input. An operator on views is applied to their bases, and its
result is seen in the same way: so a transpose travels through elementwise operators, reductions,
slices, and reshapes that keep its axes together. A matrix product reads its operands through any
view (`x_perm`, `y_perm`), and two transposes that meet cancel. Only what a result, or an operator
that knows nothing of views, needs in order is transposed.

Where inputs are seen differently the operator is applied in the order for which the least has to
move; of two orders alike, that of states (an optimizer's moments) and of what was made of them,
else the one in which the transposes stay waiting. What had to be transposed in the end says in
which order such an operator, or a product, would better have written (`out_perm`): all is done
again with these wishes, for as long as less is moved.
"""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.ir.edit import map_regions, with_inputs, with_records
from ..engine.ir.program import ITEM, NUMBER, Program, regions
from ..engine.ops.creation import full
from ..engine.ops.linalg import product
from ..engine.ops.movement import broadcast_to, inverse, reshape, slice_, transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.specialise import open_sizes
from .through import HANDLERS, KINDS, of_all_axes
from .views import View, before_reshape, brought, keeps_order, plain


class Sinker:
    """Writes a program anew, with views for transposes. `wishes` say for records that have a choice
    in which order their result is to be seen.
    """

    def __init__(self, program: Program, wishes: dict[Record, tuple]):
        self.old, self.wishes = program, wishes
        self.wished: dict[Record, tuple] = {}  # how it would have been better
        self.chosen: dict[Record, tuple] = {}  # new records that had a choice: (old one, its order)
        self.cost = 0  # elements that are moved
        self.records: list[Record] = []
        self.views: dict[Record, View] = {}  # how an old value is seen, if not as it was
        self.moved: dict[tuple, Record] = {}  # transposes that were done: (base, perm) -> result
        self.whole: dict[Record, tuple] = {}  # several results: (their record, a view's perm each)
        self.kept = {s.record for s in program.states}  # in the order of states

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
        if cheap(base) and base.op is slice_:
            index = of_all_axes(base.attrs["index"], len(perm))
            whole = self.turned(base.inputs[0], perm)
            return self.emit(slice_, [whole], {"index": tuple(index[d] for d in perm)})
        if cheap(base):
            inputs = [self.turned_input(r, perm) for r in base.inputs]
            return self.emit(base.op, inputs, base.attrs)
        self.cost += base.spec.size
        self.wish(base, perm)
        return self.emit(transpose, [base], {"perm": perm})

    def wish(self, base: Record, perm: tuple | None) -> None:
        """Note that what came of a choice, by moving nothing, is transposed."""
        while perm is not None and base not in self.chosen:
            large = of_same_size(base)
            if not large or base.op.kind not in ("elementwise", "movement") or base.op is transpose:
                return
            perm = before_reshape(base, perm) if base.op is reshape else perm
            base = next((r for r in large if self.leads_to_choice(r)), large[0])
            if perm is not None and len(perm) != len(base.shape):  # a slice has taken an axis away
                return
        if perm is not None:
            record, order = self.chosen[base]
            back = inverse(perm)
            self.wished.setdefault(record, tuple(back[d] for d in order))

    def leads_to_choice(self, record: Record) -> bool:
        """Was a value made by a choice, but for scaling and the like?"""
        while record not in self.chosen:
            large = of_same_size(record)
            if len(large) != 1 or not (record.op.kind == "elementwise" or record.op is reshape):
                return False
            record = large[0]
        return True

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
        flow = (1 << len(inputs)) - 1 if self.source.saved else 0
        self.records.append(self.source.derive(op, inputs, attrs, spec, flow))
        return self.records[-1]

    def write(self, record: Record) -> None:
        """What stands for an old record: a view of something, or the record in order."""
        if record.op not in (transpose, product) and self.untouched(record):
            self.stand(record, record)
            return
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
        self.stand(record, with_inputs(record, inputs, map_regions(record, sinking)))

    def untouched(self, record: Record) -> bool:
        """Does a record find everything as it was?"""
        return self.views.keys().isdisjoint(record.inputs) and not regions(record)

    def stand(self, record: Record, new: Record) -> None:
        """Write a record in the place of an old one, with its inputs in order."""
        self.records.append(new)
        if record.dtype is None:
            self.whole[record] = new, [None] * len(record.shape)
        else:
            self.see(record, plain(new))
            self.keep(new)

    def see(self, record: Record, view: View) -> None:
        """From now on an old value is seen so. Where only axes of size 1 move it is a reshape."""
        if not view.straight and keeps_order(view.perm, view.base.shape):
            view = plain(self.straight(view))
        if view.base is not record:
            self.views[record] = view

    def keep(self, record: Record) -> None:
        """Note a value that has the order of a state it was made of."""
        if record.op.kind == "elementwise" and not self.kept.isdisjoint(of_same_size(record)):
            self.kept.add(record)

    def item(self, record: Record) -> None:
        whole, perms = self.whole[record.inputs[0]]
        k = record.attrs["k"]
        perm = perms[k]
        if whole is record.inputs[0]:
            new = record
            self.records.append(new)
        else:
            new = self.source.derive(ITEM, [whole], {"k": k}, whole.shape[k], 1)
            self.records.append(new)
        self.see(record, plain(new) if perm is None else View(new, perm))

    # ---- the cheapest order for several inputs -------------------------------------------------

    def order(self, record: Record, views: list[View]) -> tuple:
        """The order in which an operator is applied to values of one rank, seen differently."""
        if record in self.wishes:
            return self.wishes[record]

        def cost(target):
            return sum(self.price(v, brought(v, target)) for v in views)

        straight = tuple(range(len(views[0].perm)))
        waiting = sorted((v for v in views if not v.straight), key=lambda v: -v.base.spec.size)
        orders = dict.fromkeys(v.perm for v in waiting)
        if any(v.base in self.kept for v in views):
            return min([straight, *orders], key=cost)
        return min([*orders, straight], key=cost)

    def choice(self, record: Record, view: View) -> View:
        """What was made of a record that might have been made in another order."""
        self.chosen[view.base] = record, view.perm
        return view

    def price(self, view: View, perm: tuple) -> int:
        """How many elements a transpose of the base would move."""
        base = view.base
        still = perm == tuple(range(len(perm))) or keeps_order(perm, base.shape)
        return 0 if still or cheap(base) or (base, perm) in self.moved else base.spec.size


def of_same_size(record: Record) -> list[Record]:
    """The inputs that are as large as the result."""
    values = [r for r in record.inputs if r.op is not NUMBER and r.dtype is not None]
    return [r for r in values if r.spec.size == record.spec.size]


def cheap(record: Record, depth: int = 4) -> bool:
    """Can a value be made in another order without moving it: is it a few values, repeated?"""
    if record.op is full or record.spec.size <= 1:
        return True
    if record.op is broadcast_to:
        return record.inputs[0].spec.size * 8 <= record.spec.size
    if record.op is slice_:
        whole = all(isinstance(k, tuple) for k in record.attrs["index"])
        return whole and depth > 0 and cheap(record.inputs[0], depth - 1)
    if record.op.kind == "elementwise" and depth and record.inputs:
        return all(r.op is NUMBER or cheap(r, depth - 1) for r in record.inputs)
    return False


@program_pass("sinking")
def sinking(program: Program) -> Program:
    """The program with as few transposes as the order of its results allows."""
    if open_sizes(program):
        return program
    wishes, tried = {}, []
    for _ in range(ROUNDS):
        sinker = Sinker(program, wishes)
        tried.append((sinker.run(), sinker.cost))
        if not sinker.cost or sinker.wished.items() <= wishes.items():
            break
        wishes = wishes | sinker.wished
    return min(tried, key=lambda each: each[1])[0]


ROUNDS = 3
