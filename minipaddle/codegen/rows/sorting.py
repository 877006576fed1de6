"""Sorting in C: the stable order of lines by keys, which are whole numbers.

Keys rise with the values; NaN is the largest, as in NumPy. In a falling order all bits of a key are
turned, so equal elements keep their order there too. Many short lines are sorted side by side, in a
network that compares vectors; other lines digit by digit.
"""

from __future__ import annotations

import re
from math import log
from typing import NamedTuple

from ...engine.codegen.kernel import C_TYPES, emits, read_template
from ...engine.codegen.scalar import wide
from ...engine.core import dtype as dt
from ..target import fill, insert
from .axis_lines import Lines, fill_kernel, lines_of
from .scans import place_type

INTEGER = read_template("key_of_integer.c", __file__)

RADIX = read_template("radix.c", __file__)

NETWORK = read_template("network.c", __file__)

ORDER = read_template("order.c", __file__)
"""Each line is sorted in a workspace; OUTPUT stores what is wanted of it."""

ORDER_BY_NETWORK = read_template("order_by_network.c", __file__)
"""The same for LANES lines at once."""

FEW = read_template("best_few.c", __file__)
"""The best elements of each line, best first."""

PARTS = 8
"""Most threads that sort at the same time: each needs room."""

SHORT = 4096
"""The longest line for which a network is faster."""

PAIR = "typedef struct { KEY key; PLACE place; } ITEM;\n"


def key_functions() -> str:
    """The functions that make keys of values, and values of keys."""
    texts = [read_template("keys.c", __file__)]
    for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64):
        bits = 8 * d.numpy.itemsize
        low = f"(uint{bits}_t)1 << {bits - 1}" if d.numpy.kind == "i" else "0"
        words = {"U": f"uint{bits}_t", "LOWEST": low}
        text = INTEGER.replace("key_T", f"key_{C_TYPES[d.numpy]}")
        text = text.replace("value_T", f"value_{C_TYPES[d.numpy]}")
        texts.append(fill(text, C_TYPES, d.numpy, words))
    return "\n".join(texts)


KEYS = key_functions()


