"""Attention as one kernel: tiles of scores stay on the chip, and no matrix of scores is stored.

It computes the groups that `passes.strip_products` makes, as the strips of a CPU do, by tiles:

    a block of threads has up to 64 rows; for (each 64 columns)
        scores = a b;  a larger maximum shrinks what was added up before
        strip = exp(scores - maximum);  total += strip;  c += strip d

The backward has products that read its rows (dq), and products that sum over them (dk, dv). A first
kernel goes along the rows twice: for the sums of each row, which it stores, and then for dq. In a
second one a block has 64 columns and goes along all rows; nothing is added up by several blocks.
Both compute the scores again.

Columns that a mask hides in all rows of a tile are left out, as in `products.strip_products`.
Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf

from ...engine.codegen import scalar
from ...engine.codegen.accumulator import Accumulator, join
from ...engine.codegen.kernel import read_template
from ...engine.codegen.nest_kernel import signature
from ...engine.codegen.scalar import CannotWrite, ScalarText, statements
from ...engine.codegen.writer import NestWriter, for_head
from ...engine.core import dtype as dt
from ...engine.passes.nest import NestNode, reach
from ..products.online_softmax import add, fold
from ..products.product import Product
from ..rows.collapsed_loops import declare_loops, digits, flat_name
from .attention_parts import FLOAT, TILE, TileAttention, TileProduct, choose_tiling, fits_tiles
from .calls import CUDA_TYPES, KernelCalls, Operand, operands
from .nest import TAKEN
from .teams import BUSY, index_type
from .text import find_used, launch

TILES = read_template("tiles.cu", __file__)

HEIGHTS = 64, 32, 16
"""Rows of a tile: the first height is taken that keeps a GPU busy, or the last one."""

WORDS = {"room", "strips", "first", "start", "batch", "row", "row_at", "column_at", "live", "shown",
         "block", "score", "a", "b"}  # fmt: skip


class TileKernel:
    """One kernel: its blocks have `height` rows of the scores, or columns (`by_rows` is false), and
    go along the others. `sums` are the names of the sums of rows in the workspace.
    """

    def __init__(self, whole: TileAttention, by_rows: bool, sums: list[str]):
        self.whole, self.nest, self.by_rows, self.sums = whole, whole.nest, by_rows, sums
        self.readers = [r for r in whole.readers if r.sums is not by_rows]
        self.w = w = NestWriter(self.nest, whole.names, [])
        w.taken |= dict.fromkeys(WORDS | {*sums}, 0)
        self.T = index_type(self.nest)
        (self.along,) = self.nest.reduction_loops
        self.helpers = {TILES: None}
        self.size, self.others = whole.rows, whole.columns
        if not by_rows:
            self.size, self.others = self.others, self.size
        count = whole.leads[0].p.count
        busy = (h for h in HEIGHTS if -(-self.size // h) * count >= BUSY)
        self.height = next(busy, HEIGHTS[-1])
        self.tiles = -(-self.size // self.height)
        self.blocks = self.tiles * count
        widest = max((r.p.n.size for r in self.readers), default=0)
        self.tiling = choose_tiling(whole.dtype, self.height, widest)
        self.scores = TILE // self.tiling.across
        self.threads = self.tiling.across, self.height // self.tiling.tall
        w.known = {n: number(f"scores_{k}[a][b]") for n, k in whole.loads.items()}

    # ---- loops -------------------------------------------------------------------------------

    @contextmanager
    def unroll(self, name: str, count: int) -> Iterator[None]:
        """A loop that becomes as many copies of what is within it."""
        self.w.put("#pragma unroll")
        with self.w.block(for_head(name, 0, count, 1, "int")):
            yield

    @contextmanager
    def each_own(self) -> Iterator[None]:
        """The loop over this thread's rows of the tile."""
        with self.unroll("a", self.tiling.tall):
            self.declare(self.by_rows, "first + Tiles::row(a)")
            yield

    @contextmanager
    def each_other(self) -> Iterator[None]:
        """The loop over this thread's columns of the tile."""
        with self.unroll("b", self.scores):
            self.declare(not self.by_rows, "start + Tiles::column(b)")
            if self.checked:
                self.w.put(f"const bool live = {self.inside()};")
            yield

    def declare(self, is_row: bool, at: str) -> None:
        """Declare where the scores' row, or column, is; one beyond the last stands for that."""
        size, name = (self.whole.rows, "row") if is_row else (self.whole.columns, "column")
        place = f"({name}_at < {size} ? {name}_at : {size - 1})" if size % TILE else f"{name}_at"
        self.w.put(f"const int {name}_at = {at};")
        if not is_row:
            self.w.put(f"const {self.T} {self.along.name} = {place};")
            return
        self.w.put(f"const {self.T} {self.row_name} = batch * {size} + {place};")
        self.w.put(*declare_loops(self.T, self.row_name, self.nest.parallel_loops))

    def inside(self) -> str:
        """The condition that a score is inside the matrix."""
        sizes = ("row_at", self.whole.rows), ("column_at", self.whole.columns)
        return " && ".join(f"{at} < {size}" for at, size in sizes if size % TILE)

    @property
    def checked(self) -> bool:
        """Whether a tile has places outside the matrix."""
        return bool(self.inside())

    def where_live(self, x: ScalarText, other: float) -> ScalarText:
        """A value inside the matrix, and another one outside."""
        return scalar.C.where(ScalarText("live", (), bool), x, other) if self.checked else x

    def if_live(self):
        """Within it, statements are for scores inside the matrix."""
        return self.w.block("if (live)") if self.checked else nullcontext()

    @contextmanager
    def walk(self, roots) -> Iterator[None]:
        """The loop along the tiles that `roots` need, when their scores are known."""
        nodes = reach(roots, lambda n: n not in self.w.known)
        with self.w.block(for_head("start", 0, self.others, TILE, "int")):
            if self.whole.masks:
                self.skip_hidden()
            for k, lead in enumerate(self.whole.leads):
                if any(self.whole.loads.get(n) == k for n in nodes):
                    self.multiply(k, lead)
            yield

    def skip_hidden(self) -> None:
        """Go on with the next tile if a mask hides this one, unless a row is hidden completely."""
        w, memo, tests = self.w, {}, []
        for node, hidden in self.whole.masks:
            mask = w.text(node, memo)
            tests.append(mask != hidden if node.dtype in dt.FLOATS else ~mask if hidden else mask)
        lines, seen = statements(tests, lambda: w.fresh("t"))
        maximum, seen = w.known.get(self.whole.softmax.maximum), " && ".join(seen)
        if maximum is not None:
            seen = f"{seen} || {maximum.template} == -INFINITY"
        w.put("bool shown = false;")
        with self.each_own(), self.each_other():
            w.put(*lines, f"shown |= {'live && ' * self.checked}({seen});")
        w.put("if (!__syncthreads_or(shown)) continue;")

    @property
    def row_name(self) -> str:
        """The variable that counts all rows."""
        return flat_name(self.nest.parallel_loops, "row")

    def multiply(self, k: int, lead: TileProduct) -> None:
        """The tile of scores number k."""
        (_, m, n, terms, _), w = lead.p, self.w
        x = f"x_{k}", "x", m, self.whole.rows
        y = f"y_{k}", "y", n, self.whole.columns
        sides, lanes = [], []
        for (name, of, lines, size), at in zip((x, y) if self.by_rows else (y, x),
                                               ("first", "start"), strict=True):  # fmt: skip
            step = getattr(lines, of)
            start = f"{name} + {at} * (int64_t){step}"
            sides.append(f"{start}, {step}, {getattr(terms, of)}, {size} - {at}")
            lanes.append(lead.lanes(of, self.whole.dtype))
        call = "Tiles::multiply<{}, {}>".format(*lanes)
        w.put(f"float scores_{k}[{self.tiling.tall}][{self.scores}] = {{}};")
        w.put(f"{call}(scores_{k}, room, {', '.join(sides)}, {terms.size});")

    # ---- the kernel --------------------------------------------------------------------------

    def begin(self) -> None:
        """Find the block's place, and the operands there."""
        w = self.w
        w.put(f"using Tiles = {self.tiling.name};",
              f"const int first = blockIdx.x % {self.tiles} * {self.height};",
              f"const int64_t batch = blockIdx.x / {self.tiles};")  # fmt: skip
        for k, lead in enumerate(self.whole.leads):
            w.put(f"const auto *x_{k} = {lead.x}{offset(lead.p, 'x')};")
            w.put(f"const auto *y_{k} = {lead.y}{offset(lead.p, 'y')};")
        for k, reader in enumerate(self.readers):
            w.put(f"const auto *z_{k} = {reader.y}{offset(reader.p, 'y')};")
            w.put(f"auto *out_{k} = {reader.out}{offset(reader.p, 'out')};")
            w.put(f"float sums_{k}[{self.tiling.tall}][{self.tiling.columns(reader)}] = {{}};")
        w.put("__shared__ Tiles::Room room;")
        if self.readers:
            w.put(f"__shared__ Tiles::Strip strips[{len(self.whole.read)}];")

    def lines(self) -> list[str]:
        """The statements of the kernel."""
        self.begin()
        if self.by_rows:
            self.reduce_rows()
        else:
            for fold, name in zip(self.whole.folds, self.sums, strict=True):
                self.w.known[fold] = number(f"{name}[{self.row_name}]")
        if self.readers and not (self.by_rows and self.whole.at_once):
            with self.walk(self.outputs()):
                with self.each_own(), self.each_other():
                    self.fill_strips()
                self.multiply_strips()
        for k, reader in enumerate(self.readers):
            step = reader.p.m.out
            self.w.put(f"store_rows<Tiles>(out_{k} + first * (int64_t){step}, {step}, sums_{k}, "
                       f"{self.size} - first, {reader.p.n.size});")  # fmt: skip
        return self.w.lines

    def outputs(self) -> list[NestNode]:
        """The values of the strips that products of this kernel read."""
        needed = {reader.x for reader in self.readers}
        outputs = enumerate(self.nest.outputs)
        return [node for k, (_, node, _) in outputs if f"strips[{k}]" in needed]

    def fill_strips(self) -> None:
        """Store the elements of strips, where the products read them."""
        w, needed, memo = self.w, self.outputs(), {}
        stored = [k for k, (_, node, _) in enumerate(self.nest.outputs) if node in needed]
        weights = [self.where_live(w.text(self.nest.outputs[k][1], memo), 0.0) for k in stored]
        lines, values = statements([scalar.cast(x, FLOAT) for x in weights], lambda: w.fresh("t"))
        w.put(*lines)
        w.put(*(f"Tiles::put(strips[{k}], a, b, {x});" for k, x in zip(stored, values)))

    def multiply_strips(self) -> None:
        for k, reader in enumerate(self.readers):
            step, terms = reader.p.k.y, reader.p.k.size
            call = f"Tiles::multiply_strip<{reader.lanes('y', self.whole.dtype)}>"
            y = f"z_{k} + start * (int64_t){step}, {step}, {reader.p.n.size}, {terms} - start"
            self.w.put(f"{call}(sums_{k}, room, {reader.x}, {y});")

    # ---- reductions of rows ------------------------------------------------------------------

    def reduce_rows(self) -> None:
        """Compute the reductions of this block's rows, and store them for a kernel of columns."""
        self.reduce_online()
        rest = [n for n in self.whole.folds if n not in self.w.known]
        for stage in sorted({n.stage for n in rest}):
            self.reduce_stage([n for n in rest if n.stage == stage])
        if self.sums:
            with self.each_own(), self.w.block(f"if (threadIdx.x == 0 && row_at < {self.size})"):
                for node, name in zip(self.whole.folds, self.sums, strict=True):
                    self.w.put(f"{name}[{self.row_name}] = {self.w.known[node].template};")

    def declare_array(self, name: str, value: str) -> str:
        """The name of an array of a number for each of this thread's rows."""
        name = self.w.fresh(name)
        self.w.put(f"float {name}[{self.tiling.tall}];")
        with self.unroll("a", self.tiling.tall):
            self.w.put(f"{name}[a] = {value};")
        return f"{name}[a]"

    def join_lanes(self, f: Accumulator) -> None:
        """Join the accumulators of the threads that share a row; each gets the joined one."""
        self.helpers[join(f.op, f.dtype)] = None
        call = f"over_warp<{f.type}, join_{f.op.name}_{f.type}, {self.tiling.across}>"
        self.w.put(f"{f.name} = {call}({f.name});")

    def reduce_stage(self, nodes: list[NestNode]) -> None:
        """A walk for reductions whose terms are known."""
        w = self.w
        folds = [Accumulator(n, "") for n in nodes]
        for f in folds:
            f.name = self.declare_array(f.op.name, f.identity)
        with self.walk([n.args[0] for n in nodes]), self.each_own(), self.each_other():
            memo: dict = {}
            with self.if_live():
                w.assign([(f.name, f.combine(w.text(f.node.args[0], memo), f.name), f.dtype)
                          for f in folds])  # fmt: skip
        with self.unroll("a", self.tiling.tall):
            for f in folds:
                self.join_lanes(f)
        w.known |= {f.node: number(f.name) for f in folds}

    def reduce_online(self) -> None:
        """The walk of a softmax: a larger maximum shrinks what was added up before; and the strips,
        if they are multiples of it.
        """
        whole, w, (maximum, power, total, quotient) = self.whole, self.w, self.whole.softmax
        top = self.declare_array("top", "-INFINITY")
        totals = {n: self.declare_array("total", "0") for n in whole.online}
        writes = self.readers if whole.at_once else []
        roots = [maximum.args[0], *(n.args[0] for n in totals), *(self.outputs() if writes else ())]
        before = dict(w.known)
        with self.walk(roots):
            with self.each_own():
                block = Accumulator(maximum, "block")
                w.put(f"float score[{self.scores}], block = {block.identity};")
                with self.each_other():
                    x = self.where_live(w.text(maximum.args[0], {}), -inf)
                    w.assign([("score[b]", x, FLOAT)])
                    w.assign([("block", block.combine(number("score[b]"), "block"), FLOAT)])
                self.join_lanes(block)
                names = [w.fresh(name) for name in ("maximum", "shift", "factor")]
                values = fold(scalar.C, number(top), number("block"))
                w.assign(
                    [(f"const float {n}", x, FLOAT) for n, x in zip(names, values, strict=True)]
                )
                new, shift, factor = map(number, names)
                grown = [(name, add(number(name), factor, 0.0), FLOAT) for name in totals.values()]
                w.assign([(top, new, FLOAT), *grown])
                w.known[maximum.args[0]] = number("score[b]")
                w.known[power] = w.known[quotient] = scalar.C.exp(number("score[b]") - shift)
                with self.each_other():
                    memo: dict = {}
                    with self.if_live():
                        w.assign([(name, number(name) + w.text(n.args[0], memo), FLOAT)
                                  for n, name in totals.items()])  # fmt: skip
                    if writes:
                        self.fill_strips()
                for k, reader in enumerate(writes):
                    with self.unroll("n", self.tiling.columns(reader)):
                        sum_ = f"sums_{k}[a][n]"
                        w.assign([(sum_, add(number(sum_), factor, 0.0), FLOAT)])
            if writes:
                self.multiply_strips()
        w.known = before | {maximum: number(top)} | {n: number(x) for n, x in totals.items()}
        with self.unroll("a", self.tiling.tall):
            for n, name in totals.items():
                self.join_lanes(Accumulator(n, name))
            for n, name in totals.items():
                if n is not total:
                    w.put(f"{name} /= {totals[total]};")
            for k, reader in enumerate(writes):
                with self.unroll("n", self.tiling.columns(reader)):
                    w.put(f"sums_{k}[a][n] /= {totals[total]};")


