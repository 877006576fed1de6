"""Convolutions with the channels last, as products of matrices, one of which is not in memory.

A row of a matrix (`columns`) holds the pixels of one window, for each group:

    columns [N · positions, taps · channels]

A convolution is columns · w, and its adjoint in w is columnsᵀ · g. Its adjoint in the image is a
convolution, too: the windows of a pixel are those that contain it. With strides only some taps of
the kernel reach a pixel; pixels with equal taps are a phase.

A block computes a tile of the result, and finds the elements of its panels of columns in the image
(`windows.cu`, `convolve.cu`). If there are few tiles, several blocks share the sums of each, and a
second kernel adds up their parts. Windows of one pixel, side by side, are the image itself: cuBLAS
multiplies those.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite, wide
from ...engine.core import dtype as dt
from ..convolutions.pooling import per_axis, three
from ..target import fill
from .calls import (
    CUDA_TYPES,
    Clear,
    Gemm,
    KernelCalls,
    Matrix,
    Operand,
    cuda_emitter,
    operands,
)
from .packs import NBYTES
from .teams import BUSY, narrow_type
from .text import each, launch

HELPERS = tuple(read_template(name, __file__) for name in ("windows.cu", "convolve.cu"))

JOIN = """
T sum = 0;
for (int part = 0; part < PARTS; part++) sum += parts[part * SIZE + i];
out[i] = STORE(sum);
"""

FORMS = {
    "conv_last": "Forward", "conv_last_input_grad": "InputGrad",
    "conv_last_weight_grad": "WeightGrad",
}  # fmt: skip
"""The products of `windows.cu` by operator."""

FEW = 4
"""Most columns of a group for which each element has a thread of its own: tiles would be empty."""

WORDS = 16
"""The depth of a panel; a word is 4 bytes, or a double."""

FEWEST_PANELS = 4
"""Panels of a part of a sum, at least."""


class WarpTile(NamedTuple):
    """A block of warps, down x across; each has 32 rows and 4 · `wide` columns of the result."""

    down: int
    across: int
    wide: int

    @property
    def rows(self) -> int:
        return 32 * self.down

    @property
    def columns(self) -> int:
        return 4 * self.wide * self.across

    @property
    def threads(self) -> int:
        return 32 * self.down * self.across

    def count(self, rows: int, columns: int) -> int:
        """The tiles of a matrix."""
        return -(-rows // self.rows) * -(-columns // self.columns)

    def most_lanes(self, lines: int) -> int:
        """The most elements that a thread loads at once, if all have a part of a panel to load."""
        return WORDS * lines // self.threads


LARGE, SQUARE, SLIM = WarpTile(4, 1, 16), WarpTile(2, 2, 8), WarpTile(4, 1, 8)


class ImplicitProduct:
    """A convolution as a product of matrices, for each group and phase. `image` is the large spec,
    `small` the one with the outputs.
    """

    def __init__(self, record, image, small, kernel):
        attrs = record.attrs
        if image.dtype not in dt.FLOATS or image.ndim > 5:
            raise CannotWrite(f"{record.op.name} of {image}")
        self.record, self.form, self.dtype = record, FORMS[record.op.name], image.dtype
        self.groups = attrs["groups"]
        channels, self.outs = image.shape[-1] // self.groups, small.shape[-1]
        group, taps, windows = self.outs // self.groups, prod(kernel), prod(small.shape[:-1])
        self.phases, gathered = 1, channels
        if self.form == "Forward":
            self.rows, self.columns, self.depth = windows, group, taps * channels
        elif self.form == "WeightGrad":
            self.rows, self.columns, self.depth = taps * channels, group, windows
        else:
            strides, size, gathered = attrs["stride"], image.shape[1:-1], group
            self.phases = prod(strides)
            self.rows = image.shape[0] * prod(-(-n // s) for n, s in zip(size, strides))
            self.columns, self.depth = channels, -(-taps // self.phases) * group
        self.lanes = [largest_pack(n, self.dtype) for n in (gathered, group)]
        self.largest = max(image.size, small.size, taps * channels * self.outs)
        self.words = {
            "IMAGES": image.shape[0], "GROUPS": self.groups, "CHANNELS": gathered,
            "OUTS": self.outs, "COLUMNS": self.columns, "PHASES": self.phases,
        }  # fmt: skip
        sizes = image.shape[1:-1], small.shape[1:-1], kernel, attrs["stride"], attrs["dilation"]
        for letter, n in zip("IOKSG", sizes, strict=True):
            self.words |= per_axis(letter, three(n, 1))
        self.words |= per_axis("P", three([low for low, _ in attrs["padding"]], 0))
        still = all(s == 1 for s in attrs["stride"]) and not any(map(sum, attrs["padding"]))
        self.plain = still and taps == 1 and self.groups == 1

    def gemm(self) -> Gemm:
        """The product if the image itself is the matrix of columns."""
        x, y, out = operands(self.record)
        left = Matrix(x, self.words["CHANNELS"], turned=self.form == "WeightGrad")
        right = Matrix(y, self.outs, turned=self.form == "InputGrad")
        sizes = self.rows, self.columns, self.depth, 1
        return Gemm(left, right, Matrix(out, self.columns), *sizes, self.dtype, self.dtype)

    def tiles(self, tile: WarpTile) -> int:
        return tile.count(self.rows, self.columns) * self.groups * self.phases

    def choose_tile(self) -> WarpTile:
        """Large tiles load less, but they have to be enough for the whole GPU, and to leave
        registers for what threads load.
        """
        if self.columns <= SLIM.columns:
            return SLIM
        many = self.tiles(LARGE) >= 4 * BUSY
        return LARGE if many and self.dtype.itemsize <= 4 and self.lanes[0] > 1 else SQUARE

    def emit(self, name: str) -> KernelCalls:
        """The calls of kernels of ours."""
        words, size = self.words, self.record.spec.size
        if self.columns <= FEW:
            function, threads, fewest = "convolve_columns", 128, 64
            blocks = -(-self.rows * self.columns * self.groups // threads) * self.phases
            words |= {"THREADS": threads}
        else:
            tile, function = self.choose_tile(), "convolve"
            threads, blocks = tile.threads, self.tiles(tile)
            fewest = FEWEST_PANELS * WORDS * (2 if self.dtype.itemsize == 2 else 1)
            left, right = map(min, self.lanes, map(tile.most_lanes, (tile.rows, tile.columns)))
            words |= {"DOWN": tile.down, "ACROSS": tile.across, "WIDE": tile.wide}
            words |= {"LEFT": left, "RIGHT": right}
        splits = max(1, min(-(-2 * BUSY // blocks), self.depth // fewest))
        words |= {"SPLITS": splits, "SIZE": size}
        return self.write(name, function, (blocks, splits), threads)

    def write(self, name: str, function: str, blocks, threads: int) -> KernelCalls:
        """The kernel that runs a function of `convolve.cu`, and the one that adds up its parts."""
        splits, size = blocks[1], self.record.spec.size
        E, sums = CUDA_TYPES[self.dtype], wide(self.dtype)
        R = CUDA_TYPES[sums] if splits > 1 else E
        T = narrow_type(max(self.largest, splits * size))
        constants = ", ".join(f"{word} = {n}" for word, n in self.words.items())
        lines = [
            f"    struct Sizes {{ enum {{ {constants} }}; typedef {T} Index; }};",
            f"    {function}<{self.form}<Sizes>, Sizes>(x, y, out);",
        ]
        x, y, out = operands(self.record)
        to = Operand("work") if splits > 1 else out
        parameters = [f"const {E} *x", f"const {E} *y", f"{R} *out"]
        call = launch(name, parameters, lines, blocks, (threads, 1), (x, y, to), HELPERS)
        if splits == 1:
            return KernelCalls((call,))
        text = fill(JOIN, CUDA_TYPES, self.dtype, {"PARTS": splits, "SIZE": size})
        declared = [f"const {R} *parts", f"{E} *out"]
        joined = each(f"{name}_joined", declared, size, text, (to, out), T=T)
        return KernelCalls((call, joined), splits * size * sums.itemsize)


def largest_pack(count: int, dtype) -> int:
    """The most neighbours that are loaded at once, if there are `count`: a power of 2."""
    lanes = NBYTES // dtype.itemsize
    while count % lanes:
        lanes //= 2
    return lanes


@cuda_emitter("conv_last", "conv_last_input_grad", "conv_last_weight_grad")
def emit_convolution(record, name: str) -> KernelCalls:
    """The calls of a convolution, or of one of its adjoints."""
    x, y = (x.spec for x in record.inputs)
    image, small, kernel = {
        "conv_last": (x, record.spec, y.shape[:-2]),
        "conv_last_input_grad": (record.spec, x, y.shape[:-2]),
        "conv_last_weight_grad": (x, y, record.attrs.get("kernel")),
    }[record.op.name]
    if not (x.size and y.size):
        return KernelCalls((Clear(Operand("out"), record.spec.nbytes),))
    product = ImplicitProduct(record, image, small, kernel)
    return KernelCalls((product.gemm(),)) if product.plain else product.emit(name)
