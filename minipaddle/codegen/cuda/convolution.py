"""Convolutions with the channels last, as products of matrices.

The pixels that a window meets are laid in a row of a matrix (`columns`), for each group

    columns [N · positions, taps · channels]

so that a convolution is columns · w, its adjoint in w is columnsᵀ · g, and its adjoint in the image
spreads g · wᵀ: every pixel adds up what it was in.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..pooling import per_axis, three
from ..target import fill
from .calls import CUDA_TYPES, Calls, Clear, Gemm, Matrix, Operand, cuda_emitter, operands
from .text import each

COLUMNS = read_template("columns.cu", __file__)

SPREAD = read_template("spread.cu", __file__)


class Convolution:
    """The sizes of a convolution: `image` is the large spec, `small` the one with the outputs."""

    def __init__(self, record, image, small, kernel):
        attrs, self.record = record.attrs, record
        if image.dtype not in dt.FLOATS or image.ndim > 5:
            raise CannotWrite(f"{record.op.name} of {image}")
        self.n, self.groups = image.shape[0], attrs["groups"]
        self.channels, self.outs = image.shape[-1] // self.groups, small.shape[-1]
        self.positions, self.taps = prod(small.shape[1:-1]), prod(kernel)
        self.rows, self.width = self.n * self.positions, self.taps * self.channels
        padding = [low for low, _ in attrs["padding"]]
        self.words = {
            "CHANNELS": self.channels, "TAPS": self.taps, "POSITIONS": self.positions,
            "IMAGES": self.n, "GROUPS": self.groups,
        }  # fmt: skip
        sizes = image.shape[1:-1], small.shape[1:-1], kernel, attrs["stride"], attrs["dilation"]
        for letter, n in zip("IOKSG", sizes, strict=True):
            self.words |= per_axis(letter, three(n, 1))
        self.words |= per_axis("P", three(padding, 0))
        still = all(s == 1 for s in attrs["stride"]) and not any(map(sum, attrs["padding"]))
        self.same = still and self.taps == 1 and self.groups == 1
        self.nbytes = (
            0 if self.same else self.groups * self.rows * self.width * image.dtype.itemsize
        )
        self.dtype, self.image_size = image.dtype, image.size

    @property
    def empty(self) -> bool:
        return not (self.rows and self.width and self.outs)

    def columns(self, at: Operand, turned: bool = False) -> Matrix:
        """The matrix of columns: that at `at` if it is the image itself, else in the workspace."""
        at = at if self.same else Operand("work")
        return Matrix(at, self.width, self.rows * self.width, turned)

    def outputs(self, at: Operand, turned: bool = False) -> Matrix:
        """A matrix whose lines are the outputs of a group: g, the result, or the weights."""
        return Matrix(at, self.outs, self.outs // self.groups, turned)

    def gemm(self, x: Matrix, y: Matrix, c: Matrix, m: int, n: int, k: int) -> Gemm:
        return Gemm(x, y, c, m, n, k, self.groups, self.dtype)

    def laid(self, name: str, at: Operand) -> tuple:
        """The call that lays the columns of an image."""
        if self.same:
            return ()
        E, size = CUDA_TYPES[self.dtype], self.groups * self.rows * self.width
        text = fill(COLUMNS, CUDA_TYPES, self.dtype, self.words)
        own = [f"const {E} *x", f"{E} *columns"]
        return (each(f"{name}_columns", own, size, text, (at, Operand("work"))),)


@cuda_emitter("conv_last")
def emit_conv(record, name: str) -> Calls:
    """The calls of `conv_last`."""
    x, w = record.inputs
    c = Convolution(record, x.spec, record.spec, w.shape[:-2])
    if c.empty:
        return Calls((Clear(Operand("out"), record.spec.nbytes),))
    image, weight, out = operands(record)
    product = c.gemm(c.columns(image), c.outputs(weight), c.outputs(out),
                     c.rows, c.outs // c.groups, c.width)  # fmt: skip
    return Calls((*c.laid(name, image), product), c.nbytes)


@cuda_emitter("conv_last_input_grad")
def emit_input_grad(record, name: str) -> Calls:
    """The calls of `conv_last_input_grad`."""
    g, w = record.inputs
    c = Convolution(record, record.spec, g.spec, w.shape[:-2])
    if c.empty:
        return Calls((Clear(Operand("out"), record.spec.nbytes),))
    given, weight, out = operands(record)
    product = c.gemm(c.outputs(given), c.outputs(weight, True), c.columns(out),
                     c.rows, c.width, c.outs // c.groups)  # fmt: skip
    if c.same:
        return Calls((product,))
    E, text = CUDA_TYPES[c.dtype], fill(SPREAD, CUDA_TYPES, c.dtype, c.words)
    own = [f"const {E} *columns", f"{E} *image"]
    return Calls((product, each(name, own, c.image_size, text, (Operand("work"), out))), c.nbytes)


@cuda_emitter("conv_last_weight_grad")
def emit_weight_grad(record, name: str) -> Calls:
    """The calls of `conv_last_weight_grad`."""
    x, g = record.inputs
    c = Convolution(record, x.spec, g.spec, record.attrs["kernel"])
    if c.empty:
        return Calls((Clear(Operand("out"), record.spec.nbytes),))
    image, given, out = operands(record)
    product = c.gemm(c.columns(image, True), c.outputs(given), c.outputs(out),
                     c.width, c.outs // c.groups, c.rows)  # fmt: skip
    return Calls((*c.laid(name, image), product), c.nbytes)
