"""The C text that matrix products and convolutions share: some rows of a product.

    C[m, n] (+)= Σ A[m, k] B[k, n]        for a block of rows m, all n, all k

A tile of C, a few rows by a few vectors, stays in registers while k runs: for each k the vectors
of B are loaded once, and each element of A once, to be multiplied with all lanes. A may have any
strides; neighbouring columns of B and of C are neighbours in memory. k may run over `segments`:
so the window of a convolution, whose rows lie apart in the image, needs no copy (im2col).

The vectors are GCC's, as wide as the processor's registers; only loads and stores of a part of
one need intrinsics. 8 rows by 2 vectors of 16 floats run at 98 % of the peak of a Zen 4.
The order of loops and branches is what GCC keeps in registers: measure after every change.
"""

from __future__ import annotations

from functools import cache
from string import Template
from typing import NamedTuple

from ..engine.codegen.schedule import pick

ROWS = 8
"""Rows of a block function at most; a tile has as many where there are 32 registers."""

WIDEST = 32
"""No panel (the columns of a tile) is wider than this many elements, whatever the processor. Its
width is a multiple of 4, and divides 3 · WIDEST."""

LANES = 16
"""No vector has more elements than this."""


class Tile(NamedTuple):
    """The part of C that stays in registers, and how far the loop over k is unrolled."""

    tall: int = ROWS  # rows of a block
    across: int = 0  # vectors; 0: as many as PROCESSOR says
    unroll: int = 1

    @property
    def widest(self) -> int:
        """No panel is wider than this many elements; its width divides 3 · widest."""
        return self.across * LANES or WIDEST

    def panel(self, T: str) -> str:
        """C text: the columns of a tile."""
        return f"({self.across} * LANES_{T})" if self.across else f"PANEL_{T}"

    def suffix(self, T: str) -> str:
        """What names of functions end in: those of other tiles are others."""
        return T if self == Tile() else "_".join([T, *map(str, self)])


def tile() -> Tile:
    """The tile of the kernel that is being written."""
    return Tile(
        pick("tall", ROWS, (8, 6, 4)), pick("across", 0, (1, 2, 3, 4)), pick("unroll", 1, (1, 2, 4))
    )


PROCESSOR = """\
#if defined __AVX512F__
enum { REGISTER = 64, TALL = 8, ACROSS = 2 };  /* bytes of a register; rows and vectors of a tile */
#elif defined __AVX__
enum { REGISTER = 32, TALL = 4, ACROSS = 3 };
#elif defined __aarch64__
enum { REGISTER = 16, TALL = 8, ACROSS = 2 };
#else
enum { REGISTER = 16, TALL = 4, ACROSS = 2 };
#endif
#define INLINE static inline __attribute__((always_inline))
#if defined __clang__
#define ONCE static __attribute__((noinline))
#else
#define ONCE static __attribute__((noinline, noclone))
#endif
#define UNROLL _Pragma("GCC unroll 16")
#ifdef __clang__  /* what begins at p: clang asks where it ends */
#define PART(T, p) (*(T (*)[REGISTER / sizeof *(p)])(p))
#else
#define PART(T, p) (*(T (*)[])(p))
#endif
#define KEEP(p) __asm__("" : "+r"(p))  /* one pointer and offsets, no register for each row */
"""

