"""Convolutions with the channels last, as products of matrices.

The pixels that a window meets are laid in a row of a matrix (`columns`), for each group

    columns [N · positions, taps · channels]

so that a convolution is columns · w, its adjoint in w is columnsᵀ · g, and its adjoint in the image
spreads g · wᵀ: every pixel adds up what it was in.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..pooling import per_axis, three
from ..target import fill
from .calls import CUDA_TYPES, Clear, Gemm, Matrix, Operand, Work, operands, works
from .text import each

COLUMNS = """
const int64_t c = i % CHANNELS, t = i / CHANNELS % TAPS, p = i / (CHANNELS * TAPS) % POSITIONS;
const int64_t n = i / (CHANNELS * TAPS * POSITIONS) % IMAGES;
const int64_t g = i / (CHANNELS * TAPS * POSITIONS * IMAGES);
const int64_t d = p / (OH * OW) * SD - PD + t / (KH * KW) * GD;
const int64_t h = p / OW % OH * SH - PH + t / KW % KH * GH;
const int64_t w = p % OW * SW - PW + t % KW * GW;
const bool inside = d >= 0 && d < ID && h >= 0 && h < IH && w >= 0 && w < IW;
columns[i] = inside ? x[(((n * ID + d) * IH + h) * IW + w) * (GROUPS * CHANNELS) + g * CHANNELS + c]
    : STORE(0);
"""

SPREAD = """
const int64_t c = i % CHANNELS, g = i / CHANNELS % GROUPS, q = i / (CHANNELS * GROUPS);
const int64_t w = q % IW, h = q / IW % IH, d = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T sum = 0;
for (int t = 0; t < TAPS; t++) {
    const int64_t a = d + PD - t / (KH * KW) * GD, b = h + PH - t / KW % KH * GH;
    const int64_t e = w + PW - t % KW * GW;
    if (a < 0 || b < 0 || e < 0 || a % SD || b % SH || e % SW) continue;
    if (a / SD >= OD || b / SH >= OH || e / SW >= OW) continue;
    const int64_t p = (a / SD * OH + b / SH) * OW + e / SW;
    sum += LOAD(columns[(((g * IMAGES + n) * POSITIONS + p) * TAPS + t) * CHANNELS + c]);
}
image[i] = STORE(sum);
"""


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


@works("conv_last")
def emit_conv(record, name: str) -> Work:
    """The calls of `conv_last`."""
    x, w = record.inputs
    c = Convolution(record, x.spec, record.spec, w.shape[:-2])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    image, weight, out = operands(record)
    product = c.gemm(c.columns(image), c.outputs(weight), c.outputs(out),
                     c.rows, c.outs // c.groups, c.width)  # fmt: skip
    return Work((*c.laid(name, image), product), c.nbytes)


@works("conv_last_input_grad")
def emit_input_grad(record, name: str) -> Work:
    """The calls of `conv_last_input_grad`."""
    g, w = record.inputs
    c = Convolution(record, record.spec, g.spec, w.shape[:-2])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    given, weight, out = operands(record)
    product = c.gemm(c.outputs(given), c.outputs(weight, True), c.columns(out),
                     c.rows, c.width, c.outs // c.groups)  # fmt: skip
    if c.same:
        return Work((product,))
    E, text = CUDA_TYPES[c.dtype], fill(SPREAD, CUDA_TYPES, c.dtype, c.words)
    own = [f"const {E} *columns", f"{E} *image"]
    return Work((product, each(name, own, c.image_size, text, (Operand("work"), out))), c.nbytes)


@works("conv_last_weight_grad")
def emit_weight_grad(record, name: str) -> Work:
    """The calls of `conv_last_weight_grad`."""
    x, g = record.inputs
    c = Convolution(record, x.spec, g.spec, record.attrs["kernel"])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    image, given, out = operands(record)
    product = c.gemm(c.columns(image, True), c.outputs(given), c.outputs(out),
                     c.width, c.outs // c.groups, c.rows)  # fmt: skip
    return Work((*c.laid(name, image), product), c.nbytes)
