"""Reductions in C: accumulators, and how threads and vector lanes combine them."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..core import dtype as dt
from ..core.op import OPS
from ..ops import reduction
from ..passes.nest import NestNode
from .kernel import C_TYPES
from .scalar import C, CannotWrite, ScalarText, cast, literal, round_to, statements, wide


class Accumulator:
    """The accumulator of one reduction in a loop nest."""

    last = ""  # a statement after the loops

    def __init__(self, node: NestNode, name: str):
        self.node, self.name, self.op = node, name, node.of.op
        self.dtype = wide(node.dtype)
        self.type = C_TYPES[self.dtype]

    @property
    def variables(self) -> list[tuple]:
        """(type, name, first value) of what is declared."""
        return [(self.type, self.name, self.identity)]

    def steps(self, term: ScalarText, element: str) -> list[tuple]:
        """(target, value, dtype) of what one more term changes."""
        into = self.name + element
        return [(into, self.combine(term, into), self.dtype)]

    @property
    def identity(self) -> str:
        return identity(self.op, self.dtype)

    def combine(self, term: ScalarText, into: str) -> ScalarText:
        """The new value of the accumulator `into` after one more term."""
        y = self.op.combine(C, ScalarText(into, (), self.dtype), cast(term, self.dtype))
        y.of = self.node.of
        return y

    @property
    def is_rounded(self) -> bool:
        """Whether each term rounds the sum. Then a long sum continues in double."""
        return self.op.blocked and self.dtype.kind == "f"

    def result(self, total: str | None, element: str = "") -> ScalarText:
        """The value after the loops: the accumulator, or the total of a sum in blocks."""
        text = f"{self.name}{element}" if total is None else f"({self.type}){total}{element}"
        return round_to(ScalarText(text, (), self.dtype), self.node.dtype)

    @property
    def clause(self) -> str:
        """How OpenMP combines accumulators: an operator of C, or a reduction that we declare."""
        return clause(self.op, self.dtype)

    @property
    def clauses(self) -> list[tuple[str, str]]:
        """(how OpenMP combines it, name) of each variable."""
        return [(self.clause, self.name)]


def reduction_clauses(folds, names=None, size: int | None = None) -> list[str]:
    """The clauses of an OpenMP pragma that combine accumulators (or the variables in `names`). With
    `size` each is an array of that length.
    """
    by_clause: dict[str, list[str]] = {}
    for f in folds:
        for clause, name in [(f.clause, names[f])] if names else f.clauses:
            by_clause.setdefault(clause, []).append(f"{name}[:{size}]" if size else name)
    return [f"reduction({clause} : {', '.join(names)})" for clause, names in by_clause.items()]


JOIN = """\
static inline TYPE join_NAME(TYPE a, TYPE b)
{
BODY
}
"""
DECLARE = """\
#pragma omp declare reduction(NAME : TYPE : omp_out = join_NAME(omp_out, omp_in)) \\
                    initializer(omp_priv = IDENTITY)
"""
OPERATORS = ("+", "*", "&", "|", "^")
EXTREMES = {reduction.max: ">", reduction.min: "<"}
"""OpenMP combines with these operators of C, and by name in these reductions, except for NaN."""


@cache
def clause(op, dtype) -> str:
    if op in EXTREMES and dtype.kind != "f":
        return op.name
    lines, value = combination(op, dtype)
    signs = [sign for sign in OPERATORS if not lines and value == f"(a {sign} b)"]
    return signs[0] if signs else f"{op.name}_{C_TYPES[dtype]}"


def combination(op, dtype) -> tuple[list[str], str]:
    """The reduction's formula for two partial results a and b: (statements, value)."""
    names = iter(f"t{k}" for k in range(9))
    a, b = ScalarText("a", (), dtype), ScalarText("b", (), dtype)
    lines, (value,) = statements([op.combine(C, a, b)], names.__next__)
    return lines, value


def join(op, dtype) -> str:
    """The C function `join_<name>_<type>` of two partial results."""
    lines, value = combination(op, dtype)
    body = "\n".join(f"    {line}" for line in [*lines, f"return {value};"])
    return fill_template(JOIN, op, dtype).replace("BODY", body)


def fill_template(template: str, op, dtype) -> str:
    T = C_TYPES[dtype]
    return template.replace("NAME", f"{op.name}_{T}").replace("TYPE", T)


@cache
def declaration(fold) -> str:
    """C for a reduction (an operator, a dtype); nothing if OpenMP has it or C cannot write it."""
    try:
        if clause(*fold) in (*OPERATORS, *(op.name for op in EXTREMES)):
            return ""
    except CannotWrite:
        return ""
    text = fill_template(DECLARE, *fold).replace("IDENTITY", identity(*fold))
    return join(*fold) + text


def identity(op, dtype) -> str:
    """The initial value of an accumulator, in C."""
    value = op.identity
    if dtype == np.bool_:
        value = value > 0
    if dtype.kind in "iu" and isinstance(value, float):
        info = np.iinfo(dtype)
        value = info.min if value < 0 else info.max
    return literal(value, dtype).template


def reductions() -> list[tuple]:
    """All reductions as `sections` has texts: (names, what is completed, the function for that)."""
    ops = [op for op in OPS.values() if op.kind == "reduction"]
    return [({f"{op.name}_{C_TYPES[d]}"}, (op, d), declaration) for op in ops for d in TYPES]


TYPES = [d.numpy for d in (dt.float32, dt.float64, dt.int32, dt.int64, dt.int16, dt.int8, dt.uint8)]
"""The dtypes of accumulators; a boolean is a uint8_t in C."""
