"""C text of `product`: loops over the batch and over blocks of rows around a microkernel."""

from __future__ import annotations

from typing import NamedTuple

from ..engine.codegen.kernel import BLAS, C_TYPES, Kernel, emits, function, stack_array
from ..engine.codegen.kernel_schedule import following, pick
from ..engine.core import dtype as dt
from . import microkernel
from .product import Product, pick_algorithm, product_of

SERIAL = 200_000
"""Multiplications below which a second thread does not pay."""

BLOCK = 64
"""Rows that one thread computes before their epilogue."""

DEEP = 2048
"""Terms that are summed in one pass: this many rows of a panel stay in the second-level cache."""

ON_STACK = 1 << 16
"""Most bytes of panels on the stack of a thread."""

PARALLEL = "#pragma omp parallel for if (parallel: threads > 1) num_threads(threads)\n"
UNEVEN = PARALLEL.replace("\n", " schedule(dynamic)\n")
"""Pragmas for blocks of rows of equal and of unequal cost."""


class Workspace:
    """Allocates arrays in the workspace of a kernel."""

    def __init__(self):
        self.size = 0

    def array(self, T: str, elements: int) -> str:
        """C text of a pointer to `elements` of type T, in memory even if there are none."""
        at, width = self.size, 8 if T == "double" else 4
        self.size += -(-max(elements, 1) * width // 64) * 64
        return f"({T} *)(work + {at})"


class ProductPlan(NamedTuple):
    """The choices for the text of one product."""

    p: Product
    T: str
    how: str
    names: tuple[str, str, str]  # of x (the rows' operand), y and the result
    add: bool
    rows: object  # an epilogue for blocks of rows, or None
    last: int  # size of the last axis of the result
    room: Workspace

    parallel = PARALLEL  # how threads share blocks of rows

    @property
    def threads(self) -> str:
        """The axis that threads share: "batch", "rows", "columns" or none."""
        if self.p.work < SERIAL or self.how == "blas":
            return ""
        can = {"batch": self.p.count > 1, "rows": self.p.m.size >= 16, "columns": self.wide}
        return pick("threads", self.rule, ["", *(axis for axis, there in can.items() if there)])

    @property
    def wide(self) -> bool:
        """Whether threads may share columns: there are enough, and no epilogue needs whole rows."""
        return self.p.n.size >= 6 * microkernel.WIDEST and not self.rows and self.how != "dots"

    @property
    def rule(self) -> str:
        """The axis that threads share by default."""
        if self.p.count >= 4 or (self.p.count > 1 and self.p.m.size < 16):
            return "batch"
        if self.p.m.size >= 16:
            return "rows"
        return "columns" if self.wide else ""

    @property
    def block(self) -> int:
        m = self.p.m.size
        rule = min(BLOCK, -(-m // 32) * 8) if self.threads == "rows" else BLOCK
        return pick("block", rule, [b for b in (16, 32, 64, 128, 256) if b < m])

    @property
    def deep(self) -> int:
        """Terms that are summed in one pass."""
        k = self.p.k.size
        return pick("deep", DEEP, [d for d in (128, 256, 512, 1024, 2048, 4096) if d < k])


def emit(record, name, rows=None, parameters=(), add=False) -> Kernel:
    """The kernel of a `product`; with `add` it adds to the result that is there."""
    (x, y), out, attrs = (e.spec for e in record.inputs), record.spec, record.attrs
    if not out.size:
        return Kernel(name, function(record, name, "", parameters=parameters))
    p = product_of(x, y, out, **attrs, keep_columns=rows is not None)
    if out.dtype not in dt.FLOATS:
        body = plain_loops(p, out.dtype, add) + epilogue_after(rows, out)
        return Kernel(name, function(record, name, body, parameters=parameters))
    T, room, half = C_TYPES[out.dtype], Workspace(), out.dtype in dt.HALVES
    T = "float" if half else T
    names, before, after = ["in0", "in1"], "", ""
    if half:
        for k, spec in enumerate((x, y)):
            before += widen_input(room, f"in{k}", f"wide{k}", spec)
            names[k] = f"wide{k}"
    names = names[::-1] if p.exchanged else names
    target = "out0"
    if half or (p.n.size > 1 and p.n.out != 1):
        target, inner = "result", contiguous(p)
        elements = p.count * p.m.size * p.n.size
        before += f"    {T} *result = {room.array(T, elements)};\n"
        if add:
            before += copy_result(p, inner, out.dtype, "out0", "result", back=True)
        after, p = copy_result(p, inner, out.dtype, "out0", "result"), inner
    how = pick_algorithm(p, dt.float32.numpy if half else out.dtype)
    inline = fits_rows(p, out) and target == "out0" and how != "blas"
    plan = ProductPlan(
        p, T, how, (*names, target), add, rows if inline else None, out.shape[-1], room
    )
    loops, helpers = batch_loop(plan)
    body = f"    /* {describe(record)}: {how} */\n" + before + loops + after
    body += "" if inline else epilogue_after(rows, out)
    text = function(record, name, body, work=room.size > 0, parameters=parameters)
    return Kernel(name, text, room.size, helpers)


emits("product")(emit)


def describe(record) -> str:
    """The shapes, for a comment."""
    x, y = (e.spec for e in record.inputs)
    return f"{record.spec} from {x} and {y}"


def fits_rows(p: Product, out) -> bool:
    """Whether blocks of the product's rows are whole rows of the result, in order."""
    last = out.shape[-1] if out.ndim else 1
    return p.n.size == last and p.n.out <= 1 and (p.m.size == 1 or p.m.out == last)


def epilogue_after(rows, out) -> str:
    """The epilogue in a loop of its own, after the product."""
    if rows is None:
        return ""
    count = out.size // out.shape[-1]
    return (
        f"    for (int64_t row = 0; row < {count}; row += {BLOCK}) {{\n"
        f"        const int64_t end = row + {BLOCK} < {count} ? row + {BLOCK} : {count};\n"
        f"{indent(rows('row', 'end'), 8)}    }}\n"
    )


def indent(text: str, by: int) -> str:
    """A text with its lines indented."""
    return "".join(" " * by + line + "\n" if line else "\n" for line in text.splitlines())


# ---- the loops --------------------------------------------------------------------------------


def offset(axes, step: str) -> str:
    """C text: the offset of matrix number i of a batch."""
    terms, inner = [], 1
    for k, a in reversed(list(enumerate(axes))):
        index = "i" if inner == 1 else f"i / {inner}"
        index = index if k == 0 else f"({index}) % {a.size}" if inner > 1 else f"i % {a.size}"
        if getattr(a, step):
            terms.append(f"{index} * {getattr(a, step)}")
        inner *= a.size
    return "".join(f" + {t}" for t in terms[::-1])


def batch_loop(plan: ProductPlan) -> tuple[str, tuple[str, ...]]:
    """The text of a whole product and its helpers."""
    p, T = plan.p, plan.T
    x, y, out = plan.names
    if plan.how == "blas":
        without = plan._replace(how="rows" if p.n.y == 1 else "panels")
        with following(None):
            text, helpers = batch_loop(without)
        calls = indent(with_blas(plan), 8)
        return f"    if (blas_sgemm) {{\n{calls}    }} else {{\n{text}    }}\n", (BLAS, *helpers)
    before, inside = pack_panels(plan, y, "b", plan.threads == "batch")
    if p.count == 1:
        text, helpers = single_product(plan, x, y, out)
        return before + indent(text, 4), helpers
    text, helpers = single_product(plan, "a", "b", "c")
    inside = (
        f"const {T} *a = {x}{offset(p.batch, 'x')};\n"
        f"const {T} *b = {y}{offset(p.batch, 'y')};\n"
        f"{T} *c = {out}{offset(p.batch, 'out')};\n"
    ) + inside
    pragma = "    " + PARALLEL if plan.threads == "batch" else ""
    return (
        f"{before}{pragma}    for (int64_t i = 0; i < {p.count}; i++) {{\n"
        f"{indent(inside + text, 8)}    }}\n"
    ), helpers


def pack_panels(plan: ProductPlan, y: str, b: str, own: bool, panels="panels") -> tuple[str, str]:
    """Two texts that pack y into panels: one before the loop over the batch, and one inside it,
    where `b` is the matrix. `own`: each iteration needs its own memory.
    """
    p, T, room = plan.p, plan.T, plan.room
    if plan.how != "panels":
        return "", ""
    turn = f"panels_{microkernel.tile().suffix(T)}"
    turn += f"({p.n.size}, {p.k.size}, %s, {p.n.y}, {p.k.y}, {panels});\n"
    size = microkernel.panels_size(p.n.size, p.k.size)
    shared = not any(a.y for a in p.batch)
    if shared or not own:
        before = f"    {T} *{panels} = {room.array(T, size)};\n"
        return (before + "    " + turn % y, "") if shared else (before, turn % b)
    if size * (8 if T == "double" else 4) <= ON_STACK:
        text = f"{stack_array(T, panels, size)}\n"
    else:
        text = f"{T} *{panels} = {room.array(T, size * p.count)} + i * {size};\n"
    return "", text + turn % b


def single_product(plan: ProductPlan, a: str, b: str, c: str) -> tuple[str, tuple[str, ...]]:
    """The text of one product of matrices and its helpers."""
    p, T = plan.p, plan.T
    if plan.how == "dots":
        return by_dots(plan, a, b, c), microkernel.dots(T)
    helpers = microkernel.panels(T) if plan.how == "panels" else ()
    block = plan.block
    counts = (p.m.size,) if p.m.size <= block else (block, p.m.size % block)
    return by_rows(plan, a, b, c), (*helpers, *microkernel.blocks(T, *counts))


def epilogue(plan: ProductPlan, c: str, first: str, last: str) -> str:
    """C text of the epilogue of rows [first, last) of one matrix product."""
    if plan.rows is None:
        return ""
    if plan.p.count == 1:
        return plan.rows(first, last)
    row = f"const int64_t row = ({c} - {plan.names[2]}) / {plan.last};\n"
    return row + plan.rows(f"row + {first}", f"row + {last}")


def row_blocks(plan: ProductPlan, inside, c: str) -> str:
    """A loop over blocks of rows; `inside(first, rows)` is the text of one."""
    rows, block = plan.p.m.size, plan.block
    if rows <= block:
        return inside("0", rows) + epilogue(plan, c, "0", str(rows))
    if rows % block == 0:
        text = inside("m", block) + epilogue(plan, c, "m", f"m + {block}")
    else:
        text = (
            f"const int64_t end = m + {block} < {rows} ? m + {block} : {rows};\n"
            f"if (end < {rows}) {{\n{indent(inside('m', block), 4)}}} else {{\n"
            f"{indent(inside('m', rows % block), 4)}}}\n" + epilogue(plan, c, "m", "end")
        )
    pragma = plan.parallel if plan.threads == "rows" else ""
    loop = f"for (int64_t m = 0; m < {rows}; m += {block}) {{\n"
    return f"{pragma}{loop}{indent(text, 4)}}}\n"


def plus(pointer: str, index: str, step: int) -> str:
    """C text of a pointer moved by `index` steps."""
    return pointer if index == "0" else f"{pointer} + {index} * {step}"


def by_dots(plan: ProductPlan, a: str, b: str, c: str) -> str:
    p = plan.p
    return row_blocks(
        plan,
        lambda first, rows: (
            f"dots_{plan.T}({rows}, {p.n.size}, {p.k.size}, "
            f"{plus(a, first, p.m.x)}, {p.m.x}, {b}, {p.n.y},\n"
            f"           {plus(c, first, p.m.out)}, {p.m.out}, {p.n.out}, {int(plan.add)});\n"
        ),
        c,
    )


def by_rows(plan: ProductPlan, a: str, b: str, c: str) -> str:
    """Blocks of rows by tiles. For few rows and many columns, threads share columns."""
    p = plan.p
    if plan.threads != "columns":
        return row_blocks(plan, lambda first, rows: tiles(plan, a, b, c, first, rows), c)
    chunk, n = 3 * microkernel.tile().widest, p.n.size
    begin = "n" if plan.how == "rows" else f"n * {p.k.size}"
    b = "panels" if plan.how == "panels" else b
    text = f"const int64_t wide = {n} - n < {chunk} ? {n} - n : {chunk};\n"
    text += tiles(plan, a, f"{b} + {begin}", f"{c} + n", "0", p.m.size, "wide")
    return f"{PARALLEL}for (int64_t n = 0; n < {n}; n += {chunk}) {{\n{indent(text, 4)}}}\n"


def tiles(
    plan: ProductPlan, a, b, c, first: str, rows: int, columns: str = "", terms: str = ""
) -> str:
    """Calls that compute `rows` rows from `first` on, for `columns` and `terms`, or all of them."""
    p, T, t, most = plan.p, plan.T, microkernel.tile(), plan.deep
    columns, terms = columns or str(p.n.size), terms or str(p.k.size)
    if plan.how == "panels":
        b = b if b.startswith("panels") else "panels"
        step, panel = t.panel(T), f"{t.panel(T)} * {p.k.size}"
    else:
        step, panel = str(p.k.y), t.panel(T)
    deep, add = terms, str(int(plan.add))
    if p.k.size > most:
        deep, add = f"({terms} - k < {most} ? {terms} - k : {most})", f"{add} || k > 0"
        a, b = f"{a} + k * {p.k.x}", f"{b} + k * {step}"

    def call(height: int, count, at: str) -> str:
        return (
            f"rows{height}_{t.suffix(T)}({count}, {columns}, {deep}, 1, "
            f"{plus(a, at, p.m.x)}, {p.m.x}, {p.k.x}, 0,\n"
            f"    {b}, {step}, 0, {panel}, {plus(c, at, p.m.out)}, {p.m.out}, {add});\n"
        )

    text, at = "", first
    for height, count in microkernel.heights(rows, t.tall):
        text += call(height, count, at)
        at = str(count) if at == "0" else f"({at} + {count})"
    if p.k.size > most:
        loop = f"for (int64_t k = 0; k < {terms}; k += {most}) {{\n"
        return f"{loop}{indent(text, 4)}}}\n"
    return text


def with_blas(plan: ProductPlan) -> str:
    """The calls of OpenBLAS."""
    p, (x, y, out) = plan.p, plan.names
    row_major, straight, turned = 101, 111, 112
    x_how = f"{straight if p.k.x == 1 else turned}, ", p.m.x if p.k.x == 1 else p.k.x
    y_how = f"{straight if p.n.y == 1 else turned}, ", p.k.y if p.n.y == 1 else p.n.y
    return (
        f"for (int64_t i = 0; i < {p.count}; i++)\n"
        f"    blas_sgemm({row_major}, {x_how[0]}{y_how[0]}{p.m.size}, {p.n.size}, {p.k.size}, 1,\n"
        f"               {x}{offset(p.batch, 'x')}, {x_how[1]}, {y}{offset(p.batch, 'y')}, "
        f"{y_how[1]}, "
        f"{int(plan.add)}, {out}{offset(p.batch, 'out')}, {p.m.out});\n"
    )


# ---- other ways to store ----------------------------------------------------------------------


def contiguous(p: Product) -> Product:
    """The same product with a result that is contiguous, as [batch, rows, columns]."""
    inner, batch = p.m.size * p.n.size, []
    for a in reversed(p.batch):
        batch.insert(0, a._replace(out=inner))
        inner *= a.size
    return p._replace(batch=tuple(batch), m=p.m._replace(out=p.n.size), n=p.n._replace(out=1))


def copy_result(p: Product, inner: Product, dtype, outside: str, within: str, back=False) -> str:
    """C text that copies the result from `within` (with the strides of `inner`) to `outside`."""
    to = f"{outside}[m * {p.m.out} + n * {p.n.out}{offset(p.batch, 'out')}]"
    source = f"{within}[m * {inner.m.out} + n{offset(inner.batch, 'out')}]"
    to, source = (source, to) if back else (to, source)
    if dtype == dt.bfloat16.numpy:
        source = f"{'widen' if back else 'narrow'}({source})"
    return (
        f"    for (int64_t i = 0; i < {p.count}; i++)\n"
        f"        for (int64_t m = 0; m < {p.m.size}; m++)\n"
        f"            for (int64_t n = 0; n < {p.n.size}; n++) {to} = {source};\n"
    )


def widen_input(room: Workspace, given: str, name: str, spec) -> str:
    """C text that converts a half-precision input to float32, in the workspace."""
    value = f"widen({given}[i])" if spec.dtype == dt.bfloat16.numpy else f"{given}[i]"
    return (
        f"    float *{name} = {room.array('float', spec.size)};\n"
        f"    for (int64_t i = 0; i < {spec.size}; i++) {name}[i] = {value};\n"
    )


def plain_loops(p: Product, dtype, add: bool) -> str:
    """C text of plain loops, for integers and booleans. Sums wrap around, as in NumPy."""
    x, y = ("in1", "in0") if p.exchanged else ("in0", "in1")
    to = f"out0[m * {p.m.out} + n * {p.n.out}{offset(p.batch, 'out')}]"
    a = f"{x}[m * {p.m.x} + k * {p.k.x}{offset(p.batch, 'x')}]"
    b = f"{y}[n * {p.n.y} + k * {p.k.y}{offset(p.batch, 'y')}]"
    term = f"total |= {a} & {b}" if dtype.kind == "b" else f"total += (uint64_t){a} * (uint64_t){b}"
    return (
        f"    for (int64_t i = 0; i < {p.count}; i++)\n"
        f"        for (int64_t m = 0; m < {p.m.size}; m++)\n"
        f"            for (int64_t n = 0; n < {p.n.size}; n++) {{\n"
        f"                uint64_t total = {to if add else 0};\n"
        f"                for (int64_t k = 0; k < {p.k.size}; k++) {term};\n"
        f"                {to} = total;\n"
        f"            }}\n"
    )
