"""The kernel of products around a loop nest: strips of rows between them stay in the cache.

for (each batch)
    for (each strip of rows)
        strips = a b;  the nest of these rows;  then for each product after it
            c[rows] = strip d, and its epilogue      (the product reads the columns of the strip)
            c += stripᵀ d[rows]                      (it sums over the rows)

A mask may hide the last columns in all rows of a strip (`passes.masks`). The kernel looks this up
when the program runs, and then the strip ends before these columns.
"""

from __future__ import annotations

from ...engine.codegen.kernel import (
    C_TYPES,
    GROUP_EMITTERS,
    GroupEmitter,
    Kernel,
    c_function,
    stack_array,
)
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.nest_kernel import body_of, signature
from ...engine.codegen.scalar import statements
from ...engine.codegen.writer import worth_sharing
from ...engine.core import dtype as dt
from ...engine.core.polynomial import as_polynomial
from ...engine.core.record import Record
from ...engine.core.symbols import Loop
from ...engine.ir.program import Program
from ...engine.passes.nest import Nest
from ...ops.products import product
from ...passes.back_to_back_gemm import is_chain
from ...passes.epilogue import in_place, room_of
from ...passes.masks import masks
from ...passes.strip_products import is_strips, sums_rows
from ..c_text import SIZES, UNEVEN, Workspace, indent, loop, share_loop
from ..open_sizes import is_open
from ..rows.partial_nest import RowsWriter
from . import microkernel
from .matmul import call_tiles, declare_matrices, loop_over_rows, pack_panels, plus
from .product import product_of
from .product_plan import SERIAL, ProductPlan, share_rows

STRIP = 1 << 18
"""Most bytes of a strip on the stack."""

LONG = 64
"""Fewest columns for which looking for masked ones pays (measured)."""

WORDS = ("a", "b", "c", "panels", "strip")
"""Names that the text uses, each with a number."""

RESERVED = {"first_row", "last_row", "row", "result", "columns", "shown", "here"}
"""Names that it uses besides."""


def height_of_sums() -> int:
    """Rows of a tile of a product that sums over a strip's rows: columns of the strip, of which
    those before masked ones are a multiple of WIDEST.
    """
    tall = microkernel.tile().tall
    return tall if microkernel.WIDEST % tall == 0 else 4


