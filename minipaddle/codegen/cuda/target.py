"""What the kernels that C and CUDA share are in CUDA: a thread for every round of the loops.

Nothing is added by two threads at once: places that are equal form a chain, and one thread adds up
all of a chain in the order of its terms.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.fold import join
from ...engine.codegen.scalar import wide
from ...engine.core.op import OPS
from ..pooling import Windows
from ..target import Level, Target, insert
from .calls import CUDA_TYPES, Clear, Operand, Work, operands
from .shape import declare_loops, flat_name
from .text import each, parameters

CHAIN = """\
int next = -1, first = 1;
for (int64_t n = i + 1; n < COUNT && next < 0; n++)
    if (in1[n] == at || in1[n] == at - SIZE) next = n;
for (int64_t n = i - 1; n >= 0 && first; n--)
    if (in1[n] == at || in1[n] == at - SIZE) first = 0;
chain[2 * i] = next, chain[2 * i + 1] = first;
"""
"""For each place: the next that names the same, and whether none did before."""

SUM = """\
if (!chain[2 * i + 1]) continue;
T sum = 0;
for (int64_t n = i; n >= 0; n = chain[2 * n]) {
    const int64_t i = n;
    sum += LOAD(VALUE);
}
out0[PLACE] = STORE(sum);
"""

PUT = "if (chain[2 * i] < 0) out0[PLACE] = VALUE;\n"


class Cuda(Target):
    """The calls of a record: a kernel for each set of loops."""

    types = CUDA_TYPES

    def __init__(self, record, name: str):
        super().__init__(record, name)
        self.calls, self.workspace, self.helpers = [], 0, ()

    def loops(self, *levels: Level, room: str = "") -> None:
        """A kernel; `room` declares what it knows its workspace as."""
        size, flat = prod(a.extent for a in levels), flat_name(levels, "thread")
        if not size:
            return
        lines = [f"{line}\n" for line in declare_loops("int64_t", flat, levels)]
        body = self.fill("".join([*lines, *(a.text for a in levels)]))
        own, given = parameters(self.record), operands(self.record)
        own, given = ([*own, room], (*given, Operand("work"))) if room else (own, given)
        name = f"{self.name}_{len(self.calls)}" if self.calls else self.name
        launch = each(name, own, size, body, given, flat)
        self.calls.append(launch._replace(helpers=self.helpers))

    def copy(self, to: str, source: str, count: int) -> Level:
        return Level("k", count, f"({to})[k] = ({source})[k];")

    def copies(self, outer: int, moves) -> None:
        for move in moves:
            self.loops(Level("o", outer), self.copy(*move))

    def clear(self) -> None:
        self.calls.append(Clear(Operand("out"), self.out.nbytes))

    def clear_slice(self, to: str, count: int) -> str:
        return f"({to})[k] = ZERO;"

    def scatter(self, slices, value: str, adds: bool) -> None:
        if adds:
            self.clear()
        words = {"COUNT": slices.count, "SIZE": slices.size, "PLACE": slices.place, "VALUE": value}
        place = self.place(1, slices.size)
        chain, body = (self.fill(text, **words) for text in (CHAIN, SUM if adds else PUT))
        self.workspace = 8 * slices.count
        self.loops(Level("i", slices.count, place + chain), room="int *chain")
        inside = Level("k", slices.inner, body)
        self.loops(*slices.levels(place, inside), room="const int *chain")

    def windows(self, image) -> ThreadWindows:
        return ThreadWindows(self, image)


def emit(define, record, name: str) -> Work:
    """The calls of a definition."""
    target = Cuda(record, name)
    define(target)
    return Work(tuple(target.calls), target.workspace)


# ---- pooling: a thread for each channel of a window, or of a pixel -------------------------------

WINDOW = """\
const int64_t c = to % CHANNELS, p = to / CHANNELS;
const int64_t first_w = p % OW * SW - PW, first_h = p / OW % OH * SH - PH;
const int64_t first_d = p / (OW * OH) % OD * SD - PD, n = p / (OW * OH * OD);
"""
"""Where window `to` begins."""

AROUND = """\
const int64_t c = i % CHANNELS, q = i / CHANNELS;
const int64_t x = q % IW, y = q / IW % IH, z = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T total = 0;
for (int u = 0; u < KD * KH * KW; u++) {
    const int64_t e = z + PD - u / (KH * KW), b = y + PH - u / KW % KH, a = x + PW - u % KW;
    if (e < 0 || b < 0 || a < 0 || e % SD || b % SH || a % SW) continue;
    if (e / SD >= OD || b / SH >= OH || a / SW >= OW) continue;
    const int64_t first_d = e / SD * SD - PD, first_h = b / SH * SH - PH;
    const int64_t first_w = a / SW * SW - PW;
    const int64_t to = (((n * OD + e / SD) * OH + b / SH) * OW + a / SW) * CHANNELS + c;
    INSIDE
}
out0[i] = STORE(total);
"""
"""Pixel i adds up over the windows `to` that it is in."""


class ThreadWindows(Windows):
    """Windows of which a thread works on one channel."""

    found = "if (!free) break;\n"

    def __init__(self, target: Cuda, image):
        super().__init__(target, image)
        self.dtype = wide(target.out.dtype)
        self.words |= {"V": CUDA_TYPES[self.dtype], "MASK": "bool", "NONE": 0}

    def load(self, k: int, at: str) -> str:
        return f"LOAD(in{k}[{at}])"

    def store(self, value: str) -> str:
        return f"out0[to] = STORE({value});\n"

    def add(self, value: str) -> str:
        return f"if (at == i) total += {value};\n"

    def add_all(self, value: str) -> str:
        return f"total += {value};\n"

    def larger(self, x: str, y: str) -> str:
        self.target.helpers = (join(OPS["max"], self.dtype),)
        return f"join_max_{CUDA_TYPES[self.dtype]}({x}, {y})"

    def where(self, here: str, x: str) -> str:
        return f"({here} ? {x} : 0)"

    def each(self, define, before: str = "") -> None:
        self.run("to", WINDOW + before + define(self))

    def spread(self, define, before: str = "") -> None:
        self.run("i", insert(AROUND, INSIDE=before + define(self)))

    def run(self, i: str, text: str) -> None:
        self.target.loops(Level(i, self.target.out.size, self.target.fill(text, **self.words)))