VECTORS = Template("""\
typedef $T vector_$T __attribute__((vector_size(REGISTER)));
typedef $T loose_$T __attribute__((vector_size(REGISTER), aligned(sizeof($T)), may_alias));
enum { LANES_$T = REGISTER / sizeof($T), PANEL_$T = ACROSS * LANES_$T };

INLINE vector_$T load_$T(const $T *p) { return *(const loose_$T *)p; }
INLINE void store_$T($T *p, vector_$T v) { *(loose_$T *)p = v; }

/* The first lanes alone: the others are read as 0 and never written. The instructions are written
   here because the header that has them takes as long to compile as everything else. */
#if defined __AVX512F__
typedef uint16_t lanes_$T;
INLINE lanes_$T first_$T(int64_t n)  /* n of them, none for n <= 0 */
{
    return n >= LANES_$T ? 0xffff : n > 0 ? (1u << n) - 1 : 0;
}
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v;
    __asm__("vmovu$ps %1, %0%{%2%}%{z%}" : "=v"(v) : "m"(PART(const $T, p)), "Yk"(there));
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    __asm__("vmovu$ps %1, %0%{%2%}" : "+m"(PART($T, p)) : "v"(v), "Yk"(there));
}
#elif defined __AVX__
typedef $I lanes_$T __attribute__((vector_size(REGISTER)));
INLINE lanes_$T first_$T(int64_t n)
{
    return (lanes_$T)$lanes < ($I)(n < LANES_$T ? n : LANES_$T);
}
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v;
    __asm__("vmaskmov$ps %1, %2, %0" : "=x"(v) : "m"(PART(const $T, p)), "x"(there));
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    __asm__("vmaskmov$ps %1, %2, %0" : "+m"(PART($T, p)) : "x"(v), "x"(there));
}
#else
typedef int64_t lanes_$T;
INLINE lanes_$T first_$T(int64_t n) { return n; }
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v = {0};
    if (there >= LANES_$T) return load_$T(p);
    UNROLL for (int i = 0; i < LANES_$T; i++) if (i < there) v[i] = p[i];
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    if (there >= LANES_$T) store_$T(p, v);
    else UNROLL for (int i = 0; i < LANES_$T; i++) if (i < there) p[i] = v[i];
}
#endif
INLINE vector_$T load_part_$T(const $T *p, int64_t n) { return load_lanes_$T(p, first_$T(n)); }
INLINE void store_part_$T($T *p, int64_t n, vector_$T v) { store_lanes_$T(p, first_$T(n), v); }
""")

TILE = Template("""\
/* A tile of C: `rows` by `vectors`, of which n columns are there (all of them if `full`). */
INLINE void tile_$F(const int rows, const int vectors, const int full, int64_t n,
                    int64_t K, int64_t segments,
                    const $T *A, int64_t a_row, int64_t a_step, int64_t a_segment,
                    const $T *B, int64_t b_step, int64_t b_segment,
                    $T *C, int64_t c_row, int add)
{
    vector_$T c[8][4], b[4];
    lanes_$T there[4];
    UNROLL for (int j = 0; j < vectors; j++) there[j] = first_$T(n - j * LANES_$T);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) c[i][j] = (vector_$T){0};
    for (int64_t s = 0; s < segments; s++, A += a_segment, B += b_segment) {
        const $T *p = A, *q = B;
${unroll}        for (int64_t k = K; k > 0; k--, p += a_step, q += b_step) {
            KEEP(p);
            UNROLL for (int j = 0; j < vectors; j++)
                b[j] = full ? load_$T(q + j * LANES_$T)
                            : load_lanes_$T(q + j * LANES_$T, there[j]);
            UNROLL for (int i = 0; i < rows; i++)
                UNROLL for (int j = 0; j < vectors; j++) c[i][j] += p[i * a_row] * b[j];
        }
    }
    KEEP(C);
    if (add)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < vectors; j++) {
                const $T *p = C + i * c_row + j * LANES_$T;
                c[i][j] += full ? load_$T(p) : load_lanes_$T(p, there[j]);
            }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) {
            $T *p = C + i * c_row + j * LANES_$T;
            if (full) store_$T(p, c[i][j]);
            else store_lanes_$T(p, there[j], c[i][j]);
        }
}
""")

BLOCK = Template("""\
/* C (+)= A B for M rows, a multiple of $rows; the panels of B lie `b_panel` apart. */
ONCE void rows${rows}_$F(
    int64_t M, int64_t N, int64_t K, int64_t segments,
    const $T *A, int64_t a_row, int64_t a_step, int64_t a_segment,
    const $T *B, int64_t b_step, int64_t b_segment, int64_t b_panel,
    $T *C, int64_t c_row, int add)
{
#define TILE(first, rows, vectors, full) tile_$F(rows, vectors, full, N - n, K, segments, \\
        A + (m + first) * a_row, a_row, a_step, a_segment, B, b_step, b_segment, \\
        C + (m + first) * c_row + n, c_row, add)
#define TILES(vectors, full) do { \\
        TILE(0, $rows < TALL ? $rows : TALL, vectors, full); \\
        if ($rows > TALL) TILE(TALL, $rows - TALL, vectors, full); \\
    } while (0)
    for (int64_t n = 0; n < N; n += $panel, B += b_panel)
        if ($rows == $tall && N - n >= $panel) {
            for (int64_t m = 0; m < M; m += $rows) TILES($across, 1);
        } else if (N - n > LANES_$T) {
            for (int64_t m = 0; m < M; m += $rows) TILES($across, 0);
        } else
            for (int64_t m = 0; m < M; m += $rows) TILES(1, 0);
#undef TILES
#undef TILE
}
""")