class StripPlan(ProductPlan):
    """The plan of a product before the nest, which is computed strip by strip."""

    __slots__ = ()

    wide = False  # the next product waits for whole rows
    most, size = 64, 1 << 16  # rows and bytes of a strip

    @property
    def block(self) -> int:
        """Rows of a strip: at least eight; enough strips for all threads."""
        most = max(min(self.most, self.size // (self.p.n.size * SIZES[self.T]) // 8 * 8), 8)
        rule = share_rows(self.p.m.size, most) if self.threads == "rows" else most
        return pick("strip", rule, [n for n in (8, 16, 32) if n < most])


class MaskedPlan(StripPlan):
    """Under a mask: the more rows a strip has, the fewer columns are hidden in all of them."""

    __slots__ = ()

    most, parallel = 16, UNEVEN


class SummingPlan(StripPlan):
    """Strips that may add to the same results: threads share the batch."""

    __slots__ = ()

    size = STRIP

    @property
    def pays(self) -> str:
        return worth_sharing(self.p.work, SERIAL)

    @property
    def threads(self) -> str:
        return "batch" if self.p.count > 1 and self.pays else ""


def split_region(region: Program) -> tuple[list[Record], ...]:
    """The products before the nest, the nest, the products that read it, and their epilogue."""
    records, inside = region.records, {*region.records}
    leads = [r for r in records if r.op is product and inside.isdisjoint(r.inputs)]
    readers = [r for r in records if r.op is product and r not in leads]
    at = records.index(readers[0])
    formulas = ([r for r in part if r.op is not product] for part in (records[:at], records[at:]))
    return leads, next(formulas), readers, next(formulas)


class StripProducts:
    """Writes the text of the kernel. `pointers` are the C names of inputs and products."""

    reserved, plans = RESERVED, (StripPlan, MaskedPlan)

    def __init__(self, record):
        self.region = region = record.attrs["region"]
        self.leads, between, self.readers, self.after = split_region(region)
        numbers = range(len(region.records))
        taken = self.reserved | {f"{word}_{k}" for word in WORDS for k in numbers}
        names, self.outs, self.parameters = signature(record, region.outputs, taken)
        self.pointers = dict(zip(region.inputs, names, strict=True))
        self.T, self.room = C_TYPES[self.leads[0].dtype], Workspace()
        *_, rows, self.length = self.leads[0].shape
        inside = {*self.leads, *between}
        read = dict.fromkeys(x for r in self.readers for x in r.inputs if x in inside)
        self.nest = Nest(between, [*read]).merged()
        self.masks = masks(self.nest, self.leads) if self.length >= LONG else []
        self.index_strips(as_polynomial(Loop("first_row", rows)) * self.length)
        self.choose_strips(read)
        self.result = self.choose_result()

    def index_strips(self, start) -> None:
        """Let the nest's indices into products, and into its results, begin at the strip."""
        for node in self.nest.nodes():
            if node.kind == "load" and self.nest.loaded_input(node) in self.leads:
                node.index -= start
        self.nest.outputs = [(r, node, flat - start) for r, node, flat in self.nest.outputs]

    def choose_strips(self, read) -> None:
        """Store each result of the nest in the strip of a product, or in a new strip."""
        self.strips = {x: f"strip_{k}" for k, x in enumerate(self.leads)}
        free, pairs = {*self.leads}, self.nest.in_place()
        for k, x in enumerate(read):
            over = next((y for j, y in pairs if j == k and y in free), None)
            new = f"strip_{len(self.leads) + k}"
            self.strips.setdefault(x, self.strips[over] if over else new)
            free -= {over}

    def choose_result(self) -> str:
        """Store each product in a result; what has an epilogue, in the workspace if it must."""
        of = dict(zip(self.region.outputs, self.outs, strict=True))
        if self.after:
            place = room_of(self.region).product
            of[self.readers[0]] = "result" if place is None else self.outs[place]
        self.pointers |= self.strips | {r: of[r] for r in self.readers}
        return self.pointers[self.readers[0]]

    def lead(self, record) -> ProductPlan:
        """The plan of a product before the nest."""
        summing = len(self.leads) + len(self.readers) > 2
        return self.plan(record, SummingPlan if summing else self.plans[bool(self.masks)])

    def plan(self, record, form=ProductPlan) -> ProductPlan:
        """The plan of a product. Its right operand is read in place, or packed into panels."""
        x, y = record.inputs
        p = product_of(x.spec, y.spec, record.spec, **record.attrs, keep_order=True)
        left, right = (y, x) if p.exchanged else (x, y)
        names = self.pointers[left], self.pointers[right], self.pointers[record]
        how = "rows" if p.n.y == 1 else "panels"
        add = left in self.strips and sums_rows(record, left)
        return form(p, self.T, how, names, add, None, record.shape[-1], self.room)

    def emit(self, name: str) -> Kernel:
        """The kernel."""
        leads, readers = [self.lead(r) for r in self.leads], [self.plan(r) for r in self.readers]
        packs = any(plan.how == "panels" for plan in (*leads, *readers))
        body = self.body(leads, readers)
        helpers = (*(microkernel.panels(self.T) if packs else ()), *microkernel.blocks(body))
        takes = [*self.parameters, *(["char *work"] if self.room.size else [])]
        return Kernel(name, c_function(name, takes, body), self.room.size, helpers)

    def body(self, leads, readers) -> str:
        """The loops over the batch and over strips."""
        first, T, private = leads[0], self.T, leads[0].threads == "batch"
        text = f"    /* {first.p.m.size} rows of {self.length}, {first.block} at a time */\n"
        if self.result == "result":
            text += f"    {T} *result = {self.room.array(T, self.readers[0].spec.size)};\n"
        inside = ""
        for k, plan in enumerate((*leads, *readers)):
            a, c = ("", f"c_{k}") if plan in readers else (f"a_{k}", "")
            before, within = pack_panels(plan, plan.names[1], f"b_{k}", private, f"panels_{k}")
            text += before
            inside += declare_matrices(plan, a, f"b_{k}", c) + within
            if plan.add:
                clear = f"memset(c_{k} + m * {plan.p.m.out}, 0, {plan.p.n.size} * sizeof({T}));\n"
                inside += loop("m", plan.p.m.size, clear)
        self.arrays = self.declare_strips(first)
        inside += loop_over_rows(
            first, lambda at, rows: self.strip(leads, readers, at, rows), "c_1"
        )
        if first.p.count > 1:
            inside = share_loop("i", first.p.count, inside, first.pays * private)
        return text + indent(inside, 4)

    def declare_strips(self, plan: ProductPlan) -> str:
        """C text of the strips: on the stack, or in the workspace if no threads share the rows."""
        rows = plan.p.m.size
        size = (plan.block if is_open(rows) else min(plan.block, rows)) * self.length
        names = dict.fromkeys(self.strips.values())
        if size * SIZES[self.T] <= STRIP or plan.threads == "rows":
            return "".join(f"{stack_array(self.T, name, size)}\n" for name in names)
        part = f" + i * {size}" if plan.p.count > 1 else ""
        array = lambda: self.room.array(self.T, size * plan.p.count)
        return "".join(f"{self.T} *{name} = {array()}{part};\n" for name in names)

    def begin_strip(self, plan: ProductPlan, first: str, rows: int) -> str:
        """C text of the rows of a strip in the whole batch."""
        start = first if plan.p.count == 1 else f"i * {plan.p.m.size} + {first}"
        return f"const int64_t first_row = {start}, last_row = first_row + {rows};\n"

    def strip(self, leads, readers, first: str, rows: int) -> str:
        """One strip: the products before the nest, the nest, the products after it."""
        text, columns = self.begin_strip(leads[0], first, rows) + self.arrays, ""
        if self.masks:
            text, columns = text + self.visible_columns(), "columns"
        for k, plan in enumerate(leads):
            a, b = plus(f"a_{k}", first, plan.p.m.x), right_of(plan, k)
            text += call_tiles(plan, a, b, plan.names[2], "0", rows, columns)
        targets = [self.strips[record] for record, *_ in self.nest.outputs]
        text += self.rows(self.nest, targets, self.length, columns)
        for k, plan in enumerate(readers, len(leads)):
            b, c = right_of(plan, k), f"c_{k}"
            if plan.add:
                text += self.add_rows(plan, plus(b, first, plan.p.k.y), c, rows, columns)
            else:
                c = plus(c, first, plan.p.m.out)
                text += call_tiles(plan, plan.names[0], b, c, "0", rows, terms=columns)
        return text + self.finish(readers[0])

    def add_rows(self, plan: ProductPlan, b: str, c: str, rows: int, columns: str) -> str:
        """The part of a product that sums over rows: a row of it for each column of the strip."""
        p, t, tall = plan.p, microkernel.tile(), height_of_sums()
        count = columns or str(p.m.size)

        def call(height: int, at: str, many: str) -> str:
            x = plus(plan.names[0], at, p.m.x), p.m.x, p.k.x, 0
            sides = x, (b, p.k.y, 0), (plus(c, at, p.m.out), p.m.out)
            return microkernel.call_block(self.T, height, many, p.n.size, rows, 1, *sides, 1, t)

        even = f"({count} / {tall} * {tall})"
        text = call(tall, "0", even)
        if p.m.size % tall:
            text += call(1, even, f"{count} % {tall}")
        return text

    def finish(self, plan: ProductPlan) -> str:
        """The epilogue of the product after the nest."""
        if not self.after:
            return ""
        nest = Nest(self.after, self.region.outputs).merged()
        return self.rows(nest, self.outs, plan.p.n.size)

    def writer(self, nest: Nest, targets: list[str], length: int) -> RowsWriter:
        """The writer of a nest for the rows of a strip."""
        names = [self.pointers[x] for x in nest.inputs]
        return RowsWriter(nest, names, targets, ("first_row", "last_row", length))

    def rows(self, nest: Nest, targets, length: int, columns: str = "") -> str:
        """C text of a nest for the rows of a strip, for `columns` or all of its columns."""
        writer = self.writer(nest, targets, length)
        writer.ends = dict.fromkeys(nest.reduction_loops, columns) if columns else {}
        return f"{{\n{body_of(writer)}\n}}\n"

    def visible_columns(self) -> str:
        """The number of columns of a strip before the masked ones, rounded up to whole vectors. If
        a row is masked completely, all columns count.
        """
        w = self.writer(self.nest, [*self.strips.values()], self.length)
        n, step, memo, tests = self.length, microkernel.WIDEST, {}, []
        for node, hidden in self.masks:
            mask = w.text(node, memo)
            tests.append(mask != hidden if node.dtype in dt.FLOATS else ~mask if hidden else mask)
        lines, seen = statements(tests, lambda: w.fresh("t"))
        (along,) = self.nest.reduction_loops
        w.put("int columns = 0;")
        with w.each_row(self.nest.parallel_loops):
            w.put("int shown = 0;")
            with w.loop([along], w.simd, "reduction(max : shown)"):
                w.put(*lines, f"const int here = {' && '.join(seen)} ? {along.name} + 1 : 0;")
                w.put("shown = here > shown ? here : shown;")
            w.put(f"columns = !shown ? {n} : shown > columns ? shown : columns;")
        w.put(f"columns = (columns + {step - 1}) / {step} * {step};")
        w.put(f"if (columns > {n}) columns = {n};")
        return "\n".join(line[4:] for line in w.lines) + "\n"


def right_of(plan: ProductPlan, k: int) -> str:
    """The right operand of product number k: as it is given, or in panels."""
    return f"panels_{k}" if plan.how == "panels" else f"b_{k}"


def emit_strip_products(record, name: str) -> Kernel:
    """The kernel of a group with products before and after its nest."""
    return StripProducts(record).emit(name)


def has_readers(record) -> bool:
    """Whether a record is a group in which products read the rows of others."""
    return is_chain(record) or is_strips(record)


GROUP_EMITTERS.append(GroupEmitter(has_readers, emit_strip_products, in_place))
