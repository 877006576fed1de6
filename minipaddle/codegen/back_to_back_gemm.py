"""The kernel of two matrix products in a chain: strips of rows between them stay in the cache.

for (each batch)
    for (each strip of rows)
        strip = a b;  epilogue of its rows;  c = strip d;  epilogue of these rows

A mask may hide the last columns in all rows of a strip (`passes.masks`). The kernel looks this up
when the program runs, and then the strip ends before these columns.
"""

from __future__ import annotations

from ..engine.codegen.kernel import (
    C_TYPES,
    GROUP_EMITTERS,
    GroupEmitter,
    Kernel,
    c_function,
    stack_array,
)
from ..engine.codegen.kernel_schedule import pick
from ..engine.codegen.nest_kernel import body_of, signature
from ..engine.codegen.scalar import statements
from ..engine.core import dtype as dt
from ..engine.core.polynomial import Polynomial, as_polynomial
from ..engine.core.symbols import Loop
from ..engine.passes.nest import Nest
from ..ops.products import product
from ..passes.back_to_back_gemm import is_chain
from ..passes.epilogue import in_place, room_of
from ..passes.masks import masks
from . import microkernel
from .c_text import PARALLEL, SIZES, UNEVEN, Workspace, indent, loop
from .matmul import (
    ON_STACK,
    offset,
    pack_panels,
    plus,
    row_blocks,
    tiles,
)
from .product import product_of
from .product_plan import ProductPlan
from .rows_writer import RowsWriter

STRIP = 64
"""Most rows of a strip."""

MASKED = 16
"""Most rows of a strip under a mask: the more rows, the fewer columns are hidden in all of them."""

LONG = 64
"""Fewest columns for which looking for masked ones pays (measured)."""

OWN = {
    *("first_row", "last_row", "row", "strip", "panels", "panels_2", "a", "b", "c", "d"),
    *("columns", "shown", "here"),
}
"""Names that the text uses itself."""