def number(text: str) -> ScalarText:
    """A variable of the kernel."""
    return ScalarText(text, (), FLOAT)


def offset(p: Product, of: str) -> str:
    """Where the matrix of this block begins in an operand: the batch's digits times its steps."""
    places = zip(digits("batch", [a.size for a in p.batch]), p.batch, strict=True)
    steps = ((place, getattr(a, of)) for place, a in places)
    return "".join(f" + {place} * {step}" for place, step in steps if step)


def emit_attention(record, name: str) -> KernelCalls:
    """The kernel of rows; if products sum over these, the kernel of columns, too."""
    region = record.attrs["region"]
    if not fits_tiles(region):
        raise CannotWrite("such products around a nest")
    names, outs, parameters = signature(record, region.outputs, {*WORDS, *TAKEN}, CUDA_TYPES)
    whole = TileAttention(region, names, outs)
    count = whole.leads[0].p.count
    summing = any(reader.sums for reader in whole.readers)
    sums = [f"row_{k}" for k in range(len(whole.folds))] if summing else []
    size = -(-4 * count * whole.rows // 64) * 64
    places = [Operand("work", 0, k * size) for k in range(len(sums))]
    calls = []
    for by_rows in (True, False)[: 1 + summing]:
        kernel = TileKernel(whole, by_rows, sums)
        lines = kernel.lines()
        kind = "" if by_rows else "const "
        declared = [*parameters, *(f"{kind}float *{name_}" for name_ in sums)]
        declared, memory = find_used(declared, [*operands(record), *places], lines)
        blocks, threads = (
            (kernel.blocks, 1),
            (kernel.tiling.across, kernel.height // kernel.tiling.tall),
        )
        suffix = "" if by_rows else "_columns"
        calls.append(
            launch(name + suffix, declared, lines, blocks, threads, memory, kernel.helpers)
        )
    return KernelCalls(tuple(calls), size * len(sums))
