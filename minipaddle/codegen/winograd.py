"""Winograd's F(2×2, 3×3): 16 multiplications instead of the 36 of a 3×3 convolution.

    out = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A          for each tile d of 4×4 pixels, which makes 2×2

The product ⊙ of all tiles and channels is 16 matrix products, [tiles, C] by [C, O]. Source: Lavin
and Gray, Fast Algorithms for Convolutional Neural Networks (2016). Rounding errors are two to three
times those of a direct convolution, and a value that is not finite makes its whole tile NaN.
"""

from __future__ import annotations

from string import Template

from ..engine.codegen.kernel import Kernel, read_template, stack_array
from ..engine.codegen.kernel_schedule import pick
from ..engine.core.slots import slot
from . import microkernel
from .c_text import indent
from .float_kernel import FloatKernel
from .prepacking import Prepack, is_constant_input
from .strips import Images, framing, shared_loop
from .sweep import Line
from .units import shared

WORTH = 16
"""Fewest input and output channels for which Winograd's algorithm pays."""

TERMS = 64
"""Most terms in one pass: the errors of a tile's 16 products add up."""

CACHED, MOST = 64 << 10, 320 << 10
"""Bytes of the stack that tiles should use at most, and the limit for one row of tiles."""

WINOGRAD = Template(read_template("winograd.c", __file__))


def helpers(T: str, tiles: int) -> tuple[str, ...]:
    """Helpers: the transformations, and products with `tiles` rows."""
    own = shared(WINOGRAD.substitute(T=T), *microkernel.vectors(T))
    return *microkernel.blocks(T, tiles), *own


@slot("codegen.convolution")
def choose_algorithm(im: Images, down: Line, across: Line, T: str) -> str:
    """The algorithm of a convolution: "direct", or "winograd" if that is faster (measured)."""
    pays = min(im.channels, im.outs) >= WORTH and possible(im, down, across, T)
    return "winograd" if pays else "direct"


def possible(im: Images, down: Line, across: Line, T: str) -> bool:
    """Whether it is a 3×3 convolution of neighbouring pixels whose tiles fit the stack."""
    even = im.kernel == (3, 3) and im.groups == 1 and T == "float"
    even = even and all(x[1:] == (1, x.taps, x.first, 1, 0, 1) for x in (down, across))
    return even and tile_rows(im, across) > 0


def tile_rows(im: Images, across: Line) -> int:
    """Rows of the result that are computed together: even; 0 if two rows do not fit the stack."""
    sizes = tile_sizes(im, across)
    cached = [rows for rows, size in sizes.items() if size <= CACHED]
    return max(cached, default=min(sizes, default=0))


def tile_sizes(im: Images, across: Line) -> dict[int, int]:
    """The bytes on the stack for each number of rows that may be computed together."""
    wide, sizes = -(-across.count // 2), {}
    for rows in range(2, min(im.target[0] + 1 & ~1, 32) + 1, 2):
        tiles = rows // 2 * wide
        frame = (rows + 2) * (2 * wide + 2) * im.channels
        sizes[rows] = 4 * (frame + 16 * tiles * (im.channels + im.outs))
    return {rows: size for rows, size in sizes.items() if size <= MOST}


def by_winograd(frame: FloatKernel, im: Images, down: Line, across: Line, kernels: str) -> Kernel:
    """The kernel of a 3×3 convolution by Winograd's tiles."""
    T, c, o, (h, w) = frame.T, im.channels, im.outs, im.target
    rows, wide = pick("tile_rows", tile_rows(im, across), tile_sizes(im, across)), -(-w // 2)
    strips, high = -(-h // rows), rows // 2
    tiles, row = high * wide, (2 * wide + 2) * c
    source = f"{frame.names[0]} + n * {im.source[0] * im.source[1] * c}"
    weight, prepack = frame.record.inputs[1], None
    if is_constant_input(weight) and kernels == "in1":
        prepack = Prepack(weight, 16 * c * o, f"winograd_kernels_{T}(made, given, {c * o});")
        frame.text += "    const float *U = in1;  /* the kernels, transformed before the run */\n"
    else:
        frame.text += (
            f"    {T} *U = {frame.room.array(T, 16 * c * o)};  /* the kernels, transformed */\n"
            f"    winograd_kernels_{T}(U, {kernels}, {c * o});\n"
        )
    inside = (
        f"const int64_t n = i / {strips}, top = i % {strips} * {rows};\n"
        f"const int64_t rows = top + {rows} < {h} ? {rows} : {h} - top;\n"
        f"{stack_array(T, 'image', (rows + 2) * row)}\n"
        f"{stack_array(T, 'V', 16 * tiles * c)}\n"
        f"{stack_array(T, 'M', 16 * tiles * o)}\n"
        f"frame_{T}(image, {rows + 2}, {2 * wide + 2}, {source}, {im.source[0]}, {im.source[1]}, "
        f"{c}, top + {down.first}, {across.first});\n"
        f"winograd_input_{T}(V, image, {row}, {c}, {high}, {wide});\n"
        "for (int64_t q = 0; q < 16; q++) {\n"
        + indent(microkernel.summed(
            T, tiles, o, c, 1, (f"V + q * {tiles * c}", c, 1, 0), (f"U + q * {c * o}", o, 0),
            (f"M + q * {tiles * o}", o), most=TERMS), 4) +
        "}\n"
        f"winograd_output_{T}(M, {frame.target} + (n * {h} + top) * {w * o}, {w * o}, {o}, {high}, "
        f"{wide}, rows, {w});\n"
    )  # fmt: skip
    if frame.inline:
        inside += f"const int64_t first = (n * {h} + top) * {w}, last = first + rows * {w};\n"
        inside += frame.rows("first", "last")
    text = shared_loop("i", im.n * strips, inside, im)
    kernel = frame.kernel(text, (*framing(T), *helpers(T, tiles)), done=True)
    return kernel._replace(prepack=prepack)
