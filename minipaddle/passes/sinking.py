"""Transposes sink towards the results of a program, and most of them disappear.

A transpose makes a `PermutedView` of its input. An operator on views is applied to their bases, and
its result is a view with the same permutation. So a transpose moves through elementwise operators,
reductions, slices, and reshapes that keep its axes together. A matrix product reads its operands
through any view (`x_perm`, `y_perm`), and two transposes that meet cancel. A value is transposed
only for a result of the program, or for an operator that has no rule for views.

Where the inputs of an operator have different permutations, it is applied in the order in which the
fewest elements move. Of two equal orders it takes that of states (such as an optimizer's moments)
and of values computed from them, otherwise the one that keeps the transposes as views. A value that
had to be transposed at the end tells in which order an operator, or a product (`out_perm`), had
better computed it: the pass runs again with these preferences, as long as fewer elements move.
"""

from __future__ import annotations

from math import prod

from ..engine.core.record import Record
from ..engine.ir.edit import map_regions, with_inputs, with_records
from ..engine.ir.program import ITEM, NUMBER, Program, open_sizes, regions
from ..engine.ops.creation import full
from ..engine.ops.movement import broadcast_to, inverse, reshape, slice_, transpose
from ..engine.passes.registry import program_pass
from ..ops.products import product
from .permuted_views import PermutedView, before_reshape, keeps_order, perm_for, plain
from .transpose_rules import HANDLERS, KINDS, of_all_axes


