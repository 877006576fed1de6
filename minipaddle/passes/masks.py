"""Masks: columns that a mask hides need not be computed.

    softmax(where(mask, scores, -inf))        softmax(scores + mask)   (a mask of 0 and -inf)

A score of -inf changes no maximum, its exponential is 0, and that changes no sum. So the column can
be left out, unless a whole row is hidden. This follows from arithmetic with -inf and 0, on one
assumption: a score that a mask is added to, and a number that a weight of 0 is multiplied with, are
finite. (A hidden NaN stays hidden, as in PyTorch.)
"""

from __future__ import annotations

from contextlib import suppress
from math import inf

from ..engine.core import dtype as dt
from ..engine.passes.nest import Nest, NestNode, reach


class MaskValue:
    """A known number, or any finite one (None), as formulas compute on it."""

    __hash__ = None

    def __init__(self, number):
        self.number = number.number if isinstance(number, MaskValue) else number

    def __bool__(self):
        raise TypeError("a formula asks for a value")

    def __eq__(self, other):
        return MaskValue(None)

    __ne__ = __eq__

    def __add__(self, other):
        return MaskValue(-inf if -inf in (self.number, MaskValue(other).number) else None)

    def __sub__(self, other):
        return MaskValue(-inf if self.number == -inf else None)

    def __mul__(self, other):
        """0, or -inf times a positive number."""
        x, y = self.number, MaskValue(other).number
        if 0 in (x, y):
            return MaskValue(0.0)
        return MaskValue(-inf if -inf in (x, y) and None not in (x, y) and max(x, y) > 0 else None)

    def __truediv__(self, other):
        return self * (MaskValue(other).number or None)


class MaskModule:
    """The array module for formulas; of other functions the result is unknown."""

    @staticmethod
    def exp(x):
        return MaskValue(0.0 if x.number == -inf else None)

    @staticmethod
    def where(test, x, y):
        return MaskValue(None if test.number is None else x if test.number else y)


HIDING = {dt.bool_.numpy: (False, True)} | dict.fromkeys(dt.FLOATS, (-inf,))
"""The values of a mask that may hide a column, by its dtype."""


def value(node: NestNode, given: dict):
    """The value of a node, computed from those `given`, to which it is added; None if unknown."""
    if node.kind == "number":
        return node.of
    if node not in given:
        given[node] = None
        if node.kind == "apply":
            args = [MaskValue(value(a, given)) for a in node.args]
            with suppress(AttributeError, TypeError):
                result = node.of.op.body(MaskModule, *args, **node.of.attrs)
                given[node] = result.number if isinstance(result, MaskValue) else None
    return given[node]


def hides(nest: Nest, given: dict) -> bool:
    """Whether a column with these values changes no reduction, and its results are 0."""
    folds = [n for n in nest.nodes() if n.kind == "reduce"]
    return all(value(n, given) == 0 for _, n, _ in nest.outputs) and all(
        n.of.op.identity == value(n.args[0], given) for n in folds
    )


def masks(nest: Nest, sources) -> list[tuple[NestNode, object]]:
    """(node, value) for each mask on the rows of `sources` in a nest: the node is known before the
    rows are, and where it has that value the column has no effect.
    """

    def later(node: NestNode) -> bool:
        return any(n.kind == "load" and nest.loaded_input(n) in sources for n in reach([node]))

    along, pairs = {*nest.reduction_loops}, []
    for node in nest.nodes():
        known = node.loops & along and node.kind != "reduce" and not later(node)
        options = HIDING.get(node.dtype, ()) if known else ()
        pairs += [(node, x) for x in options if hides(nest, {node: x})]
    return pairs
