"""Tiles of products whose neighbouring terms are multiplied and summed by one instruction.

The left side is brought into the form that a tile reads, block by block of rows; of a convolution a
row is the window of a pixel. The right side is in panels, which are packed before the runs where
it is constant. What multiplies depends on the processor:

    pairs   int16 · int8     AVX2's vpmaddwd, or plain C          16 columns
    shorts  int16 · int16    the same, for many rows
    bytes   int8 · int8      AVX2's vpmaddubsw, left not negative 16 columns
    fours   uint8 · int8     VNNI's vpdpbusd, left side + 128     32 columns
    twos    int16 · int16    VNNI's vpdpwssd                      32 columns
    tiles   int8 · int8      AMX's tdpbssd, of 64 terms           32 columns

Sums of whole numbers are the same everywhere, to the last bit.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.codegen.plain_products import write_loops
from ...engine.codegen.writer import worth_sharing
from ...engine.core.dtype import int8, int32
from ...engine.core.polynomial import loop as variable
from ...engine.core.record import Record
from ..kernel_frame import KernelFrame, RowBlocks
from ..machine import facts
from .known_inputs import is_known_unsigned
from .microkernel import AMX
from .product import Product, fits_rows, product_of

MOST = 56
"""The most rows of a block, in tiles of nearly equal heights: images often have 7 · 2ⁿ lines."""

ON_STACK = 1 << 18
"""Most bytes of a block of rows on the stack of a thread. Each block reads all panels."""

INTEGERS = read_template("integers.c", __file__)
PLAIN, TILE, BLOCKS, PANELS, WINDOWS = (
    Template(read_template(f"integer_{name}.c", __file__))
    for name in ("plain", "tile", "blocks", "panels", "windows")
)

MANY = 128
"""Rows from which on widening panels takes longer than reading larger ones."""

SERIAL = 1 << 19
"""Multiplications from which on a second thread pays."""


class TileFormat(NamedTuple):
    """The form of both sides, and what multiplies them: the holes of the templates."""

    F: str  # the end of names
    A: str  # a term of the left side
    B: str  # one of the panels
    dot: str = "pairs"
    needs: str = "__AVX2__"
    rows: int = 6
    panel: int = 16  # columns: two vectors of sums
    terms: int = 2  # that are summed at once
    header: int = 0  # numbers at the beginning of a panel
    sums: str = "counts_8"
    words: str = "words_8"
    loose: str = "loose_words"
    load: str = "as_it_lies"
    one: str = "%s"  # a number as a term
    wide: str = ""  # `copied` numbers, likewise
    copied: int = 16
    zero: int = 0  # the bytes of 0
    guarded: int = 0  # whether numbers of the left side must not be negative, as a run finds
    fill: int = 0  # the terms of a tile of the processor, of which a row has a multiple

    def row(self, terms: int) -> int:
        """The terms of a row, filled up."""
        fill = self.fill or self.terms
        return -(-terms // fill) * fill

    def count_packed(self, columns: int, terms: int) -> int:
        """The numbers of all panels."""
        return -(-columns // self.panel) * (self.panel * self.row(terms) + self.header)

    @property
    def tile(self) -> tuple[str, str]:
        """Helpers: `integer_rows_F`, and `integer_panel_F` where it is of vectors."""
        plain = PLAIN.substitute(self._asdict())
        if self.fill:
            return INTEGERS, AMX, plain, BLOCKS.substitute(self._asdict())
        call = "        case %d: integer_tile_%s(%d, groups, a, a_row, b, c, c_row, n); break;"
        each = "\n".join(call % (n, self.F, n) for n in range(1, self.rows + 1))
        return INTEGERS, plain, TILE.substitute(self._asdict(), each=each)

    @property
    def panels(self) -> tuple[str, ...]:
        """Helpers: `integer_rows` and `integer_panels`."""
        return *self.tile, PANELS.substitute(self._asdict() | {"fill": self.row(1)})

    @property
    def windows(self) -> str:
        """The helper `integer_windows`."""
        return WINDOWS.substitute(self._asdict(), one=self.one % "from[k]")


PAIRS = TileFormat(
    "int8_t", "int16_t", "int8_t", load="wide_int8_t",
    wide="*(loose_shorts *)(to + k) = wide_int8_t(from + k)",
)  # fmt: skip
BYTES = TileFormat(  # a sum of two products, 2 · 127 · 128 at most, fits int16
    "bytes", "int8_t", "int8_t", "bytes", terms=4, load="bytes_32", guarded=1,
    wide="*(loose_bytes *)(to + k) = *(const loose_bytes *)(from + k)",
)  # fmt: skip
SHORTS = PAIRS._replace(F="int16_t", B="int16_t", load="wide_int16_t")
COPY = "*(loose_words_16 *)(to + k) = *(const loose_words_16 *)(from + k)"
WIDE = {"rows": 8, "panel": 32, "words": "words_16", "loose": "loose_words_16"}
FOURS = TileFormat(
    "fours", "uint8_t", "int8_t", "fours", "__AVX512VNNI__", terms=4, header=4 * 32,
    sums="words_16", one="(uint8_t)(%s ^ 128)", zero=128,
    wide=f"{COPY} ^ (int32_t)0x80808080", copied=64, **WIDE,
)  # fmt: skip
TWOS = TileFormat("twos", "int16_t", "int16_t", "twos", "__AVX512VNNI__", sums="words_16", **WIDE)
TILES = TileFormat(
    "tiles", "int8_t", "int8_t", needs="tile_load", rows=8, panel=32, terms=4, wide=COPY, copied=64,
    fill=64,
)  # fmt: skip


def choose_format(left: Record, rows: int) -> TileFormat:
    """The form for int8 on the processor that kernels are written for. Panels of int16 are twice as
    large, and no tile of rows widens them again.
    """
    if facts().vnni:
        return TILES if facts().amx else FOURS
    return BYTES if is_known_unsigned(left) else SHORTS if rows >= MANY else PAIRS


def find_format(record: Record, p: Product) -> TileFormat | None:
    """The form in which tiles multiply the inputs of a product; None if no instruction multiplies
    their numbers in groups.
    """
    x, y = record.inputs
    if x.dtype == y.dtype == int8.numpy and record.dtype == int32.numpy:
        return choose_format(y if p.exchanged else x, p.m.size)
    return None


def write_product(frame: KernelFrame, p: Product) -> Kernel | None:
    """The kernel of a product in groups of terms, if blocks of its rows are whole rows of the
    result; None if there is no form for it, or if its rows are too few.
    """
    form = find_format(frame.record, p)
    if form is None or not (p.count == 1 and p.k.size and fits_rows(p, frame.out)):
        return None
    sizes, left = (p.m.size, p.n.size, p.k.size), f"in{int(p.exchanged)}"
    one, width, row = f"{left}[m * {p.m.x} + k * {p.k.x}]", p.k.size, form.row(p.k.size)
    if form.fill and p.k.x == 1 and width == row:  # tiles read rows as they lie
        load, lie = "", (f"{left} + top * {p.m.x}", p.m.x)
    else:
        zeros = "" if form.fill else "".join(f"    to[{k}] = 0;\n" for k in range(width, row))
        lie = "wide", row
        load = (
            f"for (int64_t m = top; m < top + rows; m++) {{\n"
            f"    {form.A} *to = wide + (m - top) * {row};\n"
            f"    for (int64_t k = 0; k < {width}; k++) to[k] = {form.one % one};\n"
            f"{zeros}}}\n"
        )
    steps = p.n.y, p.k.y
    return write_tiles(frame, form, int(not p.exchanged), 1, sizes, steps, load, lie)


def write_tiles(
    frame: KernelFrame, form: TileFormat, right: int, count: int, sizes, steps, load: str, lie,
    helpers=(),
) -> Kernel | None:  # fmt: skip
    """The kernel of products of M rows, N columns and K terms for each of `count` images; None if
    a block does not fit the stack, or if there are too few rows to pack the panels for. `steps`
    lead through input `right`, from column to column and from term to term; `load` is C text that
    brings a block's rows into `wide`, and `lie` says in C where they are then, and how far apart.
    """
    (m, n, k), row = sizes, form.row(sizes[2])
    width = 1 if form.A.endswith("int8_t") else 2
    block = min(MOST, ON_STACK // (width * max(row, 1)) // form.rows * form.rows)
    if not block or not (frame.is_constant(right) or count * m >= form.rows):
        return None
    pack = f"integer_panels_{form.F}({n}, {k}, {{given}}, {steps[0]}, {steps[1]}, {{made}});"
    frame.pack("panels", right, form.count_packed(n, k), pack, form.B)
    tiles = (
        f"{stack_array(form.A, 'wide', block * row + form.copied)}\n{load}"
        f"const int64_t at = (n * {m} + top) * {n};\n"
        f"integer_rows_{form.F}(rows, {n}, {row // form.terms}, {lie[0]}, {lie[1]}, panels,\n"
        f"    out0 + at, {n});\n"
    )
    blocks, pays = RowBlocks(count, m, block), worth_sharing(count * m * n * k, SERIAL + 1)
    return frame.write_tiled_kernel(blocks, tiles, pays, (*form.panels, *helpers))


def write_plain(frame: KernelFrame) -> Kernel:
    """The kernel in plain loops, for integers and booleans. The innermost one runs through the
    result's columns, so the compiler makes vectors of it. Sums wrap around, as in NumPy.
    """
    record = frame.record
    p = product_of(*(e.spec for e in record.inputs), record.spec, **record.attrs, keep_order=True)
    letters = [*(f"b{k}" for k in range(len(p.batch))), "m", "k", "n"]
    axes = [(variable(c, a.size), a) for c, a in zip(letters, (*p.batch, p.m, p.k, p.n))]
    places = [sum(i * getattr(a, step) for i, a in axes) for step in ("out", "x", "y")]
    if p.exchanged:
        places[1:] = places[:0:-1]
    term = "{} |= {} & {}" if record.dtype.kind == "b" else "{} += {} * {}"
    return frame.kernel(write_loops(record, [i for i, _ in axes], places, (), term, frame.adds))
