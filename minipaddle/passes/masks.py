"""Masks: what a mask hides from a row need not be computed.

    softmax(where(mask, scores, -inf))        softmax(scores + mask)   (a mask of 0 and -inf)

Where a score is -inf it changes no maximum, its exponential is 0, and that changes no sum: the
column might as well not be there, unless all of its row are hidden. So says arithmetic on the two
numbers -inf and 0, with one liberty: a score that a mask is added to, and what a weight of 0 is
multiplied with later, are taken to be finite. (A hidden NaN stays hidden, as in PyTorch.)
"""

from __future__ import annotations

from math import inf

from ..engine.core import dtype as dt
from ..engine.passes.nest import Nest
from ..engine.passes.node import Node, reached


def scaled(x, y):
    """x · y, if one is 0, or one is -inf and the other a positive number."""
    if 0 in (x, y):
        return 0.0
    return -inf if -inf in (x, y) and None not in (x, y) and max(x, y) > 0 else None


RULES = {
    "where": lambda test, x, y: None if test is None else x if test else y,
    "add": lambda x, y: -inf if -inf in (x, y) else None,
    "subtract": lambda x, y: -inf if x == -inf else None,
    "multiply": scaled,
    "divide": lambda x, y: scaled(x, y or None),
    "exp": lambda x: 0.0 if x == -inf else None,
}
"""What an operator makes of values, where that is -inf, 0 or one of them; None is any value."""

NEUTRAL = {"max": -inf, "sum": 0.0}
"""The terms that do not change a reduction."""


HIDING = {dt.bool_.numpy: (False, True)} | dict.fromkeys(dt.FLOATS, (-inf,))
"""What the elements of a mask may be where it hides a column, by their dtype."""


def value(node: Node, given: dict):
    """The value of a node where some values are known; None if that does not tell. Noted there."""
    if node.kind == "number":
        return node.of
    if node not in given:
        rule = RULES.get(node.of.op.name) if node.kind == "apply" else None
        given[node] = rule and rule(*(value(a, given) for a in node.args))
    return given[node]


def hides(nest: Nest, given: dict) -> bool:
    """Is a column without effect on its row, and its result 0, where some values are these?"""
    folds = [n for n in nest.nodes() if n.kind == "fold"]
    return all(value(n, given) == 0 for _, n, _ in nest.outputs) and all(
        NEUTRAL.get(n.of.op.name, inf) == value(n.args[0], given) for n in folds
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