TURN = Template("""\
/* to[panel][k][n] = from[n * column + k * step]: B laid out in panels, one after the other */
ONCE void panels_$F(int64_t N, int64_t K, const $T *from,
                                                int64_t column, int64_t step, $T *to)
{
    typedef $T four __attribute__((vector_size(4 * sizeof($T)), aligned(sizeof($T)), may_alias));
    typedef $I places __attribute__((vector_size(4 * sizeof($T)), unused));
    for (int64_t n = 0; n < N;) {
        $T *panel = to + n / $panel * (K * $panel) + n % $panel;
        const $T *p = from + n * column;
        int64_t k = 0;
        const int wide = N - n < 4 ? N - n : 4;
        for (; step == 1 && wide == 4 && k + 4 <= K; k += 4) {
            four a = *(const four *)(p + k), b = *(const four *)(p + column + k),
                 c = *(const four *)(p + 2 * column + k), d = *(const four *)(p + 3 * column + k);
            four ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
            four AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);
            *(four *)(panel + k * $panel) = SHUFFLE(ab, cd, 0, 1, 4, 5);
            *(four *)(panel + (k + 1) * $panel) = SHUFFLE(ab, cd, 2, 3, 6, 7);
            *(four *)(panel + (k + 2) * $panel) = SHUFFLE(AB, CD, 0, 1, 4, 5);
            *(four *)(panel + (k + 3) * $panel) = SHUFFLE(AB, CD, 2, 3, 6, 7);
        }
        for (; k < K; k++)
            for (int i = 0; i < wide; i++) panel[k * $panel + i] = p[i * column + k * step];
        n += wide;
    }
}
""")

DOTS = Template("""\
/* A tile of C by vectors along k, which is the unit axis of A and of B. */
INLINE void dot_tile_$T(const int rows, const int columns, int64_t K, const $T *A, int64_t a_row,
                        const $T *B, int64_t b_column, $T *C, int64_t c_row, int64_t c_column,
                        int add)
{
    vector_$T c[4][4];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) c[i][j] = (vector_$T){0};
    for (int64_t k = 0; k < K; k += LANES_$T) {
        const lanes_$T there = first_$T(K - k);
        vector_$T b[4];
        UNROLL for (int j = 0; j < columns; j++) b[j] = load_lanes_$T(B + j * b_column + k, there);
        UNROLL for (int i = 0; i < rows; i++) {
            const vector_$T a = load_lanes_$T(A + i * a_row + k, there);
            UNROLL for (int j = 0; j < columns; j++) c[i][j] += a * b[j];
        }
    }
    enum { FEW = LANES_$T < 4 ? LANES_$T : 4 };
    typedef $T few __attribute__((vector_size(FEW * sizeof($T))));
    few terms[4][4][LANES_$T / FEW] __attribute__((aligned(REGISTER)));
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) store_$T(($T *)terms[i][j], c[i][j]);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            $T *p = C + i * c_row + j * c_column, total = add ? *p : 0;
            few sums = terms[i][j][0];
            UNROLL for (int l = 1; l < LANES_$T / FEW; l++) sums += terms[i][j][l];
            UNROLL for (int l = 0; l < FEW; l++) total += sums[l];
            *p = total;
        }
}

/* C (+)= A B where both are read along k: for few rows or columns. */
ONCE void dots_$T(
    int64_t M, int64_t N, int64_t K, const $T *A, int64_t a_row, const $T *B, int64_t b_column,
    $T *C, int64_t c_row, int64_t c_column, int add)
{
#define DOTS(rows, columns) dot_tile_$T(rows, columns, K, A + m * a_row, a_row, B + n * b_column, \
        b_column, C + m * c_row + n * c_column, c_row, c_column, add)
    for (int64_t n = 0, wide; n < N; n += wide) {
        wide = N - n < 4 ? 1 : 4;
        for (int64_t m = 0, high; m < M; m += high) {
            high = M - m < 4 ? 1 : 4;
            if (high == 4 && wide == 4) DOTS(4, 4);
            else if (high == 4) DOTS(4, 1);
            else if (wide == 4) DOTS(1, 4);
            else DOTS(1, 1);
        }
    }
#undef DOTS
}
""")

