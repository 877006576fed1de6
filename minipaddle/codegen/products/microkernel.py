"""The microkernel of matrix products and convolutions: C text for some rows of a product.

    C[m, n] (+)= Σ A[m, k] B[k, n]        for a block of rows m, all n, all k

A tile of C, a few rows by a few vectors, stays in registers while k runs. For each k the vectors of
B are loaded once, and each element of A is loaded once and multiplied with all lanes. A may have
any strides. Neighbouring columns of B and of C are neighbours in memory. k may run over `segments`,
so the window of a convolution, whose rows are apart in the image, needs no copy (im2col).

The vectors are GCC's vector types, as wide as a register; only partial loads and stores need
assembly. 8 rows by 2 vectors of 16 floats reach 98 % of the peak of a Zen 4. The order of loops and
branches decides what GCC keeps in registers: measure after each change.
"""

from __future__ import annotations

import re
from functools import cache
from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import read_template
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.writer import least
from ..c_text import SIZES, loop
from ..compile_units import share
from ..machine import facts
from ..open_sizes import is_open
from .bias_and_bounds import NOTHING, BiasAndBounds

ROWS = 8
"""Most rows of a block function; also the rows of a tile if there are 32 registers."""

ACROSS = 2
"""The vectors of a tile where nothing else is said, in `processor.c` too."""

WIDEST = 32
"""Most elements of a panel (the columns of a tile) on any processor. The width of a panel is a
multiple of 4, and divides 3 · WIDEST."""

TERMS = 112
"""About how many terms are summed one after another before the sum is added to the result: the
rounding error of a sum grows with its length."""

CHUNK = 1024
"""Columns of a few rows that stay in the first-level cache."""

LANES = 16
"""Most elements of a vector."""


class HalfType(NamedTuple):
    """How half precision in memory becomes vectors of floats: the holes of `halves.c`."""

    E: str  # the type in memory
    needs: str  # the macro of a compiler whose processor has the instruction
    widen: str
    finish: str
    one: str  # a single number
    none: str
    narrow: str  # the function that rounds a single number
    bits: str  # vectors of rounded numbers, which `rounded` makes and `put` stores
    rounded: str
    put: str


HALF_TYPES = {
    "bfloat16": HalfType(
        "bfloat16", "__AVX2__", "vpmovzxwd", "(vector_float)((bits_bfloat16)v << 16)", "widen",
        "(bfloat16){0}", "narrow", "bits_bfloat16",
        "const bits_bfloat16 bits = (bits_bfloat16)v, none = (bits_bfloat16)(v != v);\n"
        "    const bits_bfloat16 near = (bits + 0x7fff + (bits >> 16 & 1)) & ~none;\n"
        "    return (near | ((bits | 0x400000) & none)) >> 16;", "vpmovdw %1",
    ),
    "float16": HalfType(
        "float16", "__F16C__", "vcvtph2ps", "v", "widen_half", "(float16){0}",
        "narrow_half", "vector_float", "return v;", "vcvtps2ph $0, %1",
    ),
}  # fmt: skip


PAIRS = "pairs"
"""The type of two neighbouring terms in bfloat16: both sides are multiplied as they are, where the
processor has an instruction for it. A product of pairs has half as many terms."""


NARROW = "narrow_"
"""Begins the name of a type whose vectors have 32 bytes where a register has 64. A processor that
computes registers in halves (Zen 4) multiplies two of them in the time of one register."""


def widen_type(E: str) -> str:
    """The type in which numbers of type E are summed."""
    return "float" if E in HALF_TYPES or E == PAIRS else E


def most_terms(T: str) -> int:
    """About how many terms of type T are summed one after another. The numbers of pairs have 16
    bits less, so sums may be longer."""
    return 4 * TERMS if T == PAIRS else TERMS


class Tile(NamedTuple):
    """The part of C that stays in registers, and how far the loop over k is unrolled."""

    tall: int  # rows of a block
    across: int = 0  # vectors; 0: the default of the processor
    unroll: int = 1

    @property
    def widest(self) -> int:
        """Most elements of a panel; the width of a panel divides 3 · widest."""
        return self.across * LANES or WIDEST

    def panel(self, T: str) -> str:
        """C text: the number of columns of a tile."""
        T = widen_type(T)
        return f"({self.across} * LANES_{T})" if self.across else f"PANEL_{T}"

    def suffix(self, T: str) -> str:
        """The end of function names: each tile has its own functions."""
        return T if self == Tile(usual_height()) else "_".join([T, *map(str, self)])


