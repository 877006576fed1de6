"""The kernel of products around a loop nest: strips of rows stay in the cache.

for (each batch)
    for (each strip of rows)
        strips = a b;  the nest of these rows;  then for each product after it
            c[rows] = strip d                        (the product reads the columns of the strip)
            c += stripᵀ d[rows]                      (it sums over the rows)

A mask may hide the last columns of all rows of a strip, which then ends before them, as in
`back_to_back_gemm`.
"""

from __future__ import annotations

from ..engine.codegen.kernel import C_TYPES, GROUP_EMITTERS, GroupEmitter, Kernel, stack_array
from ..engine.codegen.kernel_schedule import pick
from ..engine.codegen.nest_kernel import readable_name, unique_name
from ..engine.core.polynomial import as_polynomial
from ..engine.core.symbols import Loop
from ..engine.passes.nest import Nest
from ..passes.masks import masks
from ..passes.strip_products import is_strips, parts, sums_rows
from . import microkernel
from .back_to_back_gemm import LONG, OWN, BackToBackGemm, shift
from .c_text import PARALLEL, Workspace, indent
from .finish import NOTHING
from .matmul import offset, pack_panels, plus, row_blocks, tiles
from .product import product_of
from .product_plan import SERIAL, ProductPlan
from .rows_writer import RowsWriter

STRIP = 1 << 18
"""Most bytes of a strip."""

ROWS = 64
"""Most rows of a strip."""


WORDS = ("a", "b", "c", "panels", "strip")
"""Names that the text uses itself, each with a number."""


def height_of_sums() -> int:
    """Rows of a tile of a product that sums over a strip's rows: columns of the strip, of which
    those before masked ones are a multiple of WIDEST.
    """
    tall = microkernel.tile().tall
    return tall if microkernel.WIDEST % tall == 0 else 4


