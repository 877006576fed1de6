"""Masks: what a mask hides from a row need not be computed.

    softmax(where(mask, scores, -inf))        softmax(scores + mask)   (a mask of 0 and -inf)

Where a score is -inf it changes no maximum, its exponential is 0, and that changes no sum: the
column might as well not be there, unless all of its row are hidden. So says arithmetic on the two
numbers -inf and 0, with one liberty: a score that a mask is added to, and what a weight of 0 is
multiplied with later, are taken to be finite. (A hidden NaN stays hidden, as in PyTorch.)
"""

from __future__ import annotations

from contextlib import suppress
from math import inf

from ..engine.core import dtype as dt
from ..engine.passes.nest import Nest
from ..engine.passes.node import Node, reached


class Value:
    """A number that is known, or (None) any finite one: what formulas make of -inf and 0."""

    __hash__ = None

    def __init__(self, number):
        self.number = number.number if isinstance(number, Value) else number

    def __bool__(self):
        raise TypeError("a formula asks for a value")

    def __eq__(self, other):
        return Value(None)

    __ne__ = __eq__

    def __add__(self, other):
        return Value(-inf if -inf in (self.number, Value(other).number) else None)

    def __sub__(self, other):
        return Value(-inf if self.number == -inf else None)

    def __mul__(self, other):
        """0, or -inf times a positive number."""
        x, y = self.number, Value(other).number
        if 0 in (x, y):
            return Value(0.0)
        return Value(-inf if -inf in (x, y) and None not in (x, y) and max(x, y) > 0 else None)

    def __truediv__(self, other):
        return self * (Value(other).number or None)


class Module:
    """What a formula finds in place of the array module; it says nothing of all other functions."""

    @staticmethod
    def exp(x):
        return Value(0.0 if x.number == -inf else None)

    @staticmethod
    def where(test, x, y):
        return Value(None if test.number is None else x if test.number else y)


HIDING = {dt.bool_.numpy: (False, True)} | dict.fromkeys(dt.FLOATS, (-inf,))
"""What the elements of a mask may be where it hides a column, by their dtype."""


def value(node: Node, given: dict):
    """The value of a node where some values are known; None if that does not tell. Noted there."""
    if node.kind == "number":
        return node.of
    if node not in given:
        given[node] = None
        if node.kind == "apply":
            args = [Value(value(a, given)) for a in node.args]
            with suppress(AttributeError, TypeError):
                found = node.of.op.body(Module, *args, **node.of.attrs)
                given[node] = found.number if isinstance(found, Value) else None
    return given[node]


def hides(nest: Nest, given: dict) -> bool:
    """Is a column without effect on its row, and its result 0, where some values are these?"""
    folds = [n for n in nest.nodes() if n.kind == "fold"]
    return all(value(n, given) == 0 for _, n, _ in nest.outputs) and all(
        n.of.op.identity == value(n.args[0], given) for n in folds
    )


def masks(nest: Nest, source) -> list[tuple[Node, object]]:
    """(value, what it is where it hides a column) for each mask on the rows of `source` in a nest:
    it is known before they are, and where it is so the column is without effect.
    """

    def later(node: Node) -> bool:
        return any(n.kind == "load" and nest.number_of(n) is source for n in reached([node]))

    along, found = {*nest.reduced}, []
    for node in nest.nodes():
        known = node.loops & along and node.kind != "fold" and not later(node)
        options = HIDING.get(node.dtype, ()) if known else ()
        found += [(node, x) for x in options if hides(nest, {node: x})]
    return found
