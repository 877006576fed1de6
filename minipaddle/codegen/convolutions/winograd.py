"""Winograd's F(2×2, 3×3): 16 multiplications instead of the 36 of a 3×3 convolution.

    out = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A          for each tile d of 4×4 pixels, which makes 2×2

The product ⊙ of all tiles and channels is 16 matrix products, [tiles, C] by [C, O]. Source: Lavin
and Gray, Fast Algorithms for Convolutional Neural Networks (2016). Rounding errors are two to three
times those of a direct convolution, and a value that is not finite makes its whole tile NaN.
"""

from __future__ import annotations

from string import Template

from ...engine.codegen.kernel import Kernel, read_template
from ...engine.codegen.kernel_schedule import pick
from ...engine.core.slots import slot
from ..c_text import FEW, ROOM, SIZES, count_parts, loop, share_where
from ..compile_units import share
from ..kernel_frame import FloatKernel, RowBlocks
from ..open_sizes import is_open
from ..products import microkernel
from .image_strips import Images, frame_helpers, worth_threads
from .window_lines import SweepAxis

WORTH = 16
"""Fewest input and output channels for which Winograd's algorithm pays."""

TERMS = 64
"""Most terms in one pass: the errors of a tile's 16 products add up."""

TILES = 48
"""About how many tiles are computed together: each reads all kernels, which seldom fit a cache."""

WINOGRAD = Template(read_template("winograd.c", __file__))


@slot("codegen.convolution")
def choose_algorithm(im: Images, down: SweepAxis, across: SweepAxis, T: str) -> str:
    """The algorithm of a convolution: "direct", or "winograd" if that is faster (measured)."""
    pays = min(im.channels, im.outs) >= WORTH and is_possible(im, down, across, T)
    return "winograd" if pays else "direct"


def is_possible(im: Images, down: SweepAxis, across: SweepAxis, T: str) -> bool:
    """Whether it is a 3×3 convolution of neighbouring pixels whose tiles fit the workspace."""
    even = im.kernel == (3, 3) and im.groups == 1 and T == "float"
    even = even and all(x[1:] == (1, x.taps, x.first, 1, 0, 1) for x in (down, across))
    return even and tile_rows(im, across) > 0


def tile_rows(im: Images, across: SweepAxis) -> int:
    """Rows of the result that are computed together: even; 0 if two rows do not fit."""
    sizes, wide = tile_sizes(im, across), -(-across.count // 2)
    enough = [rows for rows in sizes if rows // 2 * wide >= TILES]
    return min(enough, default=max(sizes, default=0))


def tile_sizes(im: Images, across: SweepAxis) -> dict[int, dict[str, int]]:
    """The elements of the arrays for each number of rows that may be computed together: a part of
    the image with its frame, and its tiles before and after the products.
    """
    wide, choices, most = -(-across.count // 2), {}, min(im.target[0] + 1 & ~1, 32)
    few = [2, 4, 8, 16, 32] if is_open(wide) else range(2, most + 1, 2)  # of a few texts
    for rows in few:
        frame, tiles = (rows + 2) * (2 * wide + 2), rows // 2 * wide
        sizes = {"image": frame * im.channels, "V": 16 * tiles * im.channels}
        sizes["M"] = 16 * tiles * im.outs
        if 4 * sum(sizes.values()) <= ROOM:
            choices[rows] = sizes
    return choices


def write_winograd(
    frame: FloatKernel, im: Images, down: SweepAxis, across: SweepAxis, kernels: str
) -> Kernel:
    """The kernel of a 3×3 convolution by Winograd's tiles."""
    T, c, o, (h, w) = frame.T, im.channels, im.outs, im.target
    rows = pick("tile_rows", tile_rows(im, across), choices := tile_sizes(im, across))
    sizes, wide, high, blocks = choices[rows], -(-w // 2), rows // 2, RowBlocks(im.n, h, rows, w)
    tiles, row, items = high * wide, (2 * wide + 2) * c, blocks.total
    source = f"{frame.names[0]} + n * {im.source[0] * im.source[1] * c}"
    t = microkernel.tile()
    panel, packed = t.panel(T), 16 * microkernel.panels_size(o, c, t)
    call = f"winograd_kernels_{T}({{made}}, {{given}}, {c}, {o}, {panel});"
    frame.pack("U", 1, packed, call, source=kernels)
    apart = f"(({o} + {panel} - 1) / {panel} * {panel} * {c})"
    products = microkernel.sum_terms(
        T, tiles, o, c, 1, (f"V + q * {tiles * c}", c, 1, 0),
        (f"U + q * {apart}", panel, 0, f"{panel} * {c}"), (f"M + q * {tiles * o}", o), most=TERMS,
    )  # fmt: skip
    each, pays = SIZES[T] * sum(sizes.values()), worth_threads(im)
    parts = count_parts(items, each, frame.out.nbytes) if items >= FEW and pays else 1
    inside = "".join(
        f"{T} *{name} = {frame.room.array(T, parts * size)} + p * {size};\n"
        for name, size in sizes.items()
    )
    inside += (
        f"frame_{T}(image, {rows + 2}, {2 * wide + 2}, {source}, {im.source[0]}, {im.source[1]}, "
        f"{c}, top + {down.first}, {across.first});\n"
        f"winograd_input_{T}(V, image, {row}, {c}, {high}, {wide});\n"
        f"{loop('q', 16, products, pragma=share_where(pays) if parts == 1 else '')}"
        f"winograd_output_{T}(M, {frame.target} + (n * {h} + top) * {w * o}, {w * o}, {o}, {high}, "
        f"{wide}, rows, {w});\n"
    )
    helpers = share(WINOGRAD.substitute(T=T), *microkernel.vectors(T))
    helpers = *frame_helpers(T), *helpers
    return frame.write_tiled_kernel(blocks, inside, pays, helpers, parts=parts)