class Strips(ProductPlan):
    """The plan of a product before the nest."""

    __slots__ = ()

    @property
    def threads(self) -> str:
        """Threads share the batch: strips add to the same results."""
        return "batch" if self.p.count > 1 and self.p.work >= SERIAL else ""

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return 8 if self.T == "double" else 4

    @property
    def block(self) -> int:
        most = max(min(ROWS, STRIP // (self.p.n.size * self.width) // 8 * 8), 8)
        return pick("strip", most, [n for n in (8, 16, 32) if n < most])


class StripProducts(BackToBackGemm):
    """Writes the text of the kernel."""

    def __init__(self, record):
        self.region = region = record.attrs["region"]
        self.leads, between, self.readers = parts(region)
        taken = OWN | {f"{word}_{k}" for word in WORDS for k in range(len(region.records))}
        self.names = {
            x: unique_name(readable_name(y), taken)
            for x, y in zip(region.inputs, record.inputs, strict=True)
        }
        self.outs = [unique_name(f"{r.op.name}_", taken) for r in region.outputs]
        first = self.leads[0]
        self.T, self.room = C_TYPES[first.dtype], Workspace()
        *_, rows, self.length = first.shape
        read = dict.fromkeys(x for r in self.readers for x in r.inputs if x in {*between})
        self.nest = Nest(between, [*read]).merged()
        self.masks = masks(self.nest, self.leads) if self.length >= LONG else []
        shift(self.nest, self.leads, as_polynomial(Loop("first_row", rows)) * self.length)
        self.strips = {x: f"strip_{k}" for k, x in enumerate(self.leads)}
        self.choose_strips(read)

    def choose_strips(self, read) -> None:
        """Store each result of the nest in the strip of a product, or in a new strip."""
        free, pairs = {*self.leads}, self.nest.in_place()
        for k, x in enumerate(read):
            over = next((y for j, y in pairs if j == k and y in free), None)
            self.strips[x] = self.strips[over] if over else f"strip_{len(self.leads) + k}"
            free -= {over}

    def emit(self, name: str) -> Kernel:
        """The kernel."""
        leads = [self.lead(r) for r in self.leads]
        readers = [self.reader(r, out) for r, out in zip(self.readers, self.outs, strict=True)]
        helpers = [*microkernel.panels(self.T)] if any(p.how == "panels" for p in leads) else []
        body = self.body(leads, readers)
        helpers += microkernel.blocks(body)
        takes = [f"const {C_TYPES[x.dtype]} *{n}" for x, n in self.names.items()]
        takes += [f"{self.T} *{n}" for n in self.outs]
        takes += ["char *work"] if self.room.size else []
        text = f"static void {name}({', '.join(takes)})\n{{\n{body}}}\n"
        return Kernel(name, text, self.room.size, tuple(helpers))

    def lead(self, record) -> Strips:
        """The plan of a product before the nest."""
        x, y = record.inputs
        p = product_of(x.spec, y.spec, record.spec, **record.attrs, keep_order=True)
        how = "rows" if p.n.y == 1 else "panels"
        names = self.names[x], self.names[y], self.strips[record]
        return Strips(p, self.T, how, names, False, None, record.shape[-1], self.room)

    def reader(self, record, out: str) -> ProductPlan:
        """The plan of a product after the nest: the strip is its left operand."""
        x, y = record.inputs
        p = product_of(x.spec, y.spec, record.spec, **record.attrs, keep_order=True)
        strip, other = (y, x) if p.exchanged else (x, y)
        names = self.strips[strip], self.names[other], out
        adds = sums_rows(record, strip)
        return ProductPlan(p, self.T, "rows", names, adds, None, record.shape[-1], self.room)

    def body(self, leads, readers) -> str:
        """The loops over the batch and over strips."""
        first, T, own = leads[0], self.T, leads[0].threads == "batch"
        count, rows = first.p.count, first.p.m.size
        text = f"    /* {rows} rows of {self.length}, {first.block} at a time */\n"
        inside = ""
        for k, plan in enumerate(leads):
            inside += f"const {T} *a_{k} = {plan.names[0]}{offset(plan.p.batch, 'x')};\n"
        for k, plan in enumerate([*leads, *readers]):
            inside += f"const {T} *b_{k} = {plan.names[1]}{offset(plan.p.batch, 'y')};\n"
            outside, within = pack_panels(plan, plan.names[1], f"b_{k}", own, f"panels_{k}")
            text += outside
            inside += within
        for k, plan in enumerate(readers):
            inside += f"{T} *c_{k} = {plan.names[2]}{offset(plan.p.batch, 'out')};\n"
            if plan.add:
                inside += (
                    f"for (int64_t m = 0; m < {plan.p.m.size}; m++) "
                    f"memset(c_{k} + m * {plan.p.m.out}, 0, {plan.p.n.size} * sizeof({T}));\n"
                )
        size = first.block * self.length
        for name in dict.fromkeys(self.strips.values()):
            if size * first.width <= STRIP:
                inside += f"{stack_array(T, name, size)}\n"
            else:
                inside += f"{T} *{name} = {self.room.array(T, size * count)} + i * {size};\n"
        inside += row_blocks(first, lambda at, rows: self.strip(leads, readers, at, rows), "")
        pragma = "    " + PARALLEL if own else ""
        loop = f"for (int64_t i = 0; i < {count}; i++) {{\n"
        return f"{text}{pragma}    {loop}{indent(inside, 8)}    }}\n"

    def strip(self, leads, readers, first: str, rows: int) -> str:
        """One strip: the products before the nest, the nest, the products after it."""
        start = f"i * {leads[0].p.m.size} + {first}"
        text = f"const int64_t first_row = {start}, last_row = first_row + {rows};\n"
        columns = "columns" if self.masks else ""
        text += self.visible_columns() if self.masks else ""
        for k, plan in enumerate(leads):
            b = f"panels_{k}" if plan.how == "panels" else f"b_{k}"
            a = plus(f"a_{k}", first, plan.p.m.x)
            text += tiles(plan, a, b, plan.names[2], "0", rows, columns)
        targets = [self.strips[record] for record, *_ in self.nest.outputs]
        text += self.rows(self.nest, targets, "", self.length, columns)
        for k, plan in enumerate(readers):
            b, c = f"b_{k + len(leads)}", f"c_{k}"
            if plan.add:
                text += self.add_rows(plan, plus(b, first, plan.p.k.y), c, rows, columns)
            else:
                c = plus(c, first, plan.p.m.out)
                text += tiles(plan, plan.names[0], b, c, "0", rows, terms=columns)
        return text

    def add_rows(self, plan: ProductPlan, b: str, c: str, rows: int, columns: str) -> str:
        """The part of a product that sums over rows: a row of it for each column of the strip."""
        p, t, tall = plan.p, microkernel.tile(), height_of_sums()
        count, panel = columns or str(p.m.size), t.panel(self.T)

        def call(height: int, at: str, many: str) -> str:
            return (
                f"rows{height}_{t.suffix(self.T)}({many}, {p.n.size}, {rows}, 1, "
                f"{plus(plan.names[0], at, p.m.x)}, {p.m.x}, {p.k.x}, 0,\n"
                f"    {b}, {p.k.y}, 0, {panel}, {plus(c, at, p.m.out)}, {p.m.out}, 1, 0, "
                f"{NOTHING});\n"
            )

        whole = f"({count} / {tall} * {tall})"
        text = call(tall, "0", whole)
        if p.m.size % tall:
            text += call(1, whole, f"{count} % {tall}")
        return text

    def writer(self, nest: Nest, targets: list[str], source: str, length: int) -> RowsWriter:
        """The writer of the nest of a strip."""
        names = [self.names.get(x) or self.strips[x] for x in nest.inputs]
        return RowsWriter(nest, names, targets, ("first_row", "last_row", length))


def emit_strip_products(record, name: str) -> Kernel:
    """The kernel of a group with products before and after its nest."""
    return StripProducts(record).emit(name)


GROUP_EMITTERS.append(GroupEmitter(is_strips, emit_strip_products, lambda record: []))
