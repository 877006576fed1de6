"""C text of `product`: loops over the batch and over blocks of rows around a microkernel."""

from __future__ import annotations

from functools import partial

from ...engine.codegen.kernel import C_TYPES, EMITTERS, Kernel, has_mixed_dtypes, stack_array
from ...engine.codegen.kernel_schedule import following
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.writer import for_head, least
from ...engine.core import dtype as dt
from ..c_text import SIZES, indent, loop, share_loop
from ..kernel_frame import FloatKernel, KernelFrame, writes
from ..open_sizes import count_of, is_open
from ..rows.collapsed_loops import digits
from . import grouped_tiles, microkernel
from .blas import BLAS
from .pairs import is_paired, pair_terms
from .product import Product, fits_rows, pick_algorithm, product_of
from .product_plan import Alone, ProductPlan

ON_STACK = 1 << 16
"""Most bytes of panels on the stack of a thread."""

FEW_HALVES = 2
"""Rows for which a matrix of half precision is widened as it is read in its order: for more of them
panels of it, if they are packed before the run, are faster."""

TOGETHER = 4
"""Rows that a batch reads in turn: as many streams as a processor follows at a time."""


@writes("product", "product_integer", "wide_product", frame=KernelFrame)
def multiply(frame: KernelFrame) -> Kernel:
    """The kernel of a product."""
    specs, out = [*(e.spec for e in frame.record.inputs), frame.out], frame.out
    p = product_of(*specs, **frame.record.attrs, keep_columns=frame.rows is not None)
    kernel = None if frame.adds else grouped_tiles.write_product(frame, p)
    if kernel is not None:
        return kernel
    if out.dtype not in dt.FLOATS:
        return grouped_tiles.write_plain(frame)
    if has_mixed_dtypes(frame.record) and out.dtype != dt.float32.numpy:
        raise CannotWrite("operands of several floating dtypes")
    frame = FloatKernel(*frame.how, paired=is_paired(frame, p))
    if frame.adds and frame.half:
        frame.text += frame.convert_array("result", "widen", "out0", out)
    return product_kernel(frame, p)


EMITTERS["product"].mixes = True  # of half precision and float32; `wide_product`, too


def product_kernel(frame: FloatKernel, p: Product) -> Kernel:
    """The kernel of a record that is one matrix product."""
    out, before, after = frame.target, "", ""
    if p.n.size > 1 and p.n.out != 1:
        inner = contiguous(p)
        out = frame.array("rows", p.count * p.m.size * p.n.size)
        before = copy_result(p, inner, out, frame.target) if frame.adds else ""
        after, p = copy_result(p, inner, frame.target, out), inner
    if frame.E == microkernel.PAIRS:
        how, stored, p = "panels", "bfloat16", pair_terms(frame, p)
    else:
        how, stored = read_halves(frame, p, pick_algorithm(p, frame.dtype))
    inline = fits_rows(p, frame.out) and not after and how != "blas"
    names = *(frame.names[::-1] if p.exchanged else frame.names), out
    rows, last = frame.inline if inline else None, frame.out.shape[-1]
    plan = Alone(p, frame.E, how, names, frame.adds, rows, last, frame.room, stored=stored)
    plan = pack_constant(frame, plan)
    if rows and frame.finish and (plan.how == "rows" or plan.packed):
        plan = plan._replace(rows=None, finish=frame.finish)
    loops, helpers = write_product(plan)
    frame.text = f"    /* {describe(frame.record)}: {plan.how} */\n{frame.text}"
    return frame.kernel(before + loops + after, helpers, done=inline)


def read_halves(frame: FloatKernel, p: Product, how: str) -> tuple[str, str]:
    """The algorithm, and the type of y in memory if y is half precision that it widens in
    registers, or packs as it is. Other inputs of half precision are widened before the loops.
    """
    right, stored, few = int(not p.exchanged), "", how in ("dots", "stream")
    for k, edge in enumerate(frame.record.inputs):
        if frame.half or edge.dtype not in dt.HALVES:
            continue
        constant = frame.is_constant(k) and p.m.size > FEW_HALVES
        few, packs = few and not constant, constant or p.n.y == 1
        if k == right and p.count == 1 and p.n.size > 1 and (few or packs):
            stored, how = C_TYPES[edge.dtype], how if few else "panels"
        else:
            frame.widen(k)
    return how, stored


