"""A reduction in C: its accumulator, how terms are added, how threads and lanes are joined."""

from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..passes.node import Node
from .kernel import C_TYPES
from .scalar import C, Text, cast, literal, wide


class Fold:
    """One reduction: its accumulator, how terms are added, how threads and lanes are joined."""

    def __init__(self, node: Node, name: str):
        self.node, self.name, self.op = node, name, node.of.op
        self.dtype = wide(node.dtype)
        self.type = C_TYPES[self.dtype]

    @property
    def identity(self) -> str:
        value = self.op.identity
        if self.dtype == np.bool_:
            value = value > 0
        if self.dtype.kind in "iu" and isinstance(value, float):
            info = np.iinfo(self.dtype)
            value = info.min if value < 0 else info.max
        return literal(value, self.dtype).template

    def combined(self, term: Text, into: str) -> Text:
        """The accumulator with one more term."""
        return self.op.combine(C, Text(into, (), self.dtype), cast(term, self.dtype))

    @property
    def rounds(self) -> bool:
        """Does each term that is added round the sum? Then a long sum goes on in double."""
        return self.op.name == "sum" and self.dtype.kind == "f"

    def result(self, total: str | None, place: str = "") -> Text:
        """The value after the loops: its accumulator, or the total of a sum in blocks."""
        text = f"{self.name}{place}" if total is None else f"({self.type}){total}{place}"
        return Text(text, (), self.dtype)

    @property
    def clause(self) -> str:
        """OpenMP's name of how accumulators are joined."""
        return CLAUSES.get(self.op.name) or f"{self.op.name}_{self.type}"


def joined(folds, names=None, size: int | None = None) -> list[str]:
    """OpenMP's words that join the accumulators of folds, or what `names` calls instead of them;
    `size`: each is an array."""
    by_clause: dict[str, list[str]] = {}
    for f in folds:
        name = names[f] if names else f.name
        by_clause.setdefault(f.clause, []).append(f"{name}[:{size}]" if size else name)
    return [f"reduction({clause} : {', '.join(names)})" for clause, names in by_clause.items()]


CLAUSES = {"sum": "+", "prod": "*", "all": "&&", "any": "||"}
"""OpenMP's own."""

JOINING = """\
#pragma omp declare reduction(max_TYPE : TYPE : omp_out = omp_in > omp_out || omp_in != omp_in \\
                              ? omp_in : omp_out) initializer(omp_priv = LOWEST)
#pragma omp declare reduction(min_TYPE : TYPE : omp_out = omp_in < omp_out || omp_in != omp_in \\
                              ? omp_in : omp_out) initializer(omp_priv = HIGHEST)
"""


def reductions() -> list[tuple[set[str], str]]:
    """The reductions OpenMP does not have, (their names, text): extremes that keep NaN."""
    found = []
    for d in (dt.float32, dt.float64, dt.int32, dt.int64, dt.int16, dt.int8, dt.uint8):
        if d.numpy.kind == "f":
            low, high = "-INFINITY", "INFINITY"
        else:
            info = np.iinfo(d.numpy)
            low, high = literal(info.min, d.numpy).template, literal(info.max, d.numpy).template
        kind = C_TYPES[d.numpy]
        text = JOINING.replace("TYPE", kind).replace("LOWEST", low).replace("HIGHEST", high)
        found.append(({f"max_{kind}", f"min_{kind}"}, text))
    return found