class Strips(ProductPlan):
    """The plan of the first product, which is computed strip by strip."""

    __slots__ = ()

    wide = False  # the next product waits for whole rows
    most = STRIP

    @property
    def block(self) -> int:
        """Rows of a strip: at least eight, at most what fits the stack; enough for all threads."""
        row = self.p.n.size * SIZES[self.T]
        most = max(min(self.most, ON_STACK // row // 8 * 8), 8)
        rule = min(most, -(-self.p.m.size // 32) * 8) if self.threads == "rows" else most
        return pick("strip", rule, [n for n in (8, 16, 32) if n < most])


class Masked(Strips):
    """Strips with different numbers of columns."""

    __slots__ = ()

    most = MASKED
    parallel = UNEVEN


class BackToBackGemm:
    """Writes the text of the kernel."""

    own, kinds = OWN, (Strips, Masked)

    def __init__(self, record):
        self.region = region = record.attrs["region"]
        self.first, self.second = (r for r in region.records if r.op is product)
        at = region.records.index(self.second)
        self.between, self.after = region.records[1:at], region.records[at + 1 :]
        self.place, _ = room_of(region)
        names, self.outs, self.parameters = signature(record, region.outputs, self.own)
        self.names = dict(zip(region.inputs, names, strict=True))
        self.T, self.room = C_TYPES[self.first.dtype], Workspace()
        self.result = "result" if self.place is None else self.outs[self.place]
        *_, rows, self.length = self.first.shape
        self.nest = Nest(self.between, [self.second.inputs[0]]).merged()
        self.masks = masks(self.nest, [self.first]) if self.length >= LONG else []
        shift(self.nest, [self.first], as_polynomial(Loop("first_row", rows)) * self.length)

    def plan(self, record, kind=ProductPlan) -> ProductPlan:
        """The plan of a product: its right operand is read in place, or packed into panels."""
        x, y = record.inputs
        p = product_of(x.spec, y.spec, record.spec, **record.attrs, keep_order=True)
        how = "rows" if p.n.y == 1 else "panels"
        names = self.names.get(x, "strip"), self.names[y], self.result
        return kind(p, self.T, how, names, False, None, record.shape[-1], self.room)

    def emit(self, name: str) -> Kernel:
        """The kernel."""
        one = self.plan(self.first, self.kinds[bool(self.masks)])
        two = self.plan(self.second)
        helpers = [
            h for plan in (one, two) if plan.how == "panels" for h in microkernel.panels(self.T)
        ]
        body = self.body(one, two)
        helpers += microkernel.blocks(body)
        takes = [*self.parameters, *(["char *work"] if self.room.size else [])]
        text = c_function(name, takes, body)
        return Kernel(name, text, self.room.size, tuple(helpers))

    def body(self, one: ProductPlan, two: ProductPlan) -> str:
        """The loops over the batch and over strips."""
        (x, y, _), (_, z, out), T, p = one.names, two.names, self.T, one.p
        text = f"    /* {one.p.m.size} rows of {one.p.n.size}, {one.block} at a time */\n"
        if self.place is None:
            text += f"    {T} *result = {self.room.array(T, self.second.spec.size)};\n"
        own = one.threads == "batch"
        turns = [pack_panels(one, y, "b", own), pack_panels(two, z, "d", own, "panels_2")]
        inside = (
            f"const {T} *a = {x}{offset(p.batch, 'x')}, *b = {y}{offset(p.batch, 'y')};\n"
            f"const {T} *d = {z}{offset(two.p.batch, 'y')};\n"
            f"{T} *c = {out}{offset(two.p.batch, 'out')};\n"
        )
        inside += "".join(turn for _, turn in turns)
        inside += row_blocks(one, lambda first, rows: self.strip(one, two, first, rows), "c")
        text += "".join(before for before, _ in turns)
        if p.count > 1:
            inside = loop("i", p.count, inside, pragma=PARALLEL if own else "")
        return text + indent(inside, 4)

    def strip(self, one: ProductPlan, two: ProductPlan, first: str, rows: int) -> str:
        """One strip: the first product, its epilogue, the second product and its epilogue."""
        length, m = self.length, one.p.m
        start = first if one.p.count == 1 else f"i * {m.size} + {first}"
        a, b = plus("a", first, m.x), "panels" if one.how == "panels" else "b"
        c, d = plus("c", first, two.p.m.out), "panels_2" if two.how == "panels" else "d"
        text = f"const int64_t first_row = {start}, last_row = first_row + {rows};\n"
        text += f"{stack_array(self.T, 'strip', rows * length)}\n"
        columns = "columns" if self.masks else ""
        text += self.visible_columns() if self.masks else ""
        text += tiles(one, a, b, "strip", "0", rows, columns)
        text += self.rows(self.nest, ["strip"], "strip", length, columns)
        text += tiles(two, "strip", d, c, "0", rows, terms=columns)
        return text + self.finish(two)

    def finish(self, two: ProductPlan) -> str:
        """The epilogue of the second product."""
        if not self.after:
            return ""
        nest = Nest(self.after, self.region.outputs).merged()
        return self.rows(nest, self.outs, self.result, two.p.n.size)

    def writer(self, nest: Nest, targets: list[str], source: str, length: int) -> RowsWriter:
        """The writer of the epilogue of a product that lies at `source`."""
        names = [self.names.get(x, source) for x in nest.inputs]
        return RowsWriter(nest, names, targets, ("first_row", "last_row", length))

    def rows(self, nest: Nest, targets, source: str, length: int, columns: str = "") -> str:
        """The epilogue of a product that lies at `source`, for `columns` or all of its columns."""
        writer = self.writer(nest, targets, source, length)
        writer.ends = dict.fromkeys(nest.reduction_loops, columns) if columns else {}
        return f"{{\n{body_of(writer)}\n}}\n"

    def visible_columns(self) -> str:
        """The number of columns of a strip before the masked ones, rounded up to whole vectors. If
        a row is masked completely, all columns count.
        """
        w = self.writer(self.nest, ["strip"], "strip", self.length)
        n, whole, memo, tests = self.length, microkernel.WIDEST, {}, []
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
        w.put(f"columns = (columns + {whole - 1}) / {whole} * {whole};")
        w.put(f"if (columns > {n}) columns = {n};")
        return "\n".join(line[4:] for line in w.lines) + "\n"


def shift(nest: Nest, sources, by: Polynomial) -> None:
    """Subtract `by` from the indices into `sources` and into the results."""
    for node in nest.nodes():
        if node.kind == "load" and nest.loaded_input(node) in sources:
            node.index -= by
    nest.outputs = [(record, node, flat - by) for record, node, flat in nest.outputs]


def emit_back_to_back(record, name: str) -> Kernel:
    """The kernel of a group with two products. The second product lies in the memory of one of the
    results, or in the workspace.
    """
    return BackToBackGemm(record).emit(name)


GROUP_EMITTERS.append(GroupEmitter(is_chain, emit_back_to_back, in_place))
