"""The kind of each record of a program: a kernel with its products and bytes, a collective, a value
that is kept; of which part of the model, in the forward or the backward.

Where two products have a large matrix between them, larger than all they read, as attention has
its scores, these values may stay on the chip (Dao et al., "FlashAttention", 2022).
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ...codegen.products.product import product_of
from ...engine.core.record import Record, Spec
from ...engine.ir.edit import users_of
from ...engine.ir.program import ITEM, Program, regions
from ...engine.ops.elementwise import cast
from ...engine.ops.movement import transpose
from ...engine.passes.lifetimes import is_view, roots, specs_of, values_of
from ...ops.products import product
from ..collectives.operators import COLLECTIVES, all_gather
from .splitting import LayerBlocks

SPREAD = 4
"""A product whose result exceeds both operands by this factor stays on the chip."""
HALF = {"float32": 2}
"""Bytes of an element where they are not the dtype's: layers compute in half precision."""
PARTS = "first", "block", "last"
"""The part before the blocks, one block, the part after them."""


def scale(n: int, batch: float, prime: int) -> float:
    """A size at another batch; a rank may have a part of a sample.

    >>> from minipaddle.distributed.planner.figures import scale
    >>> scale(7 * 4096, batch=2, prime=7), scale(4096, batch=2, prime=7)
    (8192, 4096)
    """
    return n // prime * batch if n % prime == 0 else n


class Size(NamedTuple):
    """`elements` of `width` bytes, at a batch of `prime`; see `scale`."""

    elements: int
    width: int

    def nbytes(self, batch: float, prime: int) -> float:
        return self.width * scale(self.elements, batch, prime)


class KernelCost(NamedTuple):
    """The work of one kernel: products (batch, rows, columns, depth), values read and written; of
    these `on_chip` need not be in memory. `part` is "first", "block" or "last"; `gradients` is the
    number of parameters whose gradients it makes. `apart`: what the operators of a loss read and
    write if each is a kernel of its own.
    """

    name: str
    part: str
    backward: bool
    products: tuple[tuple[int, int, int, int], ...]
    moved: tuple[Size, ...]
    on_chip: tuple[Size, ...] = ()
    masked: bool = False  # a mask that is known beforehand leaves out half
    again: bool = False  # the backward makes it once more, as it was not kept
    gradients: int = 0
    apart: tuple[Size, ...] = ()


class SentCollective(NamedTuple):
    """A collective along the axis of tensor parallel; half an all-reduce where `half`."""

    part: str
    backward: bool
    size: Size
    half: bool


class KeptValues(NamedTuple):
    """The residuals of a part's forward; of them those that stayed on the chip, if it
    does; and what the ranks of tensor parallel do not keep, but gather again.
    """

    sizes: list[Size]
    on_chip: list[Size]
    gathered: list[Size]


