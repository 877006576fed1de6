"""Convolutions with the channels last, as products of matrices.

A row of a matrix (`columns`) holds the pixels of one window, for each group:

    columns [N · positions, taps · channels]

A convolution is columns · w, and its adjoint in w is columnsᵀ · g. Its adjoint in the image spreads
g · wᵀ: each pixel adds up the elements of all windows that contain it.

Columns are several times as large as the image, so large batches are computed in parts.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..convolutions.pooling import per_axis, three
from ..target import fill
from .calls import (
    CUDA_TYPES,
    Clear,
    Gemm,
    KernelCalls,
    Launch,
    Matrix,
    Operand,
    cuda_emitter,
    operands,
)
from .packs import NBYTES
from .teams import narrow_type
from .text import each

COLUMNS = read_template("columns.cu", __file__)

SPREAD = read_template("spread.cu", __file__)


MOST = 64 * 2**20
"""Most bytes of columns at a time, unless those of one image are more."""


class ConvolutionColumns:
    """The sizes of a convolution of `n` images from number `first` on. `image` is the large spec,
    `small` the one with the outputs.
    """

    def __init__(self, record, image, small, kernel, first: int = 0, n: int | None = None):
        attrs = record.attrs
        if image.dtype not in dt.FLOATS or image.ndim > 5:
            raise CannotWrite(f"{record.op.name} of {image}")
        self.n, self.groups = image.shape[0] if n is None else n, attrs["groups"]
        self.starts = [
            first * prod(spec.shape[1:]) * image.dtype.itemsize for spec in (image, small)
        ]
        self.channels, self.outs = image.shape[-1] // self.groups, small.shape[-1]
        self.group = self.outs // self.groups  # outputs of a group
        self.positions, self.taps = prod(small.shape[1:-1]), prod(kernel)
        self.rows, self.width = self.n * self.positions, self.taps * self.channels
        padding = [low for low, _ in attrs["padding"]]
        self.words = {
            "TAPS": self.taps, "POSITIONS": self.positions, "IMAGES": self.n, "GROUPS": self.groups,
        }  # fmt: skip
        sizes = image.shape[1:-1], small.shape[1:-1], kernel, attrs["stride"], attrs["dilation"]
        for letter, n in zip("IOKSG", sizes, strict=True):
            self.words |= per_axis(letter, three(n, 1))
        self.words |= per_axis("P", three(padding, 0))
        still = all(s == 1 for s in attrs["stride"]) and not any(map(sum, attrs["padding"]))
        self.same = still and self.taps == 1 and self.groups == 1
        self.dtype = image.dtype
        self.nbytes = self.groups * self.rows * self.width * image.dtype.itemsize
        self.pixels = prod(image.shape[1:]) * self.n

    def most_images(self) -> int:
        """The images of a part; parts are about equal. Sums in parts would round halves."""
        if self.same or self.dtype in dt.HALVES:
            return self.n
        return -(-self.n // min(self.n, -(-self.nbytes // MOST)))

    def columns(self, at: Operand, turned: bool = False) -> Matrix:
        """The matrix of columns: that at `at` if it is the image itself, else in the workspace."""
        at = at if self.same else Operand("work")
        return Matrix(at, self.width, self.rows * self.width, turned)

    def outputs(self, at: Operand, turned: bool = False) -> Matrix:
        """A matrix whose lines are the outputs of a group: g, the result, or the weights."""
        return Matrix(at, self.outs, self.group, turned)

    def kernel(self, name: str, template: str, size: int, source: str, to: str, memory) -> Launch:
        """A kernel that computes each of the `size` elements of the array `to`: a thread computes
        a pack of channels.
        """
        lanes = NBYTES // self.dtype.itemsize
        lanes = 1 if self.channels % lanes else lanes
        T = narrow_type(max(size, self.groups * self.rows * self.width))
        E = f"Pack<{CUDA_TYPES[self.dtype]},{lanes}>"
        words = {"CHANNELS": self.channels // lanes, "PACK": E, "LANES": lanes, "INDEX": T}
        text = fill(template, CUDA_TYPES, self.dtype, self.words | words)
        declared = [f"const {E} *{source}", f"{E} *{to}"]
        return each(name, declared, size // lanes, text, memory, T=T)


@cuda_emitter("conv_last", "conv_last_input_grad", "conv_last_weight_grad")
def emit_convolution(record, name: str) -> KernelCalls:
    """The calls of a convolution, or of one of its adjoints."""
    x, y = (x.spec for x in record.inputs)
    image, small, kernel = {
        "conv_last": (x, record.spec, y.shape[:-2]),
        "conv_last_input_grad": (record.spec, x, y.shape[:-2]),
        "conv_last_weight_grad": (x, y, record.attrs.get("kernel")),
    }[record.op.name]
    whole = ConvolutionColumns(record, image, small, kernel)
    if not (whole.rows and whole.width and whole.outs):
        return KernelCalls((Clear(Operand("out"), record.spec.nbytes),))
    calls, step = [], whole.most_images()
    for first in range(0, whole.n, step):
        n = min(step, whole.n - first)
        part = ConvolutionColumns(record, image, small, kernel, first, n)
        calls += convolve_part(record, name if n == step else f"{name}_rest", part)
    return KernelCalls(tuple(calls), 0 if whole.same else whole.nbytes // whole.n * step)


def convolve_part(record, name: str, c: ConvolutionColumns) -> list:
    """The calls for some images."""
    op, work, (image, small) = record.op.name, Operand("work"), c.starts
    first, second, out = operands(record)
    if op == "conv_last":
        first, out = first._replace(offset=image), out._replace(offset=small)
        factors = c.columns(first), c.outputs(second), c.outputs(out)
        sizes = c.rows, c.group, c.width
    elif op == "conv_last_input_grad":
        first, out = first._replace(offset=small), out._replace(offset=image)
        factors = c.outputs(first), c.outputs(second, True), c.columns(out)
        sizes = c.rows, c.width, c.group
    else:
        first, second = first._replace(offset=image), second._replace(offset=small)
        factors = c.columns(first, True), c.outputs(second), c.outputs(out)
        sizes = c.width, c.group, c.rows
    product = Gemm(*factors, *sizes, c.groups, c.dtype, c.dtype)
    if c.same:
        return [product]
    if op == "conv_last_input_grad":
        return [product, c.kernel(name, SPREAD, c.pixels, "columns", "image", (work, out))]
    product = product._replace(adds=op == "conv_last_weight_grad" and image > 0)
    size = c.groups * c.rows * c.width
    return [c.kernel(f"{name}_columns", COLUMNS, size, "x", "columns", (first, work)), product]
