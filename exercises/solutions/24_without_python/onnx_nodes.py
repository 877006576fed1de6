"""ONNX nodes: one operator in the words of another language.

An ONNX file is a list of nodes. A node has a kind ("Conv"), the names of its inputs, attributes,
and the names of its results; what each kind means is in ONNX's own document. To export a program
is to say each operator in such nodes. Write three functions. The first argument `g` is the graph:
call it and it appends a node,

    g("Gemm", x, weight, bias)                          # kind, inputs
    g("Conv", x, w, strides=[2, 2], group=1)            # attributes by name
    g("ArgMax", x, axis=1, keepdims=0, dtype=np.int64)  # dtype: of the result, unless it is x's

and returns its result, a value with `shape` and `dtype`. Inputs are values; a tuple of whole
numbers is one too. Return the value that the operator computes.

`conv(g, x, w, *, stride, padding, dilation, groups)`: a convolution without bias, over one or more
axes of sizes. `padding` has a pair (before, after) for each axis; ONNX's `pads` lists all befores,
then all afters. Its other attributes are `strides`, `dilations`, `group`.

`affine(g, x, weight, bias)`: x @ weight + bias. The kind "Gemm" does that at once, but only for an
x of two axes. For more there are "MatMul" and "Add".

`place_of(g, kind, x, axis, keepdim)`: the place of the largest or the smallest element; `kind` is
"ArgMax" or "ArgMin". Along an axis it is one node; `keepdims` is 0 or 1. If `axis` is None, what
is wanted is the place in the flat array, a number without axes, or with as many axes of size 1 as
x has, if `keepdim`. ONNX has no such kind: "Reshape" x to (-1,) before.

Source: ONNX's operators, https://onnx.ai/onnx/operators.
"""

import numpy as np


def conv(g, x, w, *, stride, padding, dilation, groups):
    """A convolution."""
    before, after = zip(*padding, strict=True)
    how = {"strides": stride, "dilations": dilation, "group": groups}
    return g("Conv", x, w, pads=[*before, *after], **how)


def affine(g, x, weight, bias):
    """x @ weight + bias."""
    if len(x.shape) == 2:
        return g("Gemm", x, weight, bias)
    product = g("MatMul", x, weight)
    return g("Add", product, bias)


def place_of(g, kind, x, axis, keepdim):
    """The place of an extreme, along an axis or in the flat array."""
    if axis is not None:
        return g(kind, x, axis=axis, keepdims=int(keepdim), dtype=np.int64)
    flat = g("Reshape", x, (-1,))
    at = g(kind, flat, axis=0, keepdims=0, dtype=np.int64)
    return g("Reshape", at, (1,) * len(x.shape)) if keepdim else at
