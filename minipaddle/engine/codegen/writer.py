"""A loop nest as C: loops, and statements for the values in them.

A later stage of the same row may need a value again. If an output stored the value, the stage reads
it back. Otherwise an expensive value (its formula calls a mathematical function) stays in a buffer
of the row, and a cheap one is computed again.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from functools import lru_cache

import numpy as np

from ..core import dtype as dt
from ..core.slots import slot
from ..core.symbols import Loop
from ..passes.nest import Nest, NestNode, reach
from .kernel_schedule import pick
from .scalar import (
    CUT,
    NARROWED,
    PAIRED,
    PLAIN,
    C,
    ScalarText,
    bare,
    cast_to_memory,
    formula,
    literal,
    read,
    statements,
    wide,
)

FUNCTIONS = {*PLAIN.values(), *PAIRED.values(), "pow", "rint", "fabs"}
"""Names that a variable cannot have: formulas call these."""

PARALLEL = 32768
"""Fewest elements for several threads to pay."""

ALWAYS = "threads > 1"


class NestWriter:
    """Writes the body of one nest; `names` are those of its inputs and outputs in C."""

    rows = None  # (first, last, elements of a row), if only some rows are computed

    def __init__(self, nest: Nest, names: list[str], outs: list[str]):
        self.nest, self.names, self.outs = nest, names, outs
        self.parallel = set(nest.parallel_loops)
        self.taken = dict.fromkeys([*names, *outs, *FUNCTIONS], 0)
        self.lines: list[str] = []
        self.depth = 1
        self.known: dict[
            NestNode, ScalarText
        ] = {}  # values of finished stages, as later ones read them
        self.starts: dict[Loop, str] = {}  # bounds of loops, if not 0 and the extent
        self.ends: dict[Loop, str] = {}

    # ---- text --------------------------------------------------------------------------------

    def put(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line if line else "" for line in lines]

    def fresh(self, base: str) -> str:
        """A new name: base, base1, base2, …"""
        name = base
        while name in self.taken:
            self.taken[base] = self.taken.get(base, 0) + 1
            name = f"{base}{self.taken[base]}"
        self.taken[name] = 0
        return name

    @contextmanager
    def block(self, head: str):
        """Within it, lines are between the braces of `head { … }`."""
        self.put(head + " {")
        self.depth += 1
        yield
        self.depth -= 1
        self.put("}")

    @contextmanager
    def loop(self, loops: list[Loop], *words: str):
        """Nested loops; `words` form an OpenMP pragma for the outermost loop."""
        if loops and words:
            self.put("#pragma omp " + " ".join(words))
        with ExitStack() as stack:
            for a in loops:
                head = for_head(a.name, self.starts.get(a, 0), self.end(a))
                stack.enter_context(self.block(head))
            yield

    @contextmanager
    def blocks(self, loops: list[Loop], count: int, *words: str):
        """Nested loops in blocks of about `count` iterations. Opens the loops over blocks, and
        yields the loops inside one block. If all iterations fit one block, it yields all loops.
        """
        k, inside = len(loops), 1
        while k and inside * loops[k - 1].extent <= count:
            k -= 1
            inside *= loops[k].extent
        if not k or count < 2 * inside:
            with self.loop(loops[:k], *words):
                yield loops[k:]
            return
        a, step = loops[k - 1], max(1, count // inside)
        start, end, last = self.fresh("start"), self.fresh("end"), self.end(a)
        if k == 1 and words:
            self.put("#pragma omp " + " ".join(words))
        with self.loop(loops[: k - 1], *words), self.block(for_head(start, 0, last, step)):
            self.put(f"const int64_t {end} = {least(f'{start} + {step}', last)};")
            self.starts[a], self.ends[a], before = start, end, self.ends.get(a)
            yield loops[k - 1 :]
            del self.starts[a], self.ends[a]
            if before is not None:
                self.ends[a] = before

    def end(self, loop: Loop) -> str:
        """C text: where a loop ends."""
        return self.ends.get(loop, str(loop.extent))

    def each_row(self, loops: list[Loop], *words: str):
        """The loops over rows."""
        return self.loop(loops, *words)

    def along_rows(self, loop: Loop):
        """One loop over all elements."""
        shared, *how = self.threads(self.nest.size) or ("",)
        return self.loop([loop], f"{shared} {self.simd}".strip(), *how)

    def threads(self, size: int) -> tuple[str, ...]:
        """The OpenMP words that share a loop among threads, if there is enough work."""
        when = worth_sharing(size, PARALLEL)
        if pick("parallel", bool(when), (False, True)):
            return "parallel for", f"if (parallel: {when or ALWAYS}) num_threads(threads)"
        return ()

    @property
    def simd(self) -> str:
        """The OpenMP words for vectors; the schedule may set their length."""
        lanes = pick("lanes", 0, (4, 8, 16, 32))
        return f"simd simdlen({lanes})" if lanes else "simd"

    # ---- values ------------------------------------------------------------------------------

    def text(self, node: NestNode, memo: dict):
        """The expression of a value in the loop that `memo` belongs to; a number stays a number."""
        if node in self.known:
            return self.known[node]
        if node not in memo:
            memo[node] = getattr(self, node.kind)(node, memo)  # one of the methods below
        return memo[node]

    def load(self, node: NestNode, memo) -> ScalarText:
        x = read(f"{self.names[node.of]}[{in_c(node.index)}]", node.dtype)
        if node.guard:
            return ScalarText(f"({condition(node.guard)} ? {x.template} : 0)", (), x.dtype)
        return x

    def number(self, node: NestNode, memo):
        return node.of if node.dtype is None else literal(node.of, wide(node.dtype))

    def place(self, node: NestNode, memo) -> ScalarText:
        i = ScalarText(f"(int64_t)({in_c(node.index)})", (), np.int64)
        return cast_to_memory(node.of.op.element(i, **node.of.attrs), node.dtype)

    def select(self, node: NestNode, memo) -> ScalarText:
        there, fill = (self.text(a, memo) for a in node.args)
        return C.where(ScalarText(condition(node.guard), (), np.bool_), there, fill)

    def apply(self, node: NestNode, memo) -> ScalarText:
        args = [self.text(a, memo) for a in node.args]
        y = formula(node.of.op, args, node.of.attrs, node.dtype)
        y.of = y.of or node.of
        return y

    def assign(self, targets: list[tuple[str, object, object]]) -> None:
        """Write `target = value` for all (target, value, dtype), after the statements they need.

        All reads precede the first store, because a target may overlap a value.
        """
        roots = [cast_to_memory(v, d) for _, v, d in targets]
        lines, values = statements(roots, lambda: self.fresh("t"), apart=len(targets) > 1)
        self.put(*lines)
        for (target, _, dtype), root, value in zip(targets, roots, map(bare, values), strict=True):
            store = (CUT if root.rounded else NARROWED).get(dtype, "{}")
            self.put(f"{target} = {store.format(value)};")

    def stores(self, outputs, memo) -> list[tuple]:
        """Targets of outputs: [(name in C, record, node, place)]."""
        return [(f"{o}[{in_c(at)}]", self.text(n, memo), r.dtype) for o, r, n, at in outputs]

    # ---- what happens at which stage -------------------------------------------------------

    def outputs(self, stage=None, row=None) -> list[tuple]:
        """(name in C, record, node, place) of the outputs of a stage."""
        outputs = [(o, *out) for o, out in zip(self.outs, self.nest.outputs, strict=True)]
        if stage is None:
            return outputs
        return [f for f in outputs if f[2].stage == stage and self.nest.once_a_row(*f[2:]) is row]

    def folds(self, stage: int) -> list[NestNode]:
        """The reductions whose terms are known at a stage."""
        reductions = {id(n): n for n in self.nest.values if n.kind == "reduce"}
        return [n for n in reductions.values() if n.args[0].stage == stage]

    @property
    def stages(self) -> int:
        return 1 + max(n.stage for _, n, _ in self.nest.outputs)

    @slot("codegen.needed_later")
    def needed_later(self, keeps: bool) -> dict[NestNode, None]:
        """The values inside a row that a later stage reads back: those that are stored, and if
        `keeps`, the expensive ones.
        """
        return {n: None for stage in range(self.stages) for n in self.find_reused(stage, keeps)}

    def find_reused(self, stage: int, keeps: bool) -> list[NestNode]:
        """The values that one stage reads back."""
        stored = {n for _, n, _ in self.nest.outputs}

        def kept(node: NestNode) -> bool:
            inside = node.kind != "load" and not self.nest.is_row(node)
            return inside and node.stage < stage and (node in stored or (keeps and expensive(node)))

        roots = [f.args[0] for f in self.folds(stage)]
        roots += [n for _, _, n, _ in self.outputs(stage, False)]
        nodes = reach(roots, lambda n: not (self.nest.is_row(n) or kept(n)))
        return [n for n in nodes if kept(n)]


FEW = 3
"""Most operations that are cheaper to compute again than to keep in a buffer."""


def expensive(node: NestNode) -> bool:
    """Whether a value needs a mathematical function, a division or many operations."""
    return any(n.kind == "apply" and cost(n) > FEW for n in reach([node]))


def cost(node: NestNode) -> int:
    """The number of operations of the formula that is applied last."""
    numbers = tuple(a.of if a.kind == "number" else None for a in node.args)
    return cost_of(node.of.op, numbers, tuple(node.of.attrs.items()))


@lru_cache(maxsize=4096)
def cost_of(op, numbers, attrs) -> int:
    """The number of operations of a formula; an argument is a number, or None for a value."""
    operands = [ScalarText("x", (), dt.float32.numpy) if n is None else n for n in numbers]
    return operations(formula(op, operands, dict(attrs), dt.float32.numpy))


CALL = re.compile(r"(?!fabs)\b[a-z]\w*\(|/")
CAST = re.compile(r"\(\(\w+\)")


def operations(text: ScalarText) -> int:
    """The operations of an expression; a choice counts as two, a call or division as many."""
    count = 0 if CAST.match(text.template) or not text.args else 1
    count = FEW + 1 if CALL.search(text.template) else 2 * text.template.count("?") or count
    return count + sum(map(operations, text.args))


def for_head(name: str, start, end, step=1, T: str = "int64_t") -> str:
    """The head of a loop in C."""
    more = f"{name}++" if step == 1 else f"{name} += {step}"
    return f"for ({T} {name} = {start}; {name} < {end}; {more})"


def worth_sharing(size: int, least: int) -> str:
    """The condition under which several threads pay for work of this size; "" if they never do. A
    size that is no number in C is compared when the program runs.
    """
    if f"{size}".isdigit():
        return ALWAYS if size >= least else ""
    return f"{ALWAYS} && {size} >= {least}"


def least(x, y) -> str:
    """The smaller of two numbers, in C."""
    return f"{x} < {y} ? {x} : {y}"


def in_c(index) -> str:
    """An index in C, where `/` of numbers that are not negative is Python's `//`."""
    return str(index).replace("//", "/")


def condition(ranges) -> str:
    """The C condition that each index of (index, low, high) is in its range."""
    parts = []
    for i, low, high in ranges:
        parts += [f"{in_c(i)} >= {low}"] if low > i.low else []
        parts += [f"{in_c(i)} < {high}"] if high <= i.high else []
    return "(" + (" && ".join(parts) or "true") + ")"
