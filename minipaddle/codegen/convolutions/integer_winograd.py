"""Winograd's F(m×m, 3×3) in whole numbers: the exact sums of a convolution of int8, with 2.25
(m = 2) or 4 times (m = 4) fewer multiplications.

    out = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A          for each tile d of S × S pixels, S = m + 2

G has fractions. Its rows are multiplied by numbers s that make them whole, and the columns of A by
L / s, which computes L² times the result. Everything is computed modulo 2³², where 9 has an
inverse, so L² = 576 = 9 · 2⁶ leaves the result modulo 2²⁶, which is enough for sums of 227 · 9
products of int8; L² = 4 is enough for 3,640 · 9. More input channels are summed in chunks. The
transformed numbers fit int16: at most 100 · 128 of a tile, and 49 · 128 of a kernel.
Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2016).
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.writer import ALWAYS, least
from ..kernel_frame import KernelFrame, RowBlocks
from ..machine import facts
from ..products.grouped_tiles import SHORTS, TWOS, TileFormat
from .image_strips import Images

TEXT = Template(read_template("integer_winograd.c", __file__))
MOST = 288 << 10
"""Bytes of the stack that tiles may use."""

STREAMED = 6
"""Multiplications in the time in which memory delivers a byte of a kernel (measured)."""


class WinogradAlgorithm(NamedTuple):
    """F(m×m, 3×3): its transformations along one axis, and the most channels of a sum."""

    m: int
    chunk: int
    unit: int  # L²
    into: str  # v = Bᵀ d
    back: str  # y = Aᵀ x, columns of A times L / s
    divide: tuple[int, int]  # by L², modulo 2³²: the inverse of its odd part, a shift to the right
    kernel: tuple  # the rows of G times s

    @property
    def places(self) -> int:
        """Products of matrices: one for each place of a tile."""
        return (self.m + 2) ** 2

    def write_helpers(self, panel: int) -> str:
        """The C functions, for sums of `panel` columns."""
        rows = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in self.kernel)
        return TEXT.substitute(
            m=self.m, unit=self.unit, panel=panel, into=write_steps("v", "d", self.into), G=rows,
            back=write_steps("y", "x", self.back), inverse=self.divide[0], shift=self.divide[1],
        )  # fmt: skip


def write_steps(result: str, source: str, formulas: str) -> str:
    """C text: `v[k * s] = formula;` for each of the formulas, in which d2 means `d[2]`."""
    for k in range(6):
        formulas = formulas.replace(f"{source}{k}", f"{source}[{k}]")
    lines = [f"    {result}[{k} * s] = {each};" for k, each in enumerate(formulas.split("; "))]
    return "\n".join(lines)


ALGORITHMS = {
    2: WinogradAlgorithm(
        2, 3632, 4, "d0 - d2; d1 + d2; d2 - d1; d1 - d3",
        "2 * x0 + x1 + x2; x1 - x2 - 2 * x3", (1, 2),
        ((1, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 1)),
    ),
    4: WinogradAlgorithm(
        4, 224, 576,
        "4 * d0 - 5 * d2 + d4; (d4 - 4 * d2) + (d3 - 4 * d1); (d4 - 4 * d2) - (d3 - 4 * d1); "
        "(d4 - d2) + 2 * (d3 - d1); (d4 - d2) - 2 * (d3 - d1); 4 * d1 - 5 * d3 + d5",
        "6 * x0 + 4 * (x1 + x2) + (x3 + x4); 4 * (x1 - x2) + 2 * (x3 - x4); "
        "4 * (x1 + x2) + 4 * (x3 + x4); 4 * (x1 - x2) + 8 * (x3 - x4) + 24 * x5",
        (pow(9, -1, 1 << 32), 6),
        ((1, 0, 0), (-1, -1, -1), (-1, 1, -1), (1, 2, 4), (1, -2, 4), (0, 0, 1)),
    ),
}  # fmt: skip


class WinogradPlan(NamedTuple):
    """A convolution by an algorithm: `rows` rows of tiles in one block."""

    im: Images
    by: WinogradAlgorithm
    high: int
    form: TileFormat

    @property
    def wide(self) -> int:
        """Tiles from left to right."""
        return -(-self.im.target[1] // self.by.m)

    @property
    def channels(self) -> int:
        return -(-self.im.channels // 16) * 16

    @property
    def blocks(self) -> RowBlocks:
        h, w = self.im.target
        return RowBlocks(self.im.n, h, self.by.m * self.high, w)

    @property
    def packed(self) -> int:
        """The int16 of the transformed kernels."""
        panel = self.form.panel
        return self.by.places * self.channels * -(-self.im.outs // panel) * panel

    @property
    def stack(self) -> int:
        each = 2 * self.channels + 4 * self.form.panel
        return self.by.places * (self.high * self.wide * each + self.channels)

    @property
    def cost(self) -> int:
        """In multiplications. The kernels stream in for each strip, mostly from a cache."""
        tiles = self.im.n * self.wide * -(-self.im.target[0] // self.by.m)
        streamed = 2 * self.packed * (STREAMED + self.blocks.total - 1)
        return tiles * self.packed + streamed


def pick_tiles(im: Images) -> WinogradPlan | None:
    """The fastest way with tiles; None if the convolution itself is cheaper, or another kind."""
    usual = im.kernel == (3, 3) and im.stride == im.dilation == (1, 1) and im.groups == 1
    if not usual or min(im.channels, im.outs) < 16:
        return None
    vnni = facts().vnni
    at_once = 16 if facts().amx else 1 + vnni
    ways = {
        (by.m, high): WinogradPlan(im, by, high, TWOS if vnni else SHORTS)
        for by in ALGORITHMS.values()
        for high in range(1, min(-(-im.target[0] // by.m), 16) + 1)
    }
    ways = {key: way for key, way in ways.items() if way.stack <= MOST}
    terms = 9 * im.channels * im.outs
    direct = im.n * im.target[0] * im.target[1] * terms / at_once + STREAMED * terms
    best = min(ways, key=lambda key: ways[key].cost, default=None)
    pays = best and ways[best].cost < direct
    default = best if pays else (0, 0)
    return ways.get(pick("winograd", default, [(0, 0), *ways]))


def write_winograd(frame: KernelFrame, way: WinogradPlan) -> Kernel:
    """The kernel of a convolution whose kernels are constant."""
    im, by = way.im, way.by
    m, q, C, wide, (h, w), o = by.m, by.places, way.channels, way.wide, im.target, im.outs
    chunk, most, panel, F = min(C, by.chunk), way.high * wide, way.form.panel, way.form.F
    sizes = f"{im.channels}, {o}, {C}, {chunk}"
    call = f"integer_winograd_kernels_{m}({{made}}, {{given}}, {sizes});"
    frame.pack("U", 1, way.packed, call, "int16_t")
    tiles = (
        f"const int64_t tiles = (rows + {m - 1}) / {m} * {wide};\n"
        f"{stack_array('int16_t', 'V', q * most * C)}\n"
        f"{stack_array('int32_t', 'M', q * most * panel)}\n"
        f"{stack_array('int8_t', 'patch', q * C)}\n"
        f"int32_t *to = out0 + (n * {h} + top) * {w * o};\n"
        f"for (int64_t r = 0; r * {m} < rows; r++)\n"
        f"    integer_winograd_input_{m}(V + r * {wide * C}, tiles, {wide},\n"
        f"        in0 + n * {im.source[0] * im.source[1] * im.channels}, {im.source[0]}, "
        f"{im.source[1]}, {im.channels}, {C},\n"
        f"        top + r * {m} - {im.low[0]}, -{im.low[1]}, patch);\n"
        f"for (int64_t o = 0; o < {o}; o += {panel})\n"
        f"    for (int64_t k = 0; k < {C}; k += {chunk}) {{\n"
        f"        const int64_t terms = {least(f'{chunk}', f'{C} - k')};\n"
        f"        const int16_t *u = U + (o * {C} + k * {panel}) * {q};\n"
        f"        for (int64_t q = 0; q < {q}; q++)\n"
        f"            integer_panel_{F}(tiles, {panel}, terms / 2, V + q * tiles * {C} + k, {C},\n"
        f"                u + q * terms * {panel}, M + q * tiles * {panel}, {panel});\n"
        f"        for (int64_t r = 0; r * {m} < rows; r++)\n"
        f"            integer_winograd_output_{m}(M + r * {wide * panel}, tiles, {wide},\n"
        f"                to + o + r * {m * w * o}, {w * o}, {o}, rows - r * {m}, {w}, {o} - o, "
        f"k > 0);\n"
        "    }\n"
    )
    helpers = *way.form.tile, by.write_helpers(panel)
    return frame.write_tiled_kernel(way.blocks, tiles, ALWAYS, helpers)