def pack_constant(frame: FloatKernel, plan: ProductPlan) -> ProductPlan:
    """The plan of a product whose y, if it is constant, is packed into panels before the run."""
    p, (x, _, out) = plan.p, plan.names
    fewest = FEW_HALVES + 1 if plan.stored else microkernel.ROWS
    fewest = 1 if plan.T == microkernel.PAIRS else fewest
    right, tall = int(not p.exchanged), p.count == 1 and p.m.size >= fewest
    if not (plan.how in ("rows", "panels") and tall and p.n.size > 1 and frame.is_constant(right)):
        return plan
    plan = plan._replace(how="panels", names=(x, "panels", out), packed=True)
    frame.pack_panels(right, plan.tile, p.n.size, p.k.size, p.n.y, p.k.y, plan.T)
    return plan


def describe(record) -> str:
    """The shapes, for a comment."""
    x, y = (e.spec for e in record.inputs)
    return f"{record.spec} from {x} and {y}"


# ---- the loops --------------------------------------------------------------------------------


def offset(axes, step: str) -> str:
    """C text: the offset of matrix number i of a batch."""
    pairs = zip(digits("i", [a.size for a in axes]), axes, strict=True)
    return "".join(f" + {i} * {getattr(a, step)}" for i, a in pairs if getattr(a, step))


def write_product(plan: ProductPlan) -> tuple[str, tuple[str, ...]]:
    """The text of a whole product and its helpers."""
    p = plan.p
    x, y, out = plan.names
    if plan.how == "blas":
        without = plan._replace(how="rows" if p.n.y == 1 else "panels")
        with following(None):
            text, helpers = write_product(without)
        calls = indent(call_blas(plan), 8)
        alone = "blas_sgemm && threads == 1"  # its threads wait busily, beside those of kernels
        return f"    if ({alone}) {{\n{calls}    }} else {{\n{text}    }}\n", (BLAS, *helpers)
    if p.count == 1:
        text, helpers = write_matrix(plan, x, y, out)
        return indent(text, 4), helpers
    if axis := find_shared_rows(plan):
        return read_shared_rows(plan, axis)
    before, inside = pack_panels(plan, y, "b", plan.threads == "batch")
    text, helpers = write_matrix(plan, "a", "b", "c")
    inside = declare_matrices(plan) + inside
    loops = share_loop("i", p.count, inside + text, plan.pays * (plan.threads == "batch"))
    return before + indent(loops, 4), helpers


def declare_matrices(plan: ProductPlan, a: str = "a", b: str = "b", c: str = "c") -> str:
    """C text that declares matrix number i of each operand and of the result that has a name."""
    pointers = f"const {plan.T} *{a}" * bool(a), f"const {plan.T} *{b}", f"{plan.T} *{c}" * bool(c)
    steps = zip(pointers, plan.names, ("x", "y", "out"), strict=True)
    return "".join(f"{p} = {x}{offset(plan.p.batch, step)};\n" for p, x, step in steps if p)


def find_shared_rows(plan: ProductPlan) -> str:
    """The axis of y, "n" or "k", whose steps are rows in memory of which each matrix of the batch
    has a part; "" if there is none, or if y stays in the second-level cache. A cache
    stores keys and values so: a position is a row, and each text and each head has a part of it.
    """
    name = {"dots": "n", "stream": "k"}.get(plan.how, "")
    row = getattr(plan.p, name, None)
    within = row and plan.far and row.size % TOGETHER == 0 < row.size
    return name * bool(within and all(0 < a.y < row.y for a in plan.p.batch))


