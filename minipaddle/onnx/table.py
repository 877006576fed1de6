"""Our operators in ONNX, and ONNX's in ours: two tables, by their names.

A form writes a record: `form(g, *inputs, **attributes)` gets values of the graph (Python numbers as
they are) and the attributes of the record, which is `g.record`. It returns the record's value, a
tuple if that has several; it raises `NoForm` for attributes that ONNX cannot express.

A function reads a node. Inputs come in their order (None: left out), attributes by their names; a
parameter may be either, as `axes`, which was an attribute before opset 13. A value that is known
while the model is read is a NumPy array: parameters before `/` are made tensors, of others `tensor`
makes one, `sizes` numbers. A function that has the parameter `node` gets what else there is to
know: the opset, the number of results, the graph around it.

Where attributes are one to one, both follow from a row of `rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy

from ..core.prelude import OPS, Dim, Tensor, current, dt
from ..engine.codegen.kernel import entries
from .graph import NoForm, library

FORMS: dict[str, Callable] = {}
"""An operator's name -> its form."""
FUNCTIONS: dict[str, Callable] = {}
"""The name of an operator of ONNX -> its function."""
FLOAT, INT64 = dt.float32.numpy, dt.int64.numpy
LAST = numpy.iinfo(numpy.int64).max


class OnnxNode(NamedTuple):
    """The node that a function reads."""

    kind: str
    opset: int
    results: int
    reading: object  # the graph around it: `graphs.GraphReader`


class UnreadableNode(Exception):
    """A node, or these attributes of it, cannot be read; the text says why."""


form, reads = entries(FORMS), entries(FUNCTIONS)


# ---- sizes and numbers ---------------------------------------------------------------------------


def numbers(sizes, what: str) -> list[int]:
    """Sizes that must be known when a record is written."""
    if any(isinstance(n, Dim) for n in sizes):
        raise NoForm(f"{what} {list(sizes)} must be numbers: give them to InputSpec")
    return [int(n) for n in sizes]


def tensor(x) -> Tensor:
    """A value as a tensor."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, numpy.ndarray) and x.dtype == object:
        return current.top.constant(x.tolist(), "int64")
    return current.top.constant(numpy.asarray(x), None)


def sizes(x) -> list:
    """A vector of whole numbers: ints, or sizes that only a run knows."""
    if isinstance(x, Tensor):
        values = current.top.sizes(x)
        return values if isinstance(values, list) else [values]
    return [n if isinstance(n, Dim) else int(n) for n in numpy.atleast_1d(numpy.asarray(x))]


def size(x):
    """One whole number."""
    (n,) = sizes(x)
    return n


def as_known(x, what: str) -> list[int]:
    """Whole numbers that must be known while the model is read."""
    if isinstance(x, Tensor) and not x.spec.size:
        return []
    if isinstance(x, Tensor) or any(isinstance(n, Dim) for n in sizes(x)):
        raise UnreadableNode(f"its {what} are computed while it runs")
    return sizes(x)


def number(x) -> float:
    """One number that must be known."""
    if isinstance(x, Tensor):
        raise UnreadableNode("a number that it needs is computed while it runs")
    return numpy.asarray(x).reshape(()).item()


def beside(x, other):
    """An operand beside another one: a single known number becomes a number of Python."""
    if isinstance(x, Tensor) or not isinstance(other, Tensor):
        return tensor(x)
    alone = x.size == 1 and x.ndim <= len(other.spec.shape)
    if alone and x.dtype != object and x.dtype == other.spec.dtype:
        return x.reshape(()).item()
    return tensor(x)


def pair(x, y) -> tuple:
    return beside(x, y), beside(y, x)


def apply(name: str, *inputs, **attrs):
    """An operator of MiniPaddle."""
    return OPS[name](*inputs, **attrs)


def dtype_of(code: int):
    """A dtype of ONNX as one of ours."""
    try:
        dtype = numpy.dtype(library().helper.tensor_dtype_to_np_dtype(code))
        return dt.resolve(dtype)
    except Exception:
        raise UnreadableNode(f"its dtype {code} is not one of MiniPaddle's") from None
