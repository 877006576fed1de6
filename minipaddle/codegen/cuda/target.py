"""Shared definitions of kernels as CUDA: a thread for each iteration of the loops.

Two threads never add to the same element: equal indices form a chain, and one thread adds all terms
of a chain in their order.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.accumulator import join
from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite, wide
from ...engine.core import dtype as dt
from ...engine.core.op import OPS
from ..convolutions.pooling import PoolingWindows
from ..rows.collapsed_loops import declare_loops, flat_name
from ..target import KernelTarget, LoopLevel, insert
from .calls import CUDA_TYPES, Clear, KernelCalls, Operand, operands
from .teams import narrow_type
from .text import each as kernel_of_each
from .text import parameters

CHAIN = read_template("chain.cu", __file__)
"""For each index: the next equal one, and whether it is the first."""

SUM = read_template("chain_sum.cu", __file__)

PUT = "if (chain[2 * i] < 0) out0[PLACE] = VALUE;\n"


class Cuda(KernelTarget):
    """The calls of a record: a kernel for each set of loops."""

    types = CUDA_TYPES

    def __init__(self, record, name: str):
        super().__init__(record, name)
        self.calls, self.workspace, self.helpers = [], 0, ()

    def loops(self, *levels: LoopLevel, each: int = 1, room: str = "") -> None:
        """A kernel; `room` declares what it knows its workspace as."""
        size, flat = prod(a.extent for a in levels), flat_name(levels, "thread")
        if not size:
            return
        T = narrow_type(max(size, *(x.size for x in (*self.specs, *self.outs))))
        lines = [f"{line}\n" for line in declare_loops(T, flat, levels)]
        body = self.fill("".join([*lines, *(a.text for a in levels)]))
        declared, memory = parameters(self.record), operands(self.record)
        if room:
            declared, memory = [*declared, room], (*memory, Operand("work"))
        name = f"{self.name}_{len(self.calls)}" if self.calls else self.name
        launch = kernel_of_each(name, declared, size, body, memory, flat, T)
        self.calls.append(launch._replace(helpers=self.helpers))

    def copy(self, to: str, source: str, count: int) -> LoopLevel:
        return LoopLevel("k", count, f"({to})[k] = ({source})[k];")

    def copies(self, outer: int, moves) -> None:
        for move in moves:
            self.loops(LoopLevel("o", outer), self.copy(*move))

    def begin_with(self, k: int) -> None:
        self.loops(self.copy("out0", f"in{k}", self.out.size))

    def clear(self) -> None:
        self.calls.append(Clear(Operand("out"), self.out.nbytes))

    def clear_slice(self, to: str, count: int) -> str:
        return f"({to})[k] = ZERO;"

    def sums(self) -> str:
        if self.out.dtype in dt.HALVES:
            raise CannotWrite("sums of half precision")
        self.clear()
        return "out0"

    def scatter(self, slices, value: str, adds: bool, onto: bool = False) -> None:
        if adds and self.out.dtype == dt.bool_.numpy:
            raise CannotWrite("sums of booleans")
        if adds and not onto:
            self.clear()
        start = self.fill("LOAD(out0[PLACE])", PLACE=slices.place) if onto else "0"
        words = {"COUNT": slices.count, "SIZE": slices.size, "PLACE": slices.place, "VALUE": value,
                 "START": start}  # fmt: skip
        place = self.place(1, slices.size)
        chain, body = (self.fill(text, **words) for text in (CHAIN, SUM if adds else PUT))
        self.workspace = 8 * slices.count
        self.loops(LoopLevel("i", slices.count, place + chain), room="int *chain")
        inside = LoopLevel("k", slices.inner, body)
        self.loops(*slices.levels(place, inside), room="const int *chain")

    def windows(self, image) -> ThreadWindows:
        return ThreadWindows(self, image)


def emit(define, record, name: str) -> KernelCalls:
    """The calls of a definition."""
    target = Cuda(record, name)
    define(target)
    return KernelCalls(tuple(target.calls), target.workspace)


# ---- pooling: a thread for each channel of a window, or of a pixel -------------------------------

WINDOW = read_template("window.cu", __file__)
"""Where window `to` begins."""

AROUND = read_template("windows_around.cu", __file__)
"""Pixel i adds up over the windows `to` that it is in."""


class ThreadWindows(PoolingWindows):
    """Windows of which a thread works on one channel."""

    stop = "if (!free) break;\n"

    def __init__(self, target: Cuda, image):
        super().__init__(target, image)
        self.dtype = wide(target.out.dtype)
        self.words |= {"V": CUDA_TYPES[self.dtype], "MASK": "bool", "NONE": 0}
        self.words["INDEX"] = narrow_type(max(image.size, target.out.size))

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
        self.target.loops(LoopLevel(i, self.target.out.size, self.target.fill(text, **self.words)))
