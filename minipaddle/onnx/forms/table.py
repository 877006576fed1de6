"""The ONNX form of each operator that is no formula: a function from values to nodes.

`rule(g, *inputs, **attributes)` gets values of the graph (Python numbers as they are) and the
attributes of the record, which is `g.record`. It returns the value of the record, a tuple if that
has several; it raises `NoForm` for attributes that ONNX cannot express.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy

from ...engine.core.dim import Dim
from ..graph import Graph, NoForm, Value

LAST = numpy.iinfo(numpy.int64).max
FORMS: dict[str, Callable] = {}
"""An operator's name -> its rule."""


def form(*names: str):
    """Decorator: the rule of these operators."""

    def register(rule):
        FORMS.update(dict.fromkeys(names, rule))
        return rule

    return register


def numbers(sizes, what: str) -> list[int]:
    """Sizes that must be known now."""
    if any(isinstance(n, Dim) for n in sizes):
        raise NoForm(f"{what} {list(sizes)} must be numbers: give them to InputSpec")
    return [int(n) for n in sizes]


def beside(g: Graph, x, like: Value) -> Value:
    """A number in the dtype of a value; a value as it is."""
    return g.value(x, like.dtype)
