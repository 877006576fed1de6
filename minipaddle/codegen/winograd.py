"""Winograd's F(2×2, 3×3): 16 multiplications where a 3×3 convolution has 36.

    out = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A          for each tile d of 4×4 pixels, which makes 2×2

The product ⊙ of all tiles and channels is 16 products of matrices, [tiles, C] by [C, O]. Source:
Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2016). The sums are other sums:
errors are two to three times those of a direct convolution, and what is not finite in a tile makes
all of the tile NaN.
"""

from __future__ import annotations

from string import Template

from ..engine.codegen.kernel import Ahead, Kernel, is_kept, local
from ..engine.codegen.schedule import pick
from ..engine.core.slots import slot
from . import gemm
from .frame import Frame
from .matmul import PARALLEL, SERIAL, indented
from .strips import Images, framing, work_of
from .sweep import Line

WORTH = 16
"""Channels, in and out, from which Winograd's tiles pay."""

CACHED, MOST = 64 << 10, 320 << 10
"""Bytes that the tiles should take of the stack, and may take if a row of tiles needs them."""

WINOGRAD = Template("""\
/* U[16][n] = G g Gᵀ for n pairs of channels, from g[3][3][n] */
ONCE void winograd_kernels_$T($T *U, const $T *g, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES_$T) {
        const lanes_$T there = first_$T(n - i);
        vector_$T t[4][3];
        UNROLL for (int j = 0; j < 3; j++) {
            const vector_$T a = load_lanes_$T(g + j * n + i, there),
                            b = load_lanes_$T(g + (3 + j) * n + i, there),
                            c = load_lanes_$T(g + (6 + j) * n + i, there);
            t[0][j] = a, t[1][j] = (a + b + c) * ($T)0.5;
            t[2][j] = (a - b + c) * ($T)0.5, t[3][j] = c;
        }
        UNROLL for (int j = 0; j < 4; j++) {
            const vector_$T a = t[j][0], b = t[j][1], c = t[j][2];
            $T *u = U + 4 * j * n + i;
            store_lanes_$T(u, there, a);
            store_lanes_$T(u + n, there, (a + b + c) * ($T)0.5);
            store_lanes_$T(u + 2 * n, there, (a - b + c) * ($T)0.5);
            store_lanes_$T(u + 3 * n, there, c);
        }
    }
}

/* V[16][high * wide][C] = Bᵀ d B for the tiles of an image whose rows are `row` apart */
INLINE void winograd_tile_$T(const int full, int64_t left, $T *V, const $T *d, int64_t row,
                             int64_t C, int64_t apart)
{
    const lanes_$T there = first_$T(left);
    vector_$T t[4][4];
    UNROLL for (int j = 0; j < 4; j++) {
        vector_$T x[4];
        UNROLL for (int i = 0; i < 4; i++) {
            const $T *p = d + i * row + j * C;
            x[i] = full ? load_$T(p) : load_lanes_$T(p, there);
        }
        t[0][j] = x[0] - x[2], t[1][j] = x[1] + x[2];
        t[2][j] = x[2] - x[1], t[3][j] = x[1] - x[3];
    }
    UNROLL for (int i = 0; i < 4; i++) {
        const vector_$T v[4] = {t[i][0] - t[i][2], t[i][1] + t[i][2], t[i][2] - t[i][1],
                                t[i][1] - t[i][3]};
        UNROLL for (int j = 0; j < 4; j++) {
            $T *p = V + (4 * i + j) * apart;
            if (full) store_$T(p, v[j]);
            else store_lanes_$T(p, there, v[j]);
        }
    }
}
ONCE void winograd_input_$T($T *V, const $T *image, int64_t row, int64_t C, int64_t high,
                            int64_t wide)
{
    const int64_t apart = high * wide * C;
    for (int64_t h = 0; h < high; h++)
        for (int64_t w = 0; w < wide; w++, V += C)
            for (int64_t c = 0; c < C; c += LANES_$T) {
                const $T *d = image + 2 * h * row + 2 * w * C + c;
                if (C - c >= LANES_$T) winograd_tile_$T(1, 0, V + c, d, row, C, apart);
                else winograd_tile_$T(0, C - c, V + c, d, row, C, apart);
            }
}

/* out[2 * high][2 * wide][O] = Aᵀ M A, as far as it is inside of rows × columns */
ONCE void winograd_output_$T(const $T *M, $T *out, int64_t row, int64_t O, int64_t high,
                             int64_t wide, int64_t rows, int64_t columns)
{
    const int64_t apart = high * wide * O;
    for (int64_t h = 0; 2 * h < rows; h++)
        for (int64_t w = 0; w < wide; w++)
            for (int64_t o = 0; o < O; o += LANES_$T) {
                const $T *m = M + (h * wide + w) * O + o;
                const lanes_$T there = first_$T(O - o);
                vector_$T t[2][4];
                UNROLL for (int j = 0; j < 4; j++) {
                    vector_$T x[4];
                    UNROLL for (int i = 0; i < 4; i++) {
                        const $T *p = m + (4 * i + j) * apart;
                        x[i] = load_lanes_$T(p, there);
                    }
                    t[0][j] = x[0] + x[1] + x[2], t[1][j] = x[1] - x[2] - x[3];
                }
                $T *to = out + 2 * h * row + 2 * w * O + o;
                UNROLL for (int i = 0; i < 2; i++) {
                    if (2 * h + i >= rows) break;
                    store_lanes_$T(to + i * row, there, t[i][0] + t[i][1] + t[i][2]);
                    if (2 * w + 1 < columns)
                        store_lanes_$T(to + i * row + O, there, t[i][1] - t[i][2] - t[i][3]);
                }
            }
}
""")