class Counter:
    """The part of each record of a program, forward or backward, and its operands."""

    def __init__(self, program: Program, blocks: LayerBlocks, prime: int, half: bool):
        self.prime, self.half, self.width = prime, half, 2 if half else 4
        self.program, self.root, self.blocks = program, roots(program), blocks
        self.users = users_of(program)
        self.inside = {r for r in program.records if blocks.holds(r.scope)}
        loss, *gradients = program.outputs
        self.forward = self.trace_back([loss])
        origins = map(self.find_origin, gradients)
        self.gradients = {self.root.get(r, (r, 0)) for r in origins}
        middle = [r for r in self.inside if r in self.forward]
        self.start = self.trace_back(middle) - self.inside
        self.fixed = self.find_constants()
        self.spread = self.find_large()
        self.masked = any(map(self.has_mask, self.kernels_on_chip()))

    def trace_back(self, records) -> set[Record]:
        """The records, and all records that they depend on."""
        reached, todo = set(), [*records]
        while todo:
            record = todo.pop()
            if record not in reached:
                reached.add(record)
                todo += record.inputs
        return reached

    def find_constants(self) -> set[Record]:
        """Records whose values are known before the program runs."""
        constants, arguments = set(), {*self.program.given}
        for record in self.program.records:
            if all(x in constants or (x not in arguments and not x.inputs) for x in record.inputs):
                constants.add(record)
        return constants

    def part(self, record: Record) -> str:
        """The part of a record: a block, before the first, or after the last one."""
        if record in self.inside:
            return "block"
        if record in self.forward:
            return "first" if record in self.start else "last"
        slopes = self.gradients.intersection(values_of(record, self.root))
        if slopes and record.scope is None and self.inside.intersection(record.inputs):
            return "block"  # the gradient of a bias, or of a norm
        late = any(x in self.inside or x in self.late for x in record.inputs)
        if late:
            self.late.add(record)
        return "first" if late else "last"

    late: set[Record]

    def size_of(self, record: Record, spec: Spec) -> Size:
        """The size of a value that a record makes; outside of all layers is the loss."""
        loss = record.scope is None and record.inputs
        half = HALF.get(spec.dtype.name) if self.half and not loss else None
        return Size(spec.size, half or spec.dtype.itemsize)

    def is_free(self, record: Record) -> bool:
        """Whether a record computes nothing: kernels read a transposed matrix in place."""
        return is_view(record, self.root) or record.op is transpose

    def values(self, record: Record) -> tuple[list, list]:
        """(values read, values written) by a kernel, as (value, spec)."""
        read = {self.root.get(x, (x, 0)): x.spec for x in record.inputs if x.dtype is not None}
        return [*read.items()], [((record, k), s) for k, s in enumerate(specs_of(record))]

    def find_large(self) -> set:
        """The values that may stay on the chip."""
        spread: set = set()
        for record in self.program.records:
            if self.is_free(record):
                continue
            read, written = self.values(record)
            products = [r for r in inner_records(record) if r.op is product]
            operands = [
                sum(x.spec.size for x in r.inputs)
                for r in products
                if all(x.spec.size % self.prime == 0 for x in (*r.inputs, r))
            ]
            sizes = {s.size for v, s in read if v in spread}
            for value, spec in written:
                outer = operands and spec.size > SPREAD * max(operands)
                if outer or (spec.size in sizes and not products):
                    spread.add(value)
        return spread

    def count_kernels(self) -> Iterator[KernelCost]:
        """All kernels. The backward repeats products whose results stayed on the chip."""
        self.late, again = set(), []
        for record in self.program.records:
            part, backward = self.part(record), record not in self.forward
            if self.is_free(record) or record.op in COLLECTIVES:
                continue
            read, written = self.values(record)
            chip = [self.size_of(v[0], s) for v, s in (*read, *written) if v in self.spread]
            gradients = sum(s.size for v, s in written if v in self.gradients)
            other = self.gradients | self.spread
            moved = [self.size_of(v[0], s) for v, s in (*read, *written) if v not in other]
            products = tuple(sizes_of(r) for r in inner_records(record) if r.op is product)
            masked = self.masked and bool(chip)
            name, sizes = name_of(record), ((*moved,), (*chip,))
            kernel = KernelCost(name, part, backward, products, *sizes, masked)
            apart = () if gradients else tuple(self.count_apart(record))
            yield kernel._replace(gradients=gradients, apart=apart)
            if products and not backward and any(v in self.spread for v, _ in written):
                again.append(kernel._replace(backward=True, moved=(), again=True))
        yield from again

    def count_apart(self, record: Record) -> Iterator[Size]:
        """The bytes that operators of a loss, outside of all layers, read and write one by one.
        Booleans, and numbers from them, are not written: indices replace them.
        """
        for program in regions(record).values() if record.scope is None else ():
            outer = dict(zip(program.given, record.inputs))
            for r in program.records:
                if r.op.kind in ("elementwise", "reduction") and not is_light(r):
                    for x in (r, *r.inputs):
                        if x.dtype is not None and not is_light(x):
                            yield self.size_of(outer.get(x, x), x.spec)

    def kernels_on_chip(self) -> Iterator[Record]:
        """The records with a result that may stay on the chip."""
        for record in self.program.records:
            if any(v in self.spread for v, _ in self.values(record)[1]):
                yield record

    def find_readers(self, value) -> list[Record]:
        """The kernels that read a value, through views."""
        readers, todo = [], [*self.users.get(value[0], ())]
        while todo:
            record = todo.pop()
            if self.root.get(record) == value:
                todo += self.users.get(record, ())
            elif record.op is not ITEM:
                readers.append(record)
        return readers

    def has_mask(self, record: Record) -> bool:
        """Whether a kernel reads a matrix, or makes one, that is known beforehand."""
        matrix = lambda s: sum(n > 1 for n in s.shape) > 1
        if any(x in self.fixed and x.dtype is not None and matrix(x.spec) for x in record.inputs):
            return True
        known: set = set()
        for program in regions(record).values():
            arguments = {
                x for x, outer in zip(program.given, record.inputs) if outer not in self.fixed
            }
            for r in program.records:
                if not any(x in arguments or (x.inputs and x not in known) for x in r.inputs):
                    known.add(r)
                    if r.dtype is not None and matrix(r.spec):
                        return True
        return False

    def find_collectives(self) -> Iterator[SentCollective]:
        """All collectives of more than a number for each sample and place."""
        self.late, parts = set(), {}
        for record in self.program.records:
            part = parts[record] = self.part(record)
            if record.op in COLLECTIVES:
                count = sum(x.spec.size for x in record.inputs if x.dtype is not None)
                size = max(count, sum(s.size for s in specs_of(record)))
                half = record.op.name not in ("all_reduce", "all_fold")
                if not half:  # a sum belongs to the part of its terms
                    part = parts.get(record.inputs[0], part)
                yield SentCollective(part, record not in self.forward, Size(size, self.width), half)

    def find_residuals(self) -> dict[str, KeptValues]:
        """The residuals of each part's forward."""
        by_part, seen = {part: KeptValues([], [], []) for part in PARTS}, set()
        for record in self.program.records:
            if record not in self.forward or record in self.fixed or is_view(record, self.root):
                continue
            kept, origin = by_part[self.part(record)], self.find_origin(record)
            for value, spec in self.values(record)[1]:
                if all(u in self.forward for u in self.find_readers(value)):
                    continue
                if origin.op is all_gather:
                    if origin not in seen:
                        kept.gathered.append(Size(origin.spec.size, self.width))
                    seen.add(origin)
                    value = self.root[origin.inputs[0]]
                    spec = specs_of(value[0])[value[1]]
                if value not in seen:
                    seen.add(value)
                    sizes = kept.on_chip if value in self.spread else kept.sizes
                    sizes.append(self.size_of(value[0], spec))
        return by_part

    def find_origin(self, record: Record) -> Record:
        """The record that computed the values of a view, or of a transposed copy."""
        while record.op is not ITEM and self.is_free(record):
            record = record.inputs[0]
        return record

    def find_entry(self) -> Size:
        """The value that one block passes to the next: the largest that enters."""
        states = {s.record for s in self.program.states}
        enters = [
            self.size_of(x, x.spec)
            for r in self.inside & self.forward
            for x in r.inputs
            if x in self.start and x not in states and x.dtype is not None
        ]
        return max(enters, key=lambda s: s.elements)

    def count_weights(self) -> dict[str, int]:
        """The parameters that a rank has, by part; one that two parts read counts in the first."""
        counts = dict.fromkeys(PARTS, 0)
        self.late = set()
        parts = {r: self.part(r) for r in self.program.records if r in self.forward}
        for state in self.program.states:
            if not getattr(getattr(state.storage, "tensor", None), "is_parameter", False):
                continue  # a table that was computed before
            where = {parts[u] for u in self.find_readers((state.record, 0)) if u in parts}
            part = next((p for p in ("block", "first", "last") if p in where), "last")
            counts[part] += state.record.spec.size
        return counts


def is_light(record: Record) -> bool:
    """Whether a value is of booleans, or of numbers from them."""
    while record.op.kind == "movement":
        record = record.inputs[0]
    return record.dtype.kind == "b" or record.op is cast


def inner_records(record: Record) -> list[Record]:
    """The records that a kernel computes."""
    return [r for program in regions(record).values() for r in program.records] or [record]


def name_of(record: Record) -> str:
    """The name of a kernel: its first product, or its operator."""
    return next((r.op.name for r in inner_records(record) if r.op is product), record.op.name)


def sizes_of(record: Record) -> tuple[int, int, int, int]:
    """(batch, rows, columns, depth) of a product."""
    x, y = (r.spec for r in record.inputs)
    axes = product_of(x, y, record.spec, **record.attrs)
    return prod(a.size for a in axes.batch), axes.m.size, axes.n.size, axes.k.size