SHUFFLE = """\
#if defined __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif
"""


@cache
def vectors(T: str) -> tuple[str, ...]:
    """Helpers: vectors of `float` or `double`, whole and partial loads and stores."""
    if T == "float":
        names = {"ps": "ps", "I": "int32_t", "lanes": "{0, 1, 2, 3, 4, 5, 6, 7}"}
    else:
        names = {"ps": "pd", "I": "int64_t", "lanes": "{0, 1, 2, 3}"}
    return PROCESSOR, VECTORS.substitute(T=T, **names)


def heights(count: int, tall: int = ROWS) -> list[tuple[int, int]]:
    """`count` rows as (height of a tile, rows that get such tiles): of heights that differ by one,
    for a tile of few rows waits for its sums."""
    tiles = -(-count // tall)
    low, more = divmod(count, tiles) if tiles else (0, 0)
    found = [(low + 1, more * (low + 1)), (low, count - more * (low + 1))]
    return [(height, rows) for height, rows in found if rows]


def blocks(T: str, *counts: int) -> tuple[str, ...]:
    """Helpers: `rowsR_T` for each height of the tiles of so many rows."""
    t = tile()
    high = dict.fromkeys(height for count in counts for height, _ in heights(count, t.tall))
    return (*vectors(T), *tiles(T, t, *high))


@cache
def tiles(T: str, t: Tile, *high: int) -> tuple[str, ...]:
    """The texts of a tile and of blocks of so many rows."""
    unroll = f'        _Pragma("GCC unroll {t.unroll}")\n' if t.unroll > 1 else ""
    names = {"F": t.suffix(T), "panel": t.panel(T), "across": t.across or "ACROSS"}
    return (
        TILE.substitute(T=T, F=t.suffix(T), unroll=unroll),
        *(BLOCK.substitute(names, T=T, rows=r, tall=t.tall) for r in high),
    )


def panels(T: str) -> tuple[str, ...]:
    """Helpers: `panels_T`, which lays out a transposed B in panels."""
    t, I = tile(), "int32_t" if T == "float" else "int64_t"
    return (*vectors(T), SHUFFLE, TURN.substitute(T=T, F=t.suffix(T), I=I, panel=t.panel(T)))


def panels_size(N: int, K: int) -> int:
    """Elements that `panels_T` may write: the last panel is as wide as the others."""
    return (N + tile().widest - 1) * K


@cache
def dots(T: str) -> tuple[str, ...]:
    """Helpers: `dots_T`, products of few rows or columns with k along both operands."""
    return (*vectors(T), DOTS.substitute(T=T))


def calls(T: str, rows: int, columns, k, segments, a, b, c, add: str) -> str:
    """Calls of the block functions for `rows` rows: a is (pointer, row, step, segment) of A,
    b (pointer, step, segment) of B, c (pointer, row) of C."""
    text, at, t = "", 0, tile()
    for height, count in heights(rows, t.tall):
        x = a[0] if not at else f"{a[0]} + {at * a[1]}"
        y = c[0] if not at else f"{c[0]} + {at * c[1]}"
        text += (
            f"rows{height}_{t.suffix(T)}({count}, {columns}, {k}, {segments}, {x}, {a[1]}, {a[2]}, "
            f"{a[3]},\n    {b[0]}, {b[1]}, {b[2]}, {t.panel(T)}, {y}, {c[1]}, {add});\n"
        )
        at += count
    return text
