"""A group of records as one loop nest: what is computed at which place of the loops.

The loops of a nest are the axes of its *domain*: *kept* ones, and those that its reductions fold.
Every value is worked out as a formula of the loop variables: an elementwise operator has the index
of its result, a movement reads its input at another index, an input is a load from memory. So
movements cost nothing, and it is seen before anything is generated whether a value would be needed
at two places, or more often than it has elements: then the group would compute it again and again,
and `NotOneNest` is raised.

A value that depends on kept loops alone belongs to a *row*; it is computed once a row. The *stage*
of a value says how many reductions of the row must be finished before it.
"""

from __future__ import annotations

from math import prod

from ..core.record import Record
from ..core.slots import slot
from ..ir.program import ITEM, NUMBER
from ..ops.movement import ravel, unravel
from .index import ZERO, Index, Loop, Part, index, loop
from .node import Node, reached


class NotOneNest(Exception):
    """Why a group of records is no loop nest."""


class Nest:
    """The loop nest of `records`, of which `outputs` are needed outside."""

    def __init__(self, records, outputs):
        self.records = set(records)
        self.inputs: dict[Record, int] = {}
        self.memo: dict[tuple, Node] = {}
        self.places: dict[Record, tuple] = {}  # the one index at which a value is computed
        self.folds: dict[Record, tuple] = {}
        self.reductions = [r for r in records if r.op.kind == "reduction"]
        self.span(outputs)
        self.outputs = [self.output(r) for r in outputs]

    # ---- the loops ---------------------------------------------------------------------------

    def span(self, outputs) -> None:
        """The loops: the axes of what is reduced, or of the largest output; of several shapes of
        that size the one with most axes, for the others are that one reshaped.
        """
        whole = [r.inputs[0] for r in self.reductions] or outputs
        if not whole:
            raise NotOneNest("nobody needs it")
        self.size = max(r.spec.size for r in whole)
        shapes = [r.shape for r in [*whole, *outputs] if r.spec.size == self.size]
        self.shape = max(shapes, key=len)
        names = "ijklmnpqrs"
        if len(self.shape) > len(names):
            raise NotOneNest("too many axes")
        if 0 in self.shape:
            raise NotOneNest("nothing to compute")
        self.domain = [loop(names[d], n) for d, n in enumerate(self.shape)]
        self.folded = bool(self.reductions)
        folded = self.along(self.reductions[0]) if self.folded else frozenset()
        self.kept = [a for a in self.loops if a not in folded]
        self.reduced = [a for a in self.loops if a in folded]
        self.rows = prod(a.extent for a in self.kept)
        for record in self.reductions:
            self.folds[record] = self.folding(record)

    def along(self, record: Record) -> frozenset:
        """The loops that a reduction folds."""
        x, axes = record.inputs[0], record.attrs["axis"]
        if x.spec.size != self.size:
            raise NotOneNest("reductions over different loops")
        i = self.reshaped(self.domain, self.shape, x.shape)
        return frozenset().union(*(i[d].loops for d in axes))

    def folding(self, record: Record) -> tuple:
        """The index into what a reduction folds, and that of its result."""
        x, axes, kept = record.inputs[0], record.attrs["axis"], set(self.kept)
        if x.spec.size != self.size:
            raise NotOneNest("reductions over different loops")
        i = self.reshaped(self.domain, self.shape, x.shape)
        for d, at in enumerate(i):
            rows = at.loops <= kept
            if at.loops and (rows if d in axes else not rows):
                raise NotOneNest("reductions over different axes")
        if prod(n for d, n in enumerate(x.shape) if d in axes) * self.rows != self.size:
            raise NotOneNest("reductions over different axes")
        keep = record.attrs["keepdim"]
        out = [ZERO if d in axes else at for d, at in enumerate(i) if keep or d not in axes]
        return tuple(i), tuple(out)

    @staticmethod
    def reshaped(i, old, new) -> list[Index]:
        same = tuple(old) == tuple(new)
        return list(i) if same else list(map(index, unravel(ravel(i, old), new)))

    def output(self, record: Record) -> tuple[Record, Node, Index]:
        """(record, its value, the place in memory where it goes)."""
        size = record.spec.size
        if self.folded and size == self.rows and (size != self.size or record in self.folds):
            shape = tuple(a.extent for a in self.kept)
            i = [Index({a: 1}) for a in self.kept]
        elif size == self.size:
            shape, i = self.shape, self.domain
        else:
            raise NotOneNest("results of different sizes")
        flat = index(ravel(i, shape)) if i else ZERO
        at = self.reshaped(i, shape, record.shape) if i else [ZERO] * len(record.shape)
        if any(isinstance(t, Part) for k in at for t in k.terms):
            raise NotOneNest("results of different shapes")
        return record, self.at(record, at), flat

    @property
    def loops(self) -> list[Loop]:
        """Its loops, the outermost first."""
        return [a for i in self.domain for a in i.terms]

    def merged(self) -> Nest:
        """Two loops become one where every index runs through both as through one."""
        inner: list[Loop] = []
        for a in reversed(self.loops):
            if inner and self.joinable(a, inner[-1]):
                b = inner.pop()
                grown = Loop(b.name, a.extent * b.extent)
                self.substitute({a: None, b: grown})
                inner.append(grown)
            else:
                inner.append(a)
        self.domain = [Index({a: 1}) for a in inner[::-1]]
        return self

    def joinable(self, a: Loop, b: Loop) -> bool:
        if (a in self.kept) != (b in self.kept):
            return False
        return all(
            i.terms.get(a, 0) == i.terms.get(b, 0) * b.extent
            and not any(isinstance(t, Part) and t.loops & {a, b} for t in i.terms)
            for i in self.indices()
        )

    def indices(self):
        """Every index that is used."""
        yield from (flat for _, _, flat in self.outputs)
        for node in self.nodes():
            if node.index is not None:
                yield node.index
            yield from (i for i, *_ in node.guard)

    def nodes(self) -> dict[Node, None]:
        """Every value, also those that stand within others alone: pieces of what is joined."""
        return reached([*self.memo.values(), *(node for _, node, _ in self.outputs)])

    def substitute(self, new: dict) -> None:
        """Put other loops, or none, in the place of some."""

        def index_(i: Index) -> Index:
            terms = {new.get(t, t): f for t, f in i.terms.items()}
            terms.pop(None, None)
            return Index(terms, i.constant)

        def loops_(loops) -> list:
            return [new.get(a, a) for a in loops if new.get(a, a) is not None]

        self.kept, self.reduced = loops_(self.kept), loops_(self.reduced)
        self.outputs = [(record, node, index_(flat)) for record, node, flat in self.outputs]
        for node in self.nodes():
            node.loops = frozenset(loops_(node.loops))
            node.index = None if node.index is None else index_(node.index)
            node.guard = tuple((index_(i), low, high) for i, low, high in node.guard)

    @slot("nest.in_place")
    def in_place(self) -> list[tuple[int, Record]]:
        """(output k, input): the output may be written over the input, if nobody else needs it.

        Every place of the input is read where the output is written, and not after that: results
        of a row are written before the loop of their stage, others in it.
        """
        reads: dict[Record, list] = {}
        for stage, row, node in self.reading():
            reads.setdefault(self.number_of(node), []).append((stage, row, node))
        found = []
        for k, (record, node, flat) in enumerate(self.outputs):
            written = node.stage, not self.once_a_row(node, flat)
            for x, loads in reads.items():
                fits = x.spec.size == record.spec.size
                fits = fits and x.dtype.itemsize == record.dtype.itemsize
                same = all(n.index == flat and not n.guard for *_, n in loads)
                if fits and same and all((s, not row) <= written for s, row, _ in loads):
                    found.append((k, x))
        return found

    def number_of(self, load: Node) -> Record:
        """The input that a load reads."""
        return [*self.inputs][load.of]

    def is_row(self, node: Node) -> bool:
        """Is it a value of a row, computed once for all its elements?"""
        return self.folded and node.loops <= set(self.kept)

    def once_a_row(self, node: Node, flat: Index) -> bool:
        """Is a result stored once for each row, not spread over the row's elements?"""
        return self.is_row(node) and flat.loops <= set(self.kept)

    def reading(self):
        """(stage, for a row?, load) for every load, at every stage that may compute it (again)."""
        folds = {id(n): n for n in self.memo.values() if n.kind == "fold"}.values()
        roots = [(f.args[0].stage, False, f.args[0]) for f in folds]
        roots += [(n.stage, self.once_a_row(n, flat), n) for _, n, flat in self.outputs]
        for stage, row, root in roots:
            for node in reached([root], lambda node: node.kind != "fold"):
                if node.kind == "load":
                    yield stage, row, node

    # ---- values ------------------------------------------------------------------------------

    def at(self, record: Record, i, guard=()) -> Node:
        """The value of a record at an index."""
        i = tuple(ZERO if n == 1 else index(k) for k, n in zip(i, record.shape, strict=True))
        key = record, i, guard
        node = self.memo.get(key)
        if node is None:
            node = self.memo[key] = self.value(record, i, guard)
        return node

    def value(self, record: Record, i: tuple, guard: tuple) -> Node:
        if record.op is NUMBER:
            return Node("number", record.attrs["value"])
        if record not in self.records:
            k = self.inputs.setdefault(record, len(self.inputs))
            return Node("load", k, (), index(ravel(i, record.shape)), record.dtype, guard)
        op = record.op
        if op.element is not None:
            return Node("place", record, (), i[0], record.dtype)
        kind = KINDS.get(op.kind) if op.parts is None else Nest.joined
        if kind is None:
            raise NotOneNest(f"{op.name} is no loop")
        return kind(self, record, i, guard)

    def elementwise(self, record, i, guard) -> Node:
        self.once(record, i)
        args = tuple(self.at(x, fit(i, x), guard) for x in record.inputs)
        node = Node("apply", record, args, None, record.dtype)
        self.often(record, node)
        return node

    def reduction(self, record, i, guard) -> Node:
        inside, out = self.folds[record]
        if i != tuple(ZERO if n == 1 else k for k, n in zip(out, record.shape, strict=True)):
            raise NotOneNest("a reduced value is needed outside its row")
        term = self.at(record.inputs[0], inside)
        if record.op.term is not None:
            x = record.inputs[0]
            each = record.derive(record.op.term, [x], {}, record.op.term.result_spec([x.spec], {}))
            term = Node("apply", each, (term,), None, each.dtype)
        node = Node("fold", record, (term,), None, record.dtype)
        node.loops = frozenset(self.kept)
        return node

    def once(self, record, i) -> None:
        """Raise if the value was needed at another place before."""
        if self.places.setdefault(record, i) != i:
            raise NotOneNest("a value is needed at two places")

    def often(self, record, node) -> None:
        """Raise if the loops compute it more often than it has elements."""
        if (self.rows if self.is_row(node) else self.size) > record.spec.size:
            raise NotOneNest("a value would be computed again and again")

    def movement(self, record, i, guard) -> Node:
        if record.op.source is None:
            raise NotOneNest(f"{record.op.name} has no index map")
        x = record.inputs[0]
        return self.at(x, record.op.source(list(i), x.spec, **record.attrs), guard)

    def inside(self, record, x, i, ranges, fill, guard) -> Node:
        """x at `i` where each (index, low, high) of `ranges` holds, `fill` elsewhere."""
        ranges = tuple(r for r in ranges if not (r[1] <= r[0].low and r[0].high < r[2]))
        there = self.at(x, i, (*guard, *ranges))
        if not ranges:
            return there
        return Node("select", None, (there, fill), None, record.dtype, ranges)

    def joined(self, record, i, guard) -> Node:
        """Inputs, each where its ranges hold, and a number elsewhere."""
        found = record.op.parts(i, *(x.spec for x in record.inputs), **record.attrs)
        if found is None:
            raise NotOneNest(f"{record.op.name} with such attributes has no index map")
        fill, parts = found
        node = Node("number", fill, (), None, record.dtype)
        for k, j, ranges in parts:
            node = self.inside(record, record.inputs[k], j, ranges, node, guard)
        return node


KINDS = {
    "elementwise": Nest.elementwise,
    "reduction": Nest.reduction,
    "movement": Nest.movement,
}
"""What a record is in a nest, by its operator's kind; those that join have one of their own."""


def fit(i: tuple, x: Record) -> tuple:
    """The index into an operand that is broadcast to the shape `i` belongs to."""
    lead = len(i) - len(x.shape)
    return tuple(ZERO if n == 1 else k for k, n in zip(i[lead:], x.shape, strict=True))


def fusable(record: Record) -> bool:
    """May a record be part of a nest at all?"""
    op = record.op
    if record.dtype is None or record.op is ITEM:
        return False
    if op.parts is not None:
        return len(record.inputs) <= PARTS
    if op.kind == "movement":
        return op.source is not None
    return op.kind in KINDS or op.element is not None


PARTS = 16
"""Arrays at most that a nest joins: each element asks of every one whether it lies there."""