def helpers(T: str, tiles: int) -> tuple[str, ...]:
    """Helpers: the transformations, and the products for so many tiles."""
    return (*gemm.blocks(T, tiles), WINOGRAD.substitute(T=T))


@slot("codegen.convolution")
def how_to(im: Images, down: Line, across: Line, T: str) -> str:
    """How to compute a convolution: "direct" or, where that is faster, "winograd" (measured)."""
    pays = min(im.channels, im.outs) >= WORTH and possible(im, down, across, T)
    return "winograd" if pays else "direct"


def possible(im: Images, down: Line, across: Line, T: str) -> bool:
    """Is it a 3×3 convolution of neighbouring pixels, and is there room for its tiles?"""
    even = im.kernel == (3, 3) and im.groups == 1 and T == "float"
    even = even and all(x[1:] == (1, x.taps, x.first, 1, 0, 1) for x in (down, across))
    return even and tile_rows(im, across) > 0


def tile_rows(im: Images, across: Line) -> int:
    """Rows of the result that are computed at a time: even, 0 if the stack has no room for two."""
    sizes = tile_sizes(im, across)
    cached = [rows for rows, size in sizes.items() if size <= CACHED]
    return max(cached, default=min(sizes, default=0))


def tile_sizes(im: Images, across: Line) -> dict[int, int]:
    """The bytes on the stack for each number of rows that could be computed at a time."""
    wide, found = -(-across.count // 2), {}
    for rows in range(2, min(im.target[0] + 1 & ~1, 32) + 1, 2):
        tiles = rows // 2 * wide
        frame = (rows + 2) * (2 * wide + 2) * im.channels
        found[rows] = 4 * (frame + 16 * tiles * (im.channels + im.outs))
    return {rows: size for rows, size in found.items() if size <= MOST}


def by_winograd(frame: Frame, im: Images, down: Line, across: Line, kernels: str) -> Kernel:
    """The kernel of a 3×3 convolution by Winograd's tiles."""
    T, c, o, (h, w) = frame.T, im.channels, im.outs, im.target
    rows, wide = pick("tile_rows", tile_rows(im, across), tile_sizes(im, across)), -(-w // 2)
    strips, high = -(-h // rows), rows // 2
    tiles, row = high * wide, (2 * wide + 2) * c
    source = f"{frame.names[0]} + n * {im.source[0] * im.source[1] * c}"
    weight, ahead = frame.record.inputs[1], None
    if is_kept(weight) and kernels == "in1":
        ahead = Ahead(weight, 16 * c * o, f"winograd_kernels_{T}(made, given, {c * o});")
        frame.text += "    const float *U = in1;  /* the kernels, transformed before the run */\n"
    else:
        frame.text += (
            f"    {T} *U = {frame.room.array(T, 16 * c * o)};  /* the kernels, transformed */\n"
            f"    winograd_kernels_{T}(U, {kernels}, {c * o});\n"
        )
    inside = (
        f"const int64_t n = i / {strips}, top = i % {strips} * {rows};\n"
        f"const int64_t rows = top + {rows} < {h} ? {rows} : {h} - top;\n"
        f"{local(T, 'image', (rows + 2) * row)}\n"
        f"{local(T, 'V', 16 * tiles * c)}\n"
        f"{local(T, 'M', 16 * tiles * o)}\n"
        f"frame_{T}(image, {rows + 2}, {2 * wide + 2}, {source}, {im.source[0]}, {im.source[1]}, "
        f"{c}, top + {down.first}, {across.first});\n"
        f"winograd_input_{T}(V, image, {row}, {c}, {high}, {wide});\n"
        "for (int64_t q = 0; q < 16; q++) {\n"
        + indented(gemm.calls(
            T, tiles, o, c, 1, (f"V + q * {tiles * c}", c, 1, 0), (f"U + q * {c * o}", o, 0),
            (f"M + q * {tiles * o}", o), "0"), 4) +
        "}\n"
        f"winograd_output_{T}(M, {frame.target} + (n * {h} + top) * {w * o}, {w * o}, {o}, {high}, "
        f"{wide}, rows, {w});\n"
    )  # fmt: skip
    if frame.inline:
        inside += f"const int64_t first = (n * {h} + top) * {w}, last = first + rows * {w};\n"
        inside += frame.rows("first", "last")
    items = im.n * strips
    pragma = "    " + PARALLEL if items > 1 and work_of(im) > SERIAL else ""
    loop = f"{pragma}    for (int64_t i = 0; i < {items}; i++) {{\n{indented(inside, 8)}    }}\n"
    kernel = frame.kernel(loop, (*framing(T), *helpers(T, tiles)), done=True)
    return kernel._replace(ahead=ahead)
