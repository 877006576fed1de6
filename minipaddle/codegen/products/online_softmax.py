"""The online softmax: between two products rows are cut, too, and no strip is as long as a row.

for (each strip of rows)
    for (each block of columns)
        strip = a b;  a larger maximum shrinks what was added up before
        strip = exp(strip - maximum);  total += strip;  c += strip d
    c /= total

Columns that a mask hides in all rows of a strip are left out, as in `strip_products`.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao,
"FlashAttention-2", 2023, algorithm 1.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ...engine.codegen import scalar
from ...engine.codegen.accumulator import Accumulator, reduction_clauses
from ...engine.codegen.kernel import GROUP_EMITTERS, GroupEmitter, Kernel, stack_array
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.scalar import ScalarText
from ...engine.codegen.writer import for_head, least
from ...engine.core.slots import slot
from ...engine.ops import elementwise, reduction
from ...engine.passes.nest import Nest, NestNode
from ...passes.back_to_back_gemm import is_chain
from ...passes.epilogue import in_place
from ..c_text import loop
from ..rows.collapsed_loops import flat_name
from . import microkernel
from .matmul import call_tiles, plus
from .product import Product
from .strip_products import RESERVED, MaskedPlan, StripPlan, StripProducts

FROM = 512
"""Fewest columns of rows that are cut. Measured on one thread, 512 to 8,192 columns, widths 32 and
64: 0.76 to 1.0 of the time of whole rows, causal or not."""

ROWS = 32
"""Most rows of a strip."""

WIDTH, WIDTHS = 768, (192, 384)
"""Columns of a block, by default and for the tuner: multiples of the width of any panel."""


# ---- which groups -------------------------------------------------------------------------------


class SoftmaxNodes(NamedTuple):
    """The values of a softmax in a nest."""

    maximum: NestNode
    power: NestNode
    total: NestNode
    quotient: NestNode


def find_softmax(nest: Nest) -> SoftmaxNodes | None:
    """The softmax of a nest's rows, with which its reductions begin; None if there is none."""
    folds = folds_of(nest)
    if [n.of.op for n in folds[:2]] != [reduction.max, reduction.sum]:
        return None
    maximum, total = folds[:2]
    (power,) = total.args
    if not (applies(power, elementwise.exp) and applies(power.args[0], elementwise.subtract)):
        return None
    x, shift = power.args[0].args
    quotient = next((n for n in nest.nodes() if applies(n, elementwise.divide)
                     and n.args[0] is power and n.args[1] is total), None)  # fmt: skip
    if x is not maximum.args[0] or shift is not maximum or quotient is None:
        return None
    return SoftmaxNodes(maximum, power, total, quotient)


def softmax_of(nest: Nest) -> SoftmaxNodes | None:
    """The softmax of which a nest computes a multiple, and nothing else."""
    softmax, ((_, out, _), *more) = find_softmax(nest), nest.outputs
    plain = softmax is not None and not more and len(folds_of(nest)) == 2
    return softmax if plain and is_multiple(out, softmax.quotient) else None


def folds_of(nest: Nest) -> list[NestNode]:
    """The reductions of a nest, in the order of their stages."""
    return sorted((n for n in nest.nodes() if n.kind == "reduce"), key=lambda n: n.stage)


def applies(node: NestNode, op) -> bool:
    return node.kind == "apply" and node.of.op is op


def is_multiple(node: NestNode, x: NestNode) -> bool:
    """Whether a value is x times what is known before all reductions, or 0."""
    if node is x or (node.kind == "number" and node.of == 0):
        return True
    if applies(node, elementwise.cast):
        return node.dtype.kind == "f" and is_multiple(node.args[0], x)
    if applies(node, elementwise.where):
        return not node.args[0].stage and all(is_multiple(a, x) for a in node.args[1:])
    if applies(node, elementwise.add) or applies(node, elementwise.subtract):
        return all(is_multiple(a, x) for a in node.args)
    pairs = [node.args] if applies(node, elementwise.divide) else []
    pairs = [node.args, node.args[::-1]] if applies(node, elementwise.multiply) else pairs
    return any(is_multiple(a, x) and not b.stage for a, b in pairs)


def is_online(record) -> bool:
    """Whether a record is a group of two products with a softmax of long rows between them."""
    if not is_chain(record):
        return False
    group = StripProducts(record)
    return group.length >= FROM and softmax_of(group.nest) is not None


# ---- the formulas -------------------------------------------------------------------------------


@slot("online_softmax.fold")
def fold(m, before, block):
    """(maximum, shift, factor) after one more block of a row, whose maximum is `block`: of all so
    far; what exponents are measured from; what the sums `before` are multiplied by. All columns of
    a block may be hidden, and then their maximum is -inf.
    """
    maximum = m.maximum(before, block)
    shift = m.where(maximum == -inf, 0.0, maximum)
    return maximum, shift, m.exp(before - shift)


@slot("online_softmax.add")
def add(total, factor, part):
    """A sum after one more block: of the powers of a row, or an element of the result."""
    return total * factor + part


# ---- the kernel ---------------------------------------------------------------------------------