def usual_height() -> int:
    """The rows of a block where nothing else is said. With AVX2 there are registers for six by two
    vectors, twelve sums: an addition takes four cycles, and two begin in each.
    """
    machine = facts()
    return 6 if (machine.vector, machine.registers) == (32, 16) else ROWS


def tile(tall: int = 0, across: int = 0) -> Tile:
    """The tile of the kernel that is being written, by default of this size."""
    return Tile(
        pick("tall", tall or usual_height(), (8, 6, 4)),
        pick("across", across, (1, 2, 3, 4)),
        pick("unroll", 1, (1, 2, 4)),
    )


def fit_tile(rows: int, columns: int, T: str) -> Tile:
    """The tile for a product of `rows` × `columns`. Its results, a vector of B for each of
    its columns, and two more vectors fit the registers: a result in memory would take four times as
    long. Of such tiles, the one whose steps of k cost least: multiply-adds or loads, whichever are
    more, and two more for the loop. Masked vectors, if there are two or more at the end of a row,
    are charged as a whole tile.
    """
    machine, usual = facts(), usual_height()
    if is_open(columns):
        return tile(usual)
    tall = usual if is_open(rows) else min(rows, usual)
    lanes, high = machine.vector // SIZES[T], min(tall, machine.registers // 4)
    widest = max(min((machine.registers - 2) // (high + 1), 4), 2)

    def cost(across: int) -> int:
        tiles, rest = divmod(columns, across * lanes)
        last = (across if rest > lanes else 1) if rest else 0
        step = lambda vectors: max(vectors * high, vectors + high) + 2
        return tiles * step(across) + (step(last) if last else 0)

    best = min(range(widest, 1, -1), key=cost)
    return tile(tall, 0 if best == ACROSS else best)


PROCESSOR = read_template("processor.c", __file__)

VECTORS = Template(read_template("vectors.c", __file__))

TILE = Template(read_template("tile.c", __file__))

BLOCK, ANY = (Template(read_template(f"{x}.c", __file__)) for x in ("rows", "any_rows"))

TURN = Template(read_template("panels.c", __file__))

HALVES, HALF_TURN, HALF_STORES = (
    Template(read_template(f"{x}.c", __file__)) for x in ("halves", "half_panels", "half_stores")
)

PAIR = read_template("pairs.c", __file__)

PAIR_TURN = Template(read_template("pair_panels.c", __file__))

AMX, TILED_PAIRS, TURNED_PAIRS = (
    read_template(f"{name}.c", __file__) for name in ("tiles", "tiled_pairs", "turned_pairs")
)

DOTS = Template(read_template("dots.c", __file__))

FEW_ROWS, FEW = (Template(read_template(name, __file__)) for name in ("few_rows.c", "few.c"))

CALLED = re.compile(
    r"\brows(\d+)_(((?:narrow_)?(?:float|double)|bfloat16|float16|pairs)(?:_(\d+)_(\d+)_(\d+))?)\("
)
"""A call of a block function: its rows, the end of its name, and in this the type and a tile."""

SHUFFLE = read_template("shuffle.c", __file__)


@cache
def vectors(T: str) -> tuple[str, ...]:
    """Helpers: vectors of `float` or `double`, whole and partial loads and stores."""
    of = T.removeprefix(NARROW)
    if of == "float":
        names = {"ps": "ps", "I": "int32_t", "lanes": "{0, 1, 2, 3, 4, 5, 6, 7}"}
    else:
        names = {"ps": "pd", "I": "int64_t", "lanes": "{0, 1, 2, 3}"}
    if of == T:
        return PROCESSOR, VECTORS.substitute(names, T=T, register="REGISTER", alias="")
    alias = f"typedef {of} {T};\n"
    return *vectors(of), VECTORS.substitute(names, T=T, register=32, alias=alias)


@cache
def elements(E: str) -> tuple[str, ...]:
    """Helpers: vectors of the type in which numbers of type E are multiplied, loaded from E."""
    loads = (HALVES.substitute(HALF_TYPES[E]._asdict()),) if E in HALF_TYPES else ()
    loads = (PAIR,) if E == PAIRS else loads
    return *vectors(widen_type(E)), *loads


@cache
def stores(E: str) -> tuple[str, ...]:
    """Helpers: stores of vectors of the type in which numbers of type E are summed."""
    text = (HALF_STORES.substitute(HALF_TYPES[E]._asdict()),) if E in HALF_TYPES else ()
    return *elements(E), *text


def heights(count: int, tall: int = ROWS) -> list[tuple[int, int]]:
    """`count` rows as pairs (height of a tile, rows with this height). The heights differ by one: a
    tile of few rows would be slow.
    """
    tiles = -(-count // tall)
    low, more = divmod(count, tiles) if tiles else (0, 0)
    pairs = [(low + 1, more * (low + 1)), (low, count - more * (low + 1))]
    return [(height, rows) for height, rows in pairs if rows]


def blocks(text: str) -> tuple[str, ...]:
    """Helpers: the block functions that C text calls."""
    helpers = {}
    for rows, F, T, *sizes in dict.fromkeys(CALLED.findall(text)):
        t = Tile(*map(int, sizes)) if sizes[0] else Tile(usual_height())
        define = define_block if int(rows) else define_any
        helpers |= dict.fromkeys(define(int(rows), F, T, t))
    if "tiled_pairs(" in text:
        rows = define_block(1, PAIRS, PAIRS, Tile(usual_height()))
        helpers |= dict.fromkeys(share(TILED_PAIRS, AMX, *rows))
    if "turn_pairs(" in text:
        helpers |= dict.fromkeys(share(TURNED_PAIRS, *elements(PAIRS), SHUFFLE))
    return tuple(helpers)


@cache
def define_block(rows: int, F: str, T: str, t: Tile) -> tuple[str, ...]:
    """The text of a tile, and that of the function of blocks of `rows` rows; F ends their names."""
    unroll = f'        _Pragma("GCC unroll {t.unroll}")\n' if t.unroll > 1 else ""
    names = {"F": F, "E": T, "T": widen_type(T)}
    names |= {"panel": t.panel(T), "across": t.across or "ACROSS"}
    names |= {"A": names["T"], "multiply": "c[i][j] += p[i * a_row] * b[j]"}
    if T == PAIRS:
        multiply = "dot_halves(c[i][j], (bits_pairs){0} + p[i * a_row], b[j])"
        names |= {"A": T, "multiply": multiply}
    tile_text = TILE.substitute(names, unroll=unroll)
    return share(BLOCK.substitute(names, rows=rows, tall=t.tall), *elements(T), tile_text)


@cache
def define_any(_: int, F: str, T: str, t: Tile) -> tuple[str, ...]:
    """The function of blocks of a number of rows that only a run knows, and those that it calls."""
    names, highest = {"F": F, "E": T, "T": widen_type(T), "tall": t.tall}, range(1, t.tall + 1)
    names["A"] = T if T == PAIRS else names["T"]
    needs = dict.fromkeys(x for rows in highest for x in define_block(rows, F, T, t))
    cases = "".join(f"        ROWS({rows})\n" for rows in highest)
    return share(ANY.substitute(names, cases=cases), *needs)


def panels(T: str, t: Tile | None = None, source: str = "") -> tuple[str, ...]:
    """Helpers: `panels_T`, which packs B into panels; `source` is its type if that is another."""
    t, source = t or tile(), source or T
    if T == PAIRS:
        text = PAIR_TURN.substitute(F=suffix_of(T, t, source), panel=t.panel(T))
        return share(text, *elements(T), SHUFFLE)
    if source in HALF_TYPES:
        half, names = HALF_TYPES[source], {"D": T, "F": suffix_of(T, t, source)}
        copy, one, none = f"memcpy(panel + i, p + i, LANES_{T} * sizeof *p)", "", half.none
        if source != T:
            copy, one, none = f"store_{T}(panel + i, load_{source}(p + i))", half.one, "0"
        names |= {"E": source, "panel": t.panel(T), "copy": copy, "one": one, "none": none}
        return share(HALF_TURN.substitute(names), *elements(source))
    I = "int32_t" if T == "float" else "int64_t"
    text = TURN.substitute(T=T, F=t.suffix(T), I=I, panel=t.panel(T))
    return share(text, *vectors(T), SHUFFLE)


def suffix_of(T: str, t: Tile, source: str) -> str:
    """The end of the name of the function that packs numbers of type `source` into panels of T."""
    return t.suffix(T) + f"_of_{source}" * (source != T)


def call_panels(
    T: str, t: Tile, columns, terms, b: str, column, step, to: str, source: str = ""
) -> str:
    """The call that packs B into panels; its columns are `column` and its terms `step` apart."""
    sizes = f"{columns}, {terms}, {b}, {column}, {step}"
    return f"panels_{suffix_of(T, t, source or T)}({sizes}, {to});\n"


def panels_size(N: int, K: int, t: Tile | None = None) -> int:
    """Most elements that `panels_T` writes: the last panel has full width."""
    return (N + (t or tile()).widest - 1) * K


@cache
def dots(E: str) -> tuple[str, ...]:
    """Helpers: `dots_E`, products of few rows or columns with k along both operands."""
    names = {"load": f"load_part_{E}", "rest": "K - k"}
    if E not in HALF_TYPES:
        names = {"load": f"load_lanes_{E}", "rest": "there"}
    return share(DOTS.substitute(names, E=E, T=widen_type(E)), *elements(E))


@cache
def few(E: str, rows: int) -> tuple[str, ...]:
    """Helpers: `fewR_E`, products of R rows that read B once, row by row."""
    names = {"E": E, "T": widen_type(E)}
    helpers = *elements(E), FEW_ROWS.substitute(names)
    return share(FEW.substitute(names, rows=rows, sum=TERMS, columns=CHUNK), *helpers)


def call_blocks(
    T: str, rows: int, columns, k, segments, a, b, c, add: str, t=None, end=NOTHING
) -> str:
    """Calls of the block functions for `rows` rows: a is (pointer, row, step, segment) of A,
    b (pointer, step, segment, the distance of panels, and of what is fetched beside the next panel)
    of B, c (pointer, row) of C; `end` is what becomes of the sums."""
    text, at, t = "", 0, t or tile()
    if has_tiles(T) and a[2] == 1 and t == Tile(usual_height()):
        return call_block(T, 0, rows, columns, k, segments, a, b, c, add, t, end, "tiled")
    if is_open(rows):
        return call_block(T, 0, rows, columns, k, segments, a, b, c, add, t, end)
    for height, count in heights(rows, t.tall):
        x, y = (f"{p} + {at * step}" if at else p for p, step in ((a[0], a[1]), c))
        sides = (x, *a[1:]), b, (y, c[1])
        text += call_block(T, height, count, columns, k, segments, *sides, add, t, end)
        at += count
    return text


def has_tiles(T: str) -> bool:
    """Whether the processor has tiles (AMX) for products of this type."""
    return T == PAIRS and facts().amx


def call_block(
    T: str, height: int, count, columns, k, segments, a, b, c, add, t: Tile, end=NOTHING, name=""
) -> str:
    """The same for `count` rows, a multiple of the height of the block function."""
    b = (*b, *(t.panel(T), "0")[len(b) - 3 :])
    if T in ("float", "double") and facts().vector == 64 and type(columns) is int:
        T = NARROW * (columns * SIZES[T] <= 32) + T
    return (
        f"{name or f'rows{height}'}_{t.suffix(T)}({count}, {columns}, {k}, {segments}, "
        f"{', '.join(map(str, a))},\n    {b[0]}, {b[1]}, {b[2]}, {b[3]}, {c[0]}, {c[1]}, {add}, "
        f"{b[4]}, {end});\n"
    )


def sum_terms(
    T: str, rows: int, columns, k: int, segments: int, a, b, c, add: str = "0", most: int = 0,
    finish: BiasAndBounds | None = None, t: Tile | None = None, terms: str = "",
) -> str:  # fmt: skip
    """The same for all terms of all segments, at most `most` in one pass, or TERMS; of the k terms
    there may be fewer: `terms`.
    """
    most, terms = most or most_terms(T), terms or str(k)
    if k * segments <= most and not is_open(k):
        end = finish.text(widen_type(T)) if finish else NOTHING
        return call_blocks(T, rows, columns, terms, segments, a, b, c, add, t, end)
    many, deep = max(most // k, 1), most if is_open(k) else min(k, most)
    one = segments == 1
    part = lambda pointer, segment, step: (
        f"{pointer}{'' if one else f' + s * {segment}'} + k * {step}"
    )
    a, b = (part(a[0], a[3], a[2]), *a[1:]), (part(b[0], b[2], b[1]), *b[1:])
    count, spans = least(f"{terms} - k", deep), least(f"{segments} - s", many)
    last = f"k + {deep} >= {terms}" if one else f"s + {many} >= {segments} && k + {deep} >= {terms}"
    end = finish.text(widen_type(T), last) if finish else NOTHING
    add, spans = (f"{add} || k > 0", 1) if one else (f"{add} || s + k > 0", f"({spans})")
    text = call_blocks(T, rows, columns, f"({count})", spans, a, b, c, add, t, end)
    text = loop("k", terms, text, step=deep)
    return text if one else loop("s", segments, text, step=many)