class Sinker:
    """Builds the new program, with views for transposes. `preferences` name an order of axes for
    the results of records that have a choice.
    """

    def __init__(self, program: Program, preferences: dict[Record, tuple]):
        self.old, self.preferences = program, preferences
        self.preferred: dict[Record, tuple] = {}  # orders that would have been better
        self.chosen: dict[Record, tuple] = {}  # new record -> (old record, order chosen for it)
        self.cost = 0  # elements that transposes move
        self.records: list[Record] = []
        self.views: dict[Record, PermutedView] = {}  # the view for an old value, if it changed
        self.transposes: dict[tuple, Record] = {}  # (base, perm) -> the transpose that was built
        self.whole: dict[Record, tuple] = {}  # a record of several results: (new one, permutations)
        self.like_states = {s.record for s in program.states}  # values with a state's order of axes

    def run(self) -> Program:
        for record in self.old.records:
            self.source = record
            if record.op is ITEM:
                self.item(record)
            else:
                self.rewrite(record)
        results = {}
        for r in self.old.results:
            if r in self.views:
                self.source = r
                results[r] = self.transpose(*self.views[r])
        return with_records(self.old, self.records, results)

    # ---- reading -----------------------------------------------------------------------------

    def view(self, record: Record) -> PermutedView:
        return self.views.get(record) or plain(record)

    def transpose(self, base: Record, perm: tuple) -> Record:
        """The value of a view: the transpose of its base, built once."""
        if perm == tuple(range(len(perm))):
            return base
        transposed = self.transposes.get((base, perm))
        if transposed is None:
            transposed = self.transposes[base, perm] = self.build_transpose(base, perm)
        return transposed

    def build_transpose(self, base: Record, perm: tuple) -> Record:
        shape = tuple(base.shape[d] for d in perm)
        if keeps_order(perm, base.shape):
            return self.emit(reshape, [base], {"shape": shape})
        if base.op is full:
            return self.emit(full, [], base.attrs | {"shape": shape})
        if cheap(base) and base.op is broadcast_to:
            small = self.transpose(self.with_rank(base.inputs[0], len(perm)), perm)
            return self.emit(broadcast_to, [small], {"shape": shape})
        if cheap(base) and base.op is slice_:
            index = of_all_axes(base.attrs["index"], len(perm))
            whole = self.transpose(base.inputs[0], perm)
            return self.emit(slice_, [whole], {"index": tuple(index[d] for d in perm)})
        if cheap(base):
            inputs = [
                self.transpose(self.with_rank(r, len(perm)), perm) if r.shape else r
                for r in base.inputs
            ]
            return self.emit(base.op, inputs, base.attrs)
        self.cost += base.spec.size
        self.prefer(base, perm)
        return self.emit(transpose, [base], {"perm": perm})

    def prefer(self, base: Record, perm: tuple | None) -> None:
        """Note that a value was transposed whose order was chosen by an operator before it."""
        while perm is not None and base not in self.chosen:
            large = of_same_size(base)
            if not large or base.op.kind not in ("elementwise", "movement") or base.op is transpose:
                return
            perm = before_reshape(base, perm) if base.op is reshape else perm
            base = next((r for r in large if self.leads_to_choice(r)), large[0])
            if perm is not None and len(perm) != len(base.shape):  # a slice has removed an axis
                return
        if perm is not None:
            record, order = self.chosen[base]
            back = inverse(perm)
            self.preferred.setdefault(record, tuple(back[d] for d in order))

    def leads_to_choice(self, record: Record) -> bool:
        """Whether an operator with a choice computed a value, scaling and the like aside."""
        while record not in self.chosen:
            large = of_same_size(record)
            if len(large) != 1 or not (record.op.kind == "elementwise" or record.op is reshape):
                return False
            record = large[0]
        return True

    def with_rank(self, record: Record, ndim: int) -> Record:
        """A value with leading axes of size 1, as broadcasting adds them."""
        extra = ndim - len(record.shape)
        if not extra:
            return record
        return self.emit(reshape, [record], {"shape": (1,) * extra + record.shape})

    # ---- writing -----------------------------------------------------------------------------

    def emit(self, op, inputs, attrs) -> Record:
        """Add a new record that computes a part of the current old one."""
        spec = op.result_spec(
            [r.attrs["value"] if r.op is NUMBER else r.spec for r in inputs], attrs
        )
        flow = (1 << len(inputs)) - 1 if self.source.saved else 0
        self.records.append(self.source.derive(op, inputs, attrs, spec, flow))
        return self.records[-1]

    def rewrite(self, record: Record) -> None:
        """Add the new record for an old one, whose result may be a view."""
        if record.op not in (transpose, product) and self.is_untouched(record):
            self.replace(record, record)
            return
        views = [None if r.op is NUMBER else self.view(r) for r in record.inputs]
        handler = HANDLERS.get(record.op) or KINDS.get(record.op.kind)
        waiting = False in [v is None or v.is_identity for v in views]
        if handler and (waiting or record.op in (transpose, product)):
            result = handler(self, record, views)
            if result is not None:
                if isinstance(result, PermutedView):
                    self.set_view(record, result)
                else:
                    self.whole[record] = result
                return
        inputs = [r if v is None else self.transpose(*v) for r, v in zip(record.inputs, views)]
        self.replace(record, with_inputs(record, inputs, map_regions(record, sinking)))

    def is_untouched(self, record: Record) -> bool:
        """Whether no input of a record changed."""
        return self.views.keys().isdisjoint(record.inputs) and not regions(record)

    def replace(self, record: Record, new: Record) -> None:
        """Add a record that replaces an old one, and reads its inputs without views."""
        self.records.append(new)
        if record.dtype is None:
            self.whole[record] = new, [None] * len(record.shape)
        else:
            self.set_view(record, plain(new))
            self.note_state_order(new)

    def set_view(self, record: Record, view: PermutedView) -> None:
        """Set the view for an old value. If only axes of size 1 move, it becomes a reshape."""
        if not view.is_identity and keeps_order(view.perm, view.base.shape):
            view = plain(self.transpose(*view))
        if view.base is not record:
            self.views[record] = view

    def note_state_order(self, record: Record) -> None:
        """Note a value that has the order of the state from which it is computed."""
        like_state = not self.like_states.isdisjoint(of_same_size(record))
        if record.op.kind == "elementwise" and like_state:
            self.like_states.add(record)

    def item(self, record: Record) -> None:
        whole, perms = self.whole[record.inputs[0]]
        new, k = record, record.attrs["k"]
        if whole is not record.inputs[0]:
            new = record.derive(ITEM, [whole], {"k": k}, whole.shape[k], 1)
        self.records.append(new)
        self.set_view(record, plain(new) if perms[k] is None else PermutedView(new, perms[k]))

    # ---- the cheapest order for several inputs -------------------------------------------------

    def order(self, record: Record, views: list[PermutedView]) -> tuple:
        """The order of axes in which an operator is applied to views of equal rank."""
        if record in self.preferences:
            return self.preferences[record]

        def cost(target):
            return sum(self.price(v, perm_for(v, target)) for v in views)

        straight = tuple(range(len(views[0].perm)))
        waiting = sorted((v for v in views if not v.is_identity), key=lambda v: -v.base.spec.size)
        orders = dict.fromkeys(v.perm for v in waiting)
        if any(v.base in self.like_states for v in views):
            return min([straight, *orders], key=cost)
        return min([*orders, straight], key=cost)

    def choice(self, record: Record, view: PermutedView) -> PermutedView:
        """The view for a record, noting that another order could have been chosen."""
        self.chosen[view.base] = record, view.perm
        return view

    def price(self, view: PermutedView, perm: tuple) -> int:
        """The number of elements that a transpose of the base would move."""
        base = view.base
        still = perm == tuple(range(len(perm))) or keeps_order(perm, base.shape)
        return 0 if still or cheap(base) or (base, perm) in self.transposes else base.spec.size


def of_same_size(record: Record) -> list[Record]:
    """The inputs that have as many elements as the result."""
    values = [r for r in record.inputs if r.op is not NUMBER and r.dtype is not None]
    return [r for r in values if prod(r.shape) == prod(record.shape)]


def cheap(record: Record, depth: int = 4) -> bool:
    """Whether a value is a few numbers, repeated, and can be built in another order."""
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


@program_pass("sinking", looks_for=[transpose, product])
def sinking(program: Program) -> Program:
    """The program with as few transposes as possible."""
    if open_sizes(program):
        return program
    preferences, tried = {}, []
    for _ in range(ROUNDS):
        sinker = Sinker(program, preferences)
        tried.append((sinker.run(), sinker.cost))
        if not sinker.cost or sinker.preferred.items() <= preferences.items():
            break
        preferences = preferences | sinker.preferred
    return min(tried, key=lambda each: each[1])[0]


ROUNDS = 3
