"""A group of records as one loop nest.

A nest has a loop for each axis of its largest value: *parallel* loops, and the *reduction* loops
of its reductions. Every value is a formula of the loop variables: an elementwise operator has the
index of its result, a movement reads its input at another index, an input is a load from memory.
So movements cost nothing. If a value would be needed at two indices, or in more iterations than it
has elements, the nest would compute it several times: then it raises `NotOneNest`.

A value that depends on parallel loops alone belongs to a *row*; it is computed once for each row.
The *stage* of a value says how many reductions of the row must be finished before it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, repeat
from math import prod
from operator import attrgetter, itemgetter

from ..core.op import Op
from ..core.polynomial import ZERO, Polynomial, as_polynomial, loop, ravel, rename, unravel
from ..core.record import Record
from ..core.slots import slot
from ..core.symbols import Composite, Loop
from ..ir.program import ITEM, NUMBER

DEPTH, LOOPS, SHAPE, STAGE = map(attrgetter, ("depth", "loops", "shape", "stage"))


class NotOneNest(Exception):
    """A group of records is no loop nest; the message says why."""


class NestNode:
    """A value at an index of the loops. `kind`: load, number, place, apply, reduce, select."""

    __slots__ = ("args", "depth", "dtype", "guard", "index", "kind", "loops", "of", "stage")

    def __init__(self, kind, of, args=(), index=None, dtype=None, guard=()):
        self.kind, self.of, self.args, self.index, self.dtype = kind, of, args, index, dtype
        self.guard = guard  # conditions (index, low, high) under which the load is allowed
        loops = [*map(LOOPS, args), *map(LOOPS, map(itemgetter(0), guard))]
        self.loops = frozenset().union(*loops, index.loops if index is not None else ())
        self.stage = stage_of(kind, args)
        self.depth = 1 + max(map(DEPTH, args), default=0)  # one inside the other


@slot("nest.stage_of")
def stage_of(kind: str, args) -> int:
    """The number of reductions of the row that must be finished before a value is known."""
    return max(map(STAGE, args), default=0) + (kind == "reduce")


def reach(roots, within: Callable[[NestNode], bool] | None = None) -> dict[NestNode, None]:
    """The roots and all values they are computed from, each once. The search does not go beyond
    a value that is not `within`.
    """
    reached, todo = {}, list(roots)
    while todo:
        node = todo.pop()
        if node not in reached:
            reached[node] = None
            todo += node.args if within is None or within(node) else ()
    return reached


def refine(shapes) -> tuple | None:
    """The least axes of which the axes of all these shapes are products; None if there are none.

    >>> refine([(6, 4), (3, 8)])
    (3, 2, 4)
    """
    sizes = [n for shape in shapes for n in shape]
    if not (all(map(isinstance, sizes, repeat(int))) and all(sizes)):
        return None
    ends = {prod(shape[d:]) for shape in shapes for d in range(len(shape))} | {1}
    pairs = [*pairwise(sorted(ends))]
    if any(f"{b // a * a}" != f"{b}" for a, b in pairs):  # where C has a formula, too
        return None
    return tuple([b // a for a, b in reversed(pairs)])


class Nest:
    """The loop nest of `records`; `outputs` are the records that others need."""

    def __init__(self, records, outputs):
        self.records = set(records)
        self.inputs: dict[Record, int] = {}
        self.values: list[NestNode] = []
        self.memo: dict[Record, list] = {}  # its values, each as (index, guard, value)
        self.index_of: dict[Record, tuple] = {}  # the one index at which a value is computed
        self.reduction_indices: dict[Record, tuple] = {}
        self.positions: list[tuple] = []  # in memory, each as (shape, index, position)
        self.reductions = [r for r in records if r.op.kind == "reduction"]
        self.choose_loops(records, outputs)
        self.outputs = [self.output(r) for r in outputs]

    # ---- the loops ---------------------------------------------------------------------------

    def choose_loops(self, records, outputs) -> None:
        """Set the loops: one for each axis of what is reduced, or of the largest output. Of several
        shapes of that size the one with most axes is taken, or one of which all are reshapes.
        """
        whole = [r.inputs[0] for r in self.reductions] or outputs
        if not whole:
            raise NotOneNest("no result is needed")
        self.size = max(map(prod, map(SHAPE, whole)))
        shapes = [s for s in map(SHAPE, [*whole, *outputs]) if prod(s) == self.size]
        inside = [s for s in map(SHAPE, records) if prod(s) == self.size]
        self.shape = refine([*shapes, *inside]) or max(shapes, key=len)
        names = "ijklmnpqrs"
        if len(self.shape) > len(names):
            raise NotOneNest("too many axes")
        if 0 in self.shape:
            raise NotOneNest("nothing to compute")
        self.axes = [loop(names[d], n) for d, n in enumerate(self.shape)]
        self.reduces = bool(self.reductions)
        reduced = self.loops_reduced_by(self.reductions[0]) if self.reduces else frozenset()
        loops = self.loops
        self.parallel_loops = [a for a in loops if a not in reduced]
        self.reduction_loops = [a for a in loops if a in reduced]
        self.rows = prod([a.extent for a in self.parallel_loops])
        for record in self.reductions:
            self.reduction_indices[record] = self.indices_of_reduction(record)

    def index_into(self, x: Record) -> list[Polynomial]:
        """The index into the input of a reduction, whose elements the loops go through."""
        if x.spec.size != self.size:
            raise NotOneNest("reductions over different loops")
        return self.reshape_index(self.axes, self.shape, x.shape)

    def loops_reduced_by(self, record: Record) -> frozenset:
        """The loops over which a reduction runs."""
        i = self.index_into(record.inputs[0])
        return frozenset().union(*[i[d].loops for d in record.attrs["axis"]])

    def indices_of_reduction(self, record: Record) -> tuple:
        """The index into the input of a reduction, and the index of its result."""
        x, axes, parallel = record.inputs[0], record.attrs["axis"], set(self.parallel_loops)
        i = self.index_into(x)
        for d, at in enumerate(i):
            rows = at.loops <= parallel
            if at.loops and (rows if d in axes else not rows):
                raise NotOneNest("reductions over different axes")
        if prod(n for d, n in enumerate(x.shape) if d in axes) * self.rows != self.size:
            raise NotOneNest("reductions over different axes")
        keep = record.attrs["keepdim"]
        out = [ZERO if d in axes else at for d, at in enumerate(i) if keep or d not in axes]
        return tuple(i), tuple(out)

    @staticmethod
    def reshape_index(i, old, new) -> list[Polynomial]:
        same = tuple(old) == tuple(new)
        return list(i) if same else list(map(as_polynomial, unravel(ravel(i, old), new)))

    def output(self, record: Record) -> tuple[Record, NestNode, Polynomial]:
        """(record, its value, the index in memory at which it is stored)."""
        size = prod(record.shape)
        one_per_row = size != self.size or record in self.reduction_indices
        if self.reduces and size == self.rows and one_per_row:
            shape = tuple(a.extent for a in self.parallel_loops)
            i = [as_polynomial(a) for a in self.parallel_loops]
        elif size == self.size:
            shape, i = self.shape, self.axes
        else:
            raise NotOneNest("results of different sizes")
        at = self.reshape_index(i, shape, record.shape) if i else [ZERO] * len(record.shape)
        if shape != record.shape and Composite in [type(a) for k in at for a in k.atoms]:
            raise NotOneNest("results of different shapes")
        return record, self.at(record, at), self.position(tuple(i), shape)

    def position(self, i: tuple, shape) -> Polynomial:
        """The position in memory of an index into an array of this shape."""
        for known, at, flat in self.positions:
            if known == shape and at == i:
                return flat
        flat = as_polynomial(ravel(i, shape)) if i else ZERO
        self.positions.append((shape, i, flat))
        return flat

    @property
    def loops(self) -> list[Loop]:
        """All loops, the outermost first."""
        return [a for i in self.axes for (a,) in i.terms]

    def merged(self) -> Nest:
        """The nest, in which two loops are one if every index needs only their joint counter."""
        inner: list[Loop] = []
        for a in reversed(self.loops):
            if inner and self.joinable(a, inner[-1]):
                b = inner.pop()
                grown = Loop(b.name, a.extent * b.extent)
                self.substitute({a: 0, b: grown})
                inner.append(grown)
            else:
                inner.append(a)
        self.axes = [as_polynomial(a) for a in inner[::-1]]
        return self

    def joinable(self, a: Loop, b: Loop) -> bool:
        if (a in self.parallel_loops) != (b in self.parallel_loops):
            return False
        for i in self.indices():
            kept = [t for t in i.atoms if type(t) is Composite and t.loops & {a, b}]
            if kept or i.terms.get((a,), 0) != i.terms.get((b,), 0) * b.extent:
                return False
        return True

    def indices(self) -> list[Polynomial]:
        """Every index that is used."""
        nodes = self.nodes()
        used = [n.index for n in nodes if n.index is not None]
        return [*map(itemgetter(2), self.outputs), *used, *[i for n in nodes for i, *_ in n.guard]]

    def nodes(self) -> dict[NestNode, None]:
        """Every value, also those that only other values contain: the parts of a concatenation."""
        return reach([*self.values, *[node for _, node, _ in self.outputs]])

    def substitute(self, new: dict) -> None:
        """Replace loops by other loops, or by 0, in every index."""

        def loops_(loops) -> list:
            return [new.get(a, a) for a in loops if new.get(a, a) != 0]

        self.parallel_loops = loops_(self.parallel_loops)
        self.reduction_loops = loops_(self.reduction_loops)
        self.outputs = [(record, node, rename(flat, new)) for record, node, flat in self.outputs]
        for node in self.nodes():
            node.loops = frozenset(loops_(node.loops))
            node.index = None if node.index is None else rename(node.index, new)
            node.guard = tuple((rename(i, new), low, high) for i, low, high in node.guard)

    @slot("nest.in_place")
    def in_place(self) -> list[tuple[int, Record]]:
        """(output k, input): the output may be written over the input, if nothing else needs it.

        Every element of the input is read at the index at which the output is written, and not
        after that: results of a row are written before the loop of their stage, others in it.
        """
        reads: dict[Record, list] = {}
        for stage, row, node in self.reading():
            reads.setdefault(self.loaded_input(node), []).append((stage, row, node))
        pairs = []
        for k, (record, node, flat) in enumerate(self.outputs):
            written = node.stage, not self.once_a_row(node, flat)
            size = prod(record.shape), record.dtype.itemsize
            for x, loads in reads.items():
                if (prod(x.shape), x.dtype.itemsize) == size and all(
                    n.index == flat and not n.guard and (s, not row) <= written
                    for s, row, n in loads
                ):
                    pairs.append((k, x))
        return pairs

    def loaded_input(self, load: NestNode) -> Record:
        """The input that a load reads."""
        return [*self.inputs][load.of]

    def is_row(self, node: NestNode) -> bool:
        """Whether a value is computed once for a row, for all elements of the row."""
        return self.reduces and node.loops.issubset(self.parallel_loops)

    def once_a_row(self, node: NestNode, flat: Polynomial) -> bool:
        """Whether a result is stored once for each row, not once for each element of the row."""
        return self.is_row(node) and flat.loops.issubset(self.parallel_loops)

    def reading(self):
        """(stage, whether for a row, load) for every load, at every stage that may compute it."""
        folds = {id(n): n for n in self.values if n.kind == "reduce"}.values()
        roots = [(f.args[0].stage, False, f.args[0]) for f in folds]
        roots += [(n.stage, self.once_a_row(n, flat), n) for _, n, flat in self.outputs]
        for stage, row, root in roots:
            for node in reach([root], lambda node: node.kind != "reduce"):
                if node.kind == "load":
                    yield stage, row, node

    # ---- values ------------------------------------------------------------------------------

    def at(self, record: Record, i, guard=()) -> NestNode:
        """The value of a record at an index."""
        i = tuple(i)
        if 1 in record.shape:
            i = tuple([ZERO if n == 1 else k for k, n in zip(i, record.shape, strict=True)])
        for known, under, node in self.memo.get(record, ()):
            if known == i and under == guard:
                return node
        node = self.value(record, i, guard)
        self.values.append(node)
        self.memo.setdefault(record, []).append((i, guard, node))
        return node

    def value(self, record: Record, i: tuple, guard: tuple) -> NestNode:
        if record.op is NUMBER:
            return NestNode("number", record.attrs["value"])
        if record not in self.records:
            k = self.inputs.setdefault(record, len(self.inputs))
            return NestNode("load", k, (), self.position(i, record.shape), record.dtype, guard)
        op = record.op
        if op.element is not None:
            return NestNode("place", record, (), i[0], record.dtype)
        kind = KINDS.get(op.kind) if op.parts is None else Nest.joined
        if kind is None:
            raise NotOneNest(f"{op.name} is no loop")
        return kind(self, record, i, guard)

    def elementwise(self, record, i, guard) -> NestNode:
        if self.index_of.setdefault(record, i) != i:
            raise NotOneNest("a value is needed at two indices")
        # An operand that is broadcast lacks leading axes; `at` ignores those of size 1.
        args = tuple([self.at(x, i[len(i) - len(x.shape) :], guard) for x in record.inputs])
        node = NestNode("apply", record, args, None, record.dtype)
        if prod(record.shape) < self.size:
            self.check_computed_once(record, node)
        return node

    def reduction(self, record, i, guard) -> NestNode:
        inside, out = self.reduction_indices[record]
        if [*i] != [ZERO if n == 1 else k for k, n in zip(out, record.shape, strict=True)]:
            raise NotOneNest("a reduced value is needed outside its row")
        term = self.at(record.inputs[0], inside)
        if record.op.term is not None:
            x = record.inputs[0]
            each = record.derive(record.op.term, [x], {}, record.op.term.result_spec([x.spec], {}))
            term = NestNode("apply", each, (term,), None, each.dtype)
        node = NestNode("reduce", record, (term,), None, record.dtype)
        node.loops = frozenset(self.parallel_loops)
        return node

    def check_computed_once(self, record, node) -> None:
        """Raise NotOneNest if the loops compute a value more often than it has elements; a value of
        counters alone, such as a causal mask, costs less than to load it.
        """
        often = (self.rows if self.is_row(node) else self.size) > prod(record.shape)
        if often and not {"load", "reduce"}.isdisjoint([n.kind for n in reach([node])]):
            raise NotOneNest("a value would be computed several times")

    def movement(self, record, i, guard) -> NestNode:
        if record.op.source is None:
            raise NotOneNest(f"{record.op.name} has no index map")
        x = record.inputs[0]
        j = record.op.source(list(i), x.spec, **record.attrs)
        return self.at(x, map(as_polynomial, j), guard)

    def inside(self, record, x, i, ranges, fill, guard) -> NestNode:
        """x at `i` where each (index, low, high) of `ranges` holds, `fill` elsewhere."""
        ranges = tuple(r for r in ranges if not (r[1] <= r[0].low and r[0].high < r[2]))
        there = self.at(x, map(as_polynomial, i), (*guard, *ranges))
        if not ranges:
            return there
        return NestNode("select", None, (there, fill), None, record.dtype, ranges)

    def joined(self, record, i, guard) -> NestNode:
        """Each input where its ranges hold, and a number elsewhere."""
        joined = record.op.parts(i, *(x.spec for x in record.inputs), **record.attrs)
        if joined is None:
            raise NotOneNest(f"{record.op.name} with such attributes has no index map")
        fill, parts = joined
        node = NestNode("number", fill, (), None, record.dtype)
        for k, j, ranges in parts:
            if 0 not in record.inputs[k].shape:  # no place lies in an empty one
                node = self.inside(record, record.inputs[k], j, ranges, node, guard)
        return node


KINDS = {"elementwise": Nest.elementwise, "reduction": Nest.reduction, "movement": Nest.movement}
"""How a nest computes a record, by its operator's kind; `Nest.joined` is for those with parts."""


def fusable(record: Record) -> bool:
    """Whether a record may be part of a nest."""
    if record.dtype is None or record.op is ITEM:
        return False
    return fusable_op(record.op) and (record.op.parts is None or len(record.inputs) <= PARTS)


def fusable_op(op: Op) -> bool:
    """Whether a nest knows an operator by its kind, or by its maps."""
    if op.kind == "movement" and op.parts is None:
        return op.source is not None
    return op.parts is not None or op.kind in KINDS or op.element is not None


PARTS = 16
"""The most arrays that a nest joins: each element is looked for in all of them."""