class SortedItems(NamedTuple):
    """The elements to sort: the keys of values of a dtype, each alone or with its place in the
    line.

    A key of up to four bytes and its place are one number; a longer key makes them a pair.
    """

    dtype: object
    lines: Lines
    places: bool

    @property
    def bits(self) -> int:
        """The bits of a key."""
        return 8 * wide(self.dtype).itemsize

    @property
    def is_pair(self) -> bool:
        return self.places and (self.bits > 32 or self.lines.length >= 1 << 32)

    @property
    def nbytes(self) -> int:
        """The bytes of an item."""
        return 16 if self.is_pair else 8 if self.places else self.bits // 8

    @property
    def lanes(self) -> int:
        """How many lines a network sorts side by side."""
        return 64 // self.nbytes

    @property
    def by_network(self) -> bool:
        few = self.lines.count * 2 < self.lanes or self.lines.length > SHORT
        return not (self.is_pair or few)

    @property
    def words(self) -> dict:
        """The words of a template."""
        key, position = f"uint{self.bits}_t", place_type(self.lines)
        item = f"pair_{key}_{position}" if self.is_pair else f"uint{8 * self.nbytes}_t"
        words = {"KEY": key, "PLACE": position, "ITEM": item, "DIGITS": self.bits // 8}
        words |= {"LANES": self.lanes, "KEYOF": f"key_{C_TYPES[wide(self.dtype)]}"}
        method = "network" if self.by_network else "radix"
        words["SORT"] = f"{method}_{item}_{self.bits}"
        words["STEP"] = self.lanes if self.by_network else 1
        return words

    def fill(self, text: str, words: dict) -> str:
        """A template in which KEYIN and PLACEIN take an item apart, and MAKE makes one."""
        shift = self.is_pair or not self.places
        make = "(ITEM){key, i}" if self.is_pair else "(ITEM)key << 32 | i" if self.places else "key"
        key = ".key" if self.is_pair else "" if shift else " >> 32"
        place = ".place" if self.is_pair else " & UINT32_MAX"
        for name, cast, after in (("KEYIN", "", key), ("PLACEIN", "(int64_t)", place)):
            text = re.sub(rf"{name}\(((?:[^()]|\([^()]*\))*)\)", rf"{cast}(\1{after})", text)
        return fill(text.replace("MAKE", make), C_TYPES, self.dtype, words)

    @property
    def helpers(self) -> tuple[str, ...]:
        """The functions that a kernel calls."""
        words = self.words
        pair = (self.fill(PAIR, words),) if self.is_pair else ()
        text = NETWORK if self.by_network else RADIX
        return KEYS, *pair, self.fill(text, words | {"NAME": words["SORT"]})


def emit_order(record, name: str, output: str, *, falling=False, places=True, **more):
    """A kernel that sorts each line, then runs the statements `output` on its items `sorted`."""
    x = record.inputs[0].spec
    lines = lines_of(x.shape, record.attrs["axis"]) if x.shape else Lines(1, 1, 1)
    if not record.spec.size:
        return fill_kernel(record, name, "", x.dtype)
    items = SortedItems(x.dtype, lines, places)
    groups = -(-lines.count // items.lanes) if items.by_network else lines.count
    room = lines.length * items.nbytes * (items.lanes if items.by_network else 2)
    room, parts = -(-room // 64) * 64, min(groups, PARTS)
    # -0 equals 0 where places are wanted; among values it is first
    start = " + 0" if places and x.dtype in dt.FLOATS else ""
    words = items.words | {"TURN": f"({items.words['KEY']})~" if falling else "", "START": start}
    words |= {"PARTS": parts, "ROOM": room} | lines.words | more
    text = insert(ORDER_BY_NETWORK if items.by_network else ORDER, OUTPUT=output)
    text = items.fill(text.replace("START", start), words)
    return fill_kernel(record, name, text, x.dtype, work=parts * room, helpers=items.helpers)


STORE_PLACES = """\
int64_t *to = out0 + line / INNER * KEPT * INNER + line % INNER;
for (int64_t i = 0; i < KEPT; i++) to[i * INNER] = PLACEIN(sorted[i * STEP]);
"""

STORE_VALUES = """\
E *to = out0 + line / INNER * LENGTH * INNER + line % INNER;
for (int64_t i = 0; i < LENGTH; i++) to[i * INNER] = STORE(VALUE(TURN sorted[i * STEP]));
"""


@emits("argsort")
def emit_argsort(record, name: str):
    """The places in order."""
    attrs, shape = record.attrs, record.shape
    kept = shape[attrs["axis"]] if shape else 1
    return emit_order(record, name, STORE_PLACES, falling=attrs["descending"], KEPT=kept)


@emits("sort")
def emit_sort(record, name: str):
    """The values in order."""
    value = f"value_{C_TYPES[wide(record.dtype)]}"
    falling = record.attrs["descending"]
    return emit_order(record, name, STORE_VALUES, falling=falling, places=False, VALUE=value)


@emits("topk_index")
def emit_topk(record, name: str):
    """The first places in order: by a list of the best if they are few."""
    x, k, falling = record.inputs[0].spec, record.attrs["k"], record.attrs["largest"]
    lines = lines_of(x.shape, record.attrs["axis"])
    if k * k * (1 + log(lines.length / k)) > MOVES * lines.length or k > MOST:
        return emit_order(record, name, STORE_PLACES, falling=falling, KEPT=k)
    items = SortedItems(x.dtype, lines, True)
    words = items.words | {"TURN": f"({items.words['KEY']})~" if falling else "", "COUNT": k}
    words |= {"WORSE": "<=" if falling else ">=", "LANES": 64 // wide(x.dtype).itemsize}
    words["START"] = " + 0" if x.dtype in dt.FLOATS else ""
    return fill_kernel(record, name, FEW, x.dtype, helpers=(KEYS,), **words, **lines.words)


MOVES, MOST = 60, 1024
"""Moves in the list for each element of a line, and places in it, beyond which sorting all is
faster."""

MODE = """\
int64_t most = 0;
for (int64_t i = 0, run = 0; i < LENGTH; i++) {
    const int64_t place = PLACEIN(sorted[i * STEP]);
    const int64_t before = i > 0 ? PLACEIN(sorted[(i - 1) * STEP]) : place;
    run = i > 0 && LOAD(x[place * INNER]) == LOAD(x[before * INNER]) ? run + 1 : 1;
    if (run > most) most = run, out0[line] = place;
}
"""


@emits("mode_index")
def emit_mode(record, name: str):
    """The end of the first of the longest runs of equal elements."""
    return emit_order(record, name, MODE)