def read_shared_rows(plan: ProductPlan, name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a product whose matrices read some rows of y in turn: y is read from memory in
    its order. Threads share the matrices.
    """
    p, row = plan.p, getattr(plan.p, name)
    few = p._replace(**{name: row._replace(size=TOGETHER)})
    part = plan._replace(p=few, rows=None)
    pointers = (plus(x, "at", step) for x, step in zip("abc", row[1:]))
    add = f"{int(plan.add)} || at > 0" if name == "k" else ""
    fetch = f"__builtin_prefetch(b + (at + {TOGETHER} + row) * {row.y} + line, 0, 2);\n"
    wide = part.p.k.size if name == "n" else p.n.size
    fetch = loop("line", wide, fetch, step=64 // SIZES[plan.T])
    text = declare_matrices(plan) + loop("row", TOGETHER, fetch)
    text += block(part, *pointers, "0", p.m.size, add=add)
    within = for_head("i", "first", "last")
    text = loop("at", row.size, f"{within} {{\n{indent(text, 4)}}}\n", step=TOGETHER)
    if plan.rows:
        after = declare_matrices(plan) + write_epilogue(plan, "c", "0", str(p.m.size))
        text += f"{within} {{\n{indent(after, 4)}}}\n"
    end, pragma = ("threads", plan.pragma) if plan.threads == "batch" else ("1", "")
    first, last = (f"{k} * {p.count} / {end}" for k in ("part", "(part + 1)"))
    text = f"const int64_t first = {first}, last = {last};\n{text}"
    _, helpers = write_matrix(part, "a", "b", "c")
    return indent(loop("part", end, text, pragma=pragma), 4), helpers


def pack_panels(
    plan: ProductPlan, y: str, b: str, private: bool, panels: str = "panels"
) -> tuple[str, str]:
    """Two texts that pack y into panels: one before the loop over the batch, and one inside it,
    where `b` is the matrix. `private`: each iteration needs its own memory.
    """
    p, T = plan.p, plan.T
    if plan.how != "panels":
        return "", ""
    turn = microkernel.call_panels(T, plan.tile, p.n.size, p.k.size, "%s", p.n.y, p.k.y, panels)
    size = microkernel.panels_size(p.n.size, p.k.size, plan.tile)
    shared = not any(a.y for a in p.batch)
    if shared or not private:
        before = f"    {declare_panels(plan, panels, size)}"
        return (before + "    " + turn % y, "") if shared else (before, turn % b)
    return "", declare_panels(plan, panels, size, p.count, f" + i * {size}") + turn % b


def declare_panels(plan: ProductPlan, name: str, size: int, count: int = 1, at: str = "") -> str:
    """C text of an array of panels: on the stack, or one of `count` in the workspace."""
    if size * SIZES[plan.T] <= ON_STACK:
        return f"{stack_array(plan.T, name, size)}\n"
    return f"{plan.T} *{name} = {plan.room.array(plan.T, size * count)}{at};\n"


def write_matrix(plan: ProductPlan, a: str, b: str, c: str) -> tuple[str, tuple[str, ...]]:
    """The text of one product of matrices, and its helpers besides block functions."""
    p, T = plan.p, plan.T
    if plan.how in ("dots", "stream"):
        dots, few = microkernel.dots, microkernel.few
        helpers = dots(plan.E) if plan.how == "dots" else few(plan.E, p.m.size)
        return write_blocks(plan, a, b, c), helpers
    source = plan.stored or T
    helpers = microkernel.panels(plan.E, plan.tile, source) if plan.how == "panels" else ()
    slices = plan.how == "panels" and p.count == 1 and not plan.packed
    write = write_slices if slices else write_blocks
    return write(plan, a, b, c), helpers


def write_slices(plan: ProductPlan, a: str, b: str, c: str) -> str:
    """For some terms at a time, y is packed into panels; then blocks of rows, which threads share.
    The epilogue follows the last terms.
    """
    p, T, t, most = plan.p, plan.T, plan.tile, plan.deep
    panel, unsliced, span = t.panel(T), p.k.size <= most, plan.span
    at, terms = ("0", str(p.k.size)) if unsliced else ("k", "terms")
    add, start = str(int(plan.add)) + " || k > 0" * (not unsliced), plus(b, at, p.k.y)
    n, first = (str(p.n.size), c) if span == p.n.size else ("wide", plus(c, "at", p.n.out))
    start = start if n != "wide" else plus(start, "at", p.n.y)
    pack = partial(microkernel.call_panels, T, t, source=plan.stored)
    if plan.threads:
        many, here = least(f"{n} - n", panel), f"{start} + n * {p.n.y}"
        turn = pack(many, terms, here, p.n.y, p.k.y, f"panels + n * {terms}")
        text = loop("n", n, turn, pragma=plan.pragma, step=panel)
    else:
        text = pack(n, terms, start, p.n.y, p.k.y, "panels")

    def inside(row: str, rows: int) -> str:
        x = plus(plus(a, at, p.k.x), row, p.m.x), p.m.x, p.k.x, 0
        y = "panels", panel, 0, f"{panel} * {terms}"
        to = plus(first, row, p.m.out), p.m.out
        return microkernel.call_blocks(T, rows, n, terms, 1, x, y, to, add, t)

    if not unsliced and plan.rows:
        after, last = plan.rows, f"if (k + {most} >= {p.k.size})"
        plan = plan._replace(rows=lambda *span: f"{last} {{\n{indent(after(*span), 4)}}}\n")
    text += loop_over_rows(plan, inside, c)
    if not unsliced:
        terms = f"const int64_t terms = {least(f'{p.k.size} - k', most)};\n"
        text = loop("k", p.k.size, terms + text, step=most)
    if n == "wide":
        wide = f"const int64_t wide = {least(f'{p.n.size} - at', span)};\n"
        text = loop("at", p.n.size, wide + text, step=span)
    size = microkernel.panels_size(span, min(most, p.k.size), t)
    return declare_panels(plan, "panels", size) + text


def write_epilogue(plan: ProductPlan, c: str, first: str, last: str) -> str:
    """C text of the epilogue of rows [first, last) of one matrix product."""
    if plan.rows is None:
        return ""
    if plan.p.count == 1:
        return plan.rows(first, last)
    row = f"const int64_t row = ({c} - {plan.names[2]}) / {plan.last};\n"
    return row + plan.rows(f"row + {first}", f"row + {last}")


def loop_over_rows(plan: ProductPlan, inside, c: str) -> str:
    """A loop over blocks of rows; `inside(first, rows)` is the text of one."""
    rows, block = plan.p.m.size, plan.block
    if is_open(rows):
        text = f"const int64_t here = {least(f'{rows} - m', block)};\n"
        text += inside("m", count_of("here", block)) + write_epilogue(plan, c, "m", "m + here")
    elif rows <= block:
        return inside("0", rows) + write_epilogue(plan, c, "0", str(rows))
    elif rows % block == 0:
        text = inside("m", block) + write_epilogue(plan, c, "m", f"m + {block}")
    else:
        text = (
            f"const int64_t end = {least(f'm + {block}', rows)};\n"
            f"if (end < {rows}) {{\n{indent(inside('m', block), 4)}}} else {{\n"
            f"{indent(inside('m', rows % block), 4)}}}\n" + write_epilogue(plan, c, "m", "end")
        )
    pragma = plan.pragma if plan.threads == "rows" else ""
    return loop("m", rows, text, pragma=pragma, step=block)


def plus(pointer: str, index: str, step: int) -> str:
    """C text of a pointer moved by `index` steps."""
    return pointer if index == "0" else f"{pointer} + {index} * {step}"


def write_blocks(plan: ProductPlan, a: str, b: str, c: str) -> str:
    """Blocks of rows; or chunks of columns, which threads share, and the epilogue after them."""
    p, chunk = plan.p, plan.chunk
    if not chunk:
        return loop_over_rows(plan, lambda first, rows: block(plan, a, b, c, first, rows), c)
    text = f"const int64_t wide = {least(f'{p.n.size} - n', 'chunk')};\n"
    column = p.k.size if plan.packed else p.n.y
    inside = plan
    if plan.finish:
        inside = plan._replace(finish=plan.finish.of("n"))
    text += block(inside, a, plus(b, "n", column), plus(c, "n", p.n.out), "0", p.m.size, "wide")
    pragma = plan.pragma if plan.threads == "columns" else ""
    text = loop("n", p.n.size, text, pragma=pragma, step="chunk")
    return f"const int64_t chunk = {chunk};\n" + text + write_epilogue(plan, c, "0", str(p.m.size))


def block(
    plan: ProductPlan, a, b, c, first: str, rows: int, columns: str = "", add: str = ""
) -> str:
    """The call, or the calls, that compute `rows` rows from `first` on."""
    if plan.how not in ("dots", "stream"):
        return call_tiles(plan, a, b, c, first, rows, columns)
    p, many = plan.p, f"{rows}, " if plan.how == "dots" else ""
    x, to = plus(a, first, p.m.x), plus(c, first, p.m.out)
    name, step, last, x_step = f"few{rows}", p.k.y, "", f"{p.m.x}, {p.k.x}"
    if plan.how == "dots":
        name, step, last, x_step = "dots", p.n.y, f", {p.n.out}", f"{p.m.x}"
    return (
        f"{name}_{plan.E}({many}{columns or p.n.size}, {p.k.size}, {x}, {x_step}, {b}, {step},\n"
        f"           {to}, {p.m.out}{last}, {add or int(plan.add)}, {int(plan.far)});\n"
    )


def call_tiles(
    plan: ProductPlan, a, b, c, first: str, rows: int, columns: str = "", terms: str = ""
) -> str:
    """Calls that compute `rows` rows from `first` on, for `columns` and `terms`, or all of them."""
    p, T, t, most, k = plan.p, plan.T, plan.tile, plan.deep, plan.p.k.size
    if plan.how == "panels":
        b = b if b.startswith("panels") else "panels"
        step, panel = t.panel(T), f"{t.panel(T)} * {k}"
    else:
        step, panel = str(p.k.y), t.panel(T)
    terms, fetches = terms or str(k), plan.sliced and k > most
    ahead = f"(k + {most} < {terms} ? {most} * {step} : 0)" if fetches else "0"
    return microkernel.sum_terms(
        plan.E, rows, columns or p.n.size, k, 1, (plus(a, first, p.m.x), p.m.x, p.k.x, 0),
        (b, step, 0, panel, ahead), (plus(c, first, p.m.out), p.m.out), str(int(plan.add)), most,
        plan.finish, t, terms,
    )  # fmt: skip


def call_blas(plan: ProductPlan) -> str:
    """The calls of OpenBLAS."""
    p, (x, y, out) = plan.p, plan.names
    row_major, straight, turned = 101, 111, 112
    x_how = f"{straight if p.k.x == 1 else turned}, ", p.m.x if p.k.x == 1 else p.k.x
    y_how = f"{straight if p.n.y == 1 else turned}, ", p.k.y if p.n.y == 1 else p.n.y
    return (
        f"for (int64_t i = 0; i < {p.count}; i++)\n"
        f"    blas_sgemm({row_major}, {x_how[0]}{y_how[0]}{p.m.size}, {p.n.size}, {p.k.size}, 1,\n"
        f"               {x}{offset(p.batch, 'x')}, {x_how[1]}, {y}{offset(p.batch, 'y')}, "
        f"{y_how[1]}, {int(plan.add)}, {out}{offset(p.batch, 'out')}, {p.m.out});\n"
    )


# ---- other ways to store ----------------------------------------------------------------------


def contiguous(p: Product) -> Product:
    """The same product with a result that is contiguous, as [batch, rows, columns]."""
    inner, batch = p.m.size * p.n.size, []
    for a in reversed(p.batch):
        batch.insert(0, a._replace(out=inner))
        inner *= a.size
    return p._replace(batch=tuple(batch), m=p.m._replace(out=p.n.size), n=p.n._replace(out=1))


def copy_result(p: Product, inner: Product, to: str, source: str) -> str:
    """C text that copies the result: one of the two arrays has the strides of `inner`."""
    inside = f"[m * {inner.m.out} + n{offset(inner.batch, 'out')}]"
    outside = f"[m * {p.m.out} + n * {p.n.out}{offset(p.batch, 'out')}]"
    to, source = (name + (inside if name == "rows" else outside) for name in (to, source))
    return (
        f"    for (int64_t i = 0; i < {p.count}; i++)\n"
        f"        for (int64_t m = 0; m < {p.m.size}; m++)\n"
        f"            for (int64_t n = 0; n < {p.n.size}; n++) {to} = {source};\n"
    )
