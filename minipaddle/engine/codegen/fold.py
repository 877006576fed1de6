"""A reduction in C: its accumulator, how terms are added, how threads and lanes are joined."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..core import dtype as dt
from ..core.op import OPS
from ..passes.node import Node
from .kernel import C_TYPES
from .scalar import C, CannotWrite, Text, cast, literal, statements, wide


class Fold:
    """One reduction: its accumulator, how terms are added, how threads and lanes are joined."""

    def __init__(self, node: Node, name: str):
        self.node, self.name, self.op = node, name, node.of.op
        self.dtype = wide(node.dtype)
        self.type = C_TYPES[self.dtype]

    @property
    def identity(self) -> str:
        return identity(self.op, self.dtype)

    def combined(self, term: Text, into: str) -> Text:
        """The accumulator with one more term."""
        return self.op.combine(C, Text(into, (), self.dtype), cast(term, self.dtype))

    @property
    def rounds(self) -> bool:
        """Does each term that is added round the sum? Then a long sum goes on in double."""
        return self.op.blocked and self.dtype.kind == "f"

    def result(self, total: str | None, place: str = "") -> Text:
        """The value after the loops: its accumulator, or the total of a sum in blocks."""
        text = f"{self.name}{place}" if total is None else f"({self.type}){total}{place}"
        return Text(text, (), self.dtype)

    @property
    def clause(self) -> str:
        """OpenMP's name of how accumulators are joined: an operator of C, or one we declare."""
        return clause(self.op, self.dtype)


def joined(folds, names=None, size: int | None = None) -> list[str]:
    """OpenMP's words that join the accumulators of folds, or what `names` calls instead of them;
    `size`: each is an array."""
    by_clause: dict[str, list[str]] = {}
    for f in folds:
        name = names[f] if names else f.name
        by_clause.setdefault(f.clause, []).append(f"{name}[:{size}]" if size else name)
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
"""Of C; OpenMP joins with these by itself."""


@cache
def clause(op, dtype) -> str:
    lines, value = combination(op, dtype)
    signs = [sign for sign in OPERATORS if not lines and value == f"(a {sign} b)"]
    return signs[0] if signs else f"{op.name}_{C_TYPES[dtype]}"


def combination(op, dtype) -> tuple[list[str], str]:
    """The reduction's own formula for the partial results a and b: statements, and a value."""
    names = iter(f"t{k}" for k in range(9))
    a, b = Text("a", (), dtype), Text("b", (), dtype)
    lines, (value,) = statements([op.combine(C, a, b)], names.__next__)
    return lines, value


def join(op, dtype) -> str:
    """The C function `join_<name>_<type>` of two partial results."""
    lines, value = combination(op, dtype)
    body = "\n".join(f"    {line}" for line in [*lines, f"return {value};"])
    return fill(JOIN, op, dtype).replace("BODY", body)


def fill(template: str, op, dtype) -> str:
    kind = C_TYPES[dtype]
    return template.replace("NAME", f"{op.name}_{kind}").replace("TYPE", kind)


@cache
def declaration(op, dtype) -> tuple[set[str], str] | None:
    """A reduction that OpenMP does not have, (its name, text)."""
    try:
        name = clause(op, dtype)
    except CannotWrite:
        return None
    if name in OPERATORS:
        return None
    text = fill(DECLARE, op, dtype).replace("IDENTITY", identity(op, dtype))
    return {name}, join(op, dtype) + text


def identity(op, dtype) -> str:
    """C for what a reduction starts from."""
    value = op.identity
    if dtype == np.bool_:
        value = value > 0
    if dtype.kind in "iu" and isinstance(value, float):
        info = np.iinfo(dtype)
        value = info.min if value < 0 else info.max
    return literal(value, dtype).template


def reductions() -> list[tuple[set[str], str]]:
    """The reductions that OpenMP does not have, (their names, text)."""
    ops = [op for op in OPS.values() if op.kind == "reduction"]
    return [found for op in ops for d in TYPES if (found := declaration(op, d)) is not None]


TYPES = [d.numpy for d in (dt.float32, dt.float64, dt.int32, dt.int64, dt.int16, dt.int8, dt.uint8)]
"""Of accumulators; a boolean is C's uint8_t."""