class BlockPlan(StripPlan):
    """Strips of rows that are cut: their size does not follow from the length of a row."""

    __slots__ = ()

    most, size = ROWS, 1 << 40


class MaskedBlockPlan(BlockPlan):
    """Strips under a mask."""

    __slots__ = ()

    parallel = MaskedPlan.parallel


class OnlineSoftmax(StripProducts):
    """Writes the text of the kernel."""

    reserved = RESERVED | {"tops", "totals", "results", "at", "wide"}
    plans = BlockPlan, MaskedBlockPlan

    def strip(self, leads, readers, first: str, rows: int) -> str:
        """One strip: blocks of columns one after the other, and the epilogue of the result."""
        (one,), (two,) = leads, readers
        T, m, out, width = self.T, one.p.m, two.p.m.out, block_width()
        a = plus("a_0", first, m.x)
        b = plus("panels_0", "at", one.p.k.size) if one.how == "panels" else "b_0 + at"
        panel = microkernel.tile().panel(T)
        d = f"panels_1 + at * {panel}" if two.how == "panels" else plus("b_1", "at", two.p.k.y)
        one = one._replace(p=one.p._replace(m=m._replace(out=width)))
        two = two._replace(p=two.p._replace(m=two.p.m._replace(x=width)), add=True)
        text = self.begin_strip(one, first, rows) + f"{T} *results = {plus('c_1', first, out)};\n"
        for name, size in {"strip_0": rows * width, "tops": rows, "totals": rows}.items():
            text += f"{stack_array(T, name, size)}\n"
        text += self.visible_columns() if self.masks else f"const int columns = {self.length};\n"
        begin = "tops[r] = -INFINITY, totals[r] = 0;\n"
        begin += f"memset(results + r * {out}, 0, {two.p.n.size} * sizeof({T}));\n"
        text += loop("r", rows, begin)
        inside = f"const int64_t wide = {least('columns - at', width)};\n"
        inside += call_tiles(one, a, b, "strip_0", "0", rows, "wide")
        inside += f"{{\n{self.block(two.p)}\n}}\n"
        inside += call_tiles(two, "strip_0", d, "results", "0", rows, terms="wide")
        text += loop("at", "columns", inside, step=width)
        divide = loop("n", two.p.n.size, f"results[r * {out} + n] /= totals[r];\n")
        return text + loop("r", rows, divide) + self.finish(two)

    def block(self, p: Product) -> str:
        """The statements on a block of scores: powers in their place, and sums before it shrink."""
        softmax, rows = softmax_of(self.nest), self.nest.parallel_loops
        ((_, out, _),) = self.nest.outputs
        w = self.writer(self.nest, ["strip_0"], self.length)
        w.taken |= dict.fromkeys(self.reserved, 0)
        (along,), r = self.nest.reduction_loops, f"({flat_name(rows, 'row')} - first_row)"
        w.starts[along], w.ends[along] = "at", "at + wide"
        dtype, T = softmax.power.dtype, self.T

        def variable(name: str) -> ScalarText:
            return ScalarText(name, (), dtype)

        def walk(reduction: NestNode, term: NestNode) -> ScalarText:
            """A loop along the block: `term` is added to a reduction, `stored` into the strip."""
            folded = Accumulator(reduction, w.fresh(reduction.of.op.name))
            stored, memo = term if reduction is softmax.maximum else out, {}
            w.put(f"{T} {folded.name} = {folded.identity};")
            with w.loop([along], w.simd, *reduction_clauses([folded])):
                value = folded.combine(w.text(term, memo), folded.name)
                w.assign([(here.template, w.text(stored, memo), dtype),
                          (folded.name, value, dtype)])  # fmt: skip
            return variable(folded.name)

        here = variable(f"strip_0[{r} * {block_width()} + {along.name} - at]")
        result = variable(f"results[{r} * {p.m.out} + n]")
        top, total = variable(f"tops[{r}]"), variable(f"totals[{r}]")
        for node in self.nest.nodes():
            if node.kind == "load" and self.nest.loaded_input(node) in self.leads:
                w.known[node] = here
        with w.each_row(rows):
            values = fold(scalar.C, top, walk(softmax.maximum, softmax.maximum.args[0]))
            names = [w.fresh(name) for name in ("maximum", "shift", "factor")]
            w.assign([(f"const {T} {n}", x, dtype) for n, x in zip(names, values, strict=True)])
            maximum, shift, factor = map(variable, names)
            w.known[softmax.power] = w.known[softmax.quotient] = scalar.C.exp(here - shift)
            part = walk(softmax.total, softmax.power)
            w.assign([(top.template, maximum, dtype),
                      (total.template, add(total, factor, part), dtype)])  # fmt: skip
            with w.block(for_head("n", 0, p.n.size)):
                w.assign([(result.template, add(result, factor, 0.0), dtype)])
        return "\n".join(w.lines)


def block_width() -> int:
    """Columns of a block: whole panels."""
    return pick("columns", WIDTH, WIDTHS)


def emit_online_softmax(record, name: str) -> Kernel:
    """The kernel of two products with a softmax between them."""
    return OnlineSoftmax(record).emit(name)


GROUP_EMITTERS.insert(0, GroupEmitter(is_online, emit_online_softmax, in_place))
