"""Shared definitions of kernels as C: nested loops, one of which threads share."""

from __future__ import annotations

from math import prod

from ..engine.codegen.kernel import BAD_INDEX, C_TYPES, Kernel, function
from ..engine.codegen.scalar import CannotWrite
from ..engine.codegen.writer import worth_sharing
from ..engine.core import dtype as dt
from .c_text import Workspace, indent, loop, loop_over_epilogue, share_where
from .convolutions.vector_pooling import VectorWindows
from .kernel_frame import FloatKernel
from .target import KernelTarget, LoopLevel

SERIAL = 60_000
"""Elements below which a second thread does not pay."""

SHARED = 16
"""Fewest iterations of a loop that threads share; otherwise they share a loop inside it."""


class C(KernelTarget):
    """One C function with the texts of all loops, one after another."""

    types = C_TYPES
    out_of_range = "bad_index++;\n    "

    def __init__(self, record, name: str, rows, parameters):
        super().__init__(record, name)
        self.rows, self.parameters = rows, parameters
        self.text, self.room, self.helpers = "", Workspace(), []
        self.T, self.frame = C_TYPES[self.out.dtype], None
        self.checked: set[int] = set()  # the inputs whose indices are all in range

    def kernel(self) -> Kernel:
        """The kernel, after its definition has run."""
        if self.frame is not None:
            return self.frame.kernel(self.text, self.helpers)
        if self.rows is not None and len(self.outs) > 1:
            raise CannotWrite("an epilogue of several results")
        epilogue = loop_over_epilogue(self.rows, self.out) if self.out.size else ""
        body, work = indent(self.text, 4) + epilogue, self.room.size
        source = function(self.record, self.name, body, work=work > 0, parameters=self.parameters)
        helpers = (BAD_INDEX,) if "bad_index" in body else ()
        return Kernel(self.name, source, work, helpers)

    def loops(self, *levels: LoopLevel, each: int = 1, ordered: bool = False) -> None:
        size, shared = prod(a.extent for a in levels) * each, None
        pays = "" if ordered else worth_sharing(size, SERIAL + 1)
        if not size:  # nothing is copied, but indices are checked
            levels = [a for a in levels if "bad_index" in a.text]
        if pays:
            shared = max(levels, key=lambda a: min(a.extent, SHARED))
        text = ""
        for a in reversed(levels):
            pragma = share_where(pays) if a is shared else ""
            text = loop(a.name, a.extent, a.text + text, pragma=pragma)
            text = f"{a.whole}\n" if a.whole else text
        self.text += self.fill(text)

    def copy(self, to: str, source: str, count: int) -> LoopLevel:
        return LoopLevel("k", count, "", f"memcpy({to}, {source}, {count} * sizeof(E));")

    def copies(self, outer: int, moves) -> None:
        text = "".join(f"{self.copy(*move).whole}\n" for move in moves if move[-1])
        self.loops(LoopLevel("o", outer, text))

    def begin_with(self, k: int) -> None:
        whole = self.copy("out0", f"in{k}", self.out.size).whole
        self.text += self.fill(f"if (out0 != in{k}) {whole}\n") if self.out.size else ""

    def check(self, k: int, size: int, wraps: bool = True) -> None:
        low, span = (size, 2 * size) if wraps else (0, size)
        self.text += (
            f"int outside{k} = 0;\nfor (int64_t i = 0; i < {self.specs[k].size}; i++) "
            f"outside{k} |= (uint64_t)in{k}[i] + (uint64_t){low} >= (uint64_t){span};\n"
            f"if (outside{k}) {{ bad_index++; return; }}\n"
        )
        self.checked.add(k)

    def place(self, k, size, wraps=True, ignored=None, instead="", i="i") -> str:
        if k not in self.checked:
            return super().place(k, size, wraps, ignored, instead, i)
        return f"int64_t at = in{k}[{i}];\n{f'at += at < 0 ? {size} : 0;' if wraps else ''}\n"

    def clear(self) -> None:
        self.text += f"{self.clear_slice('out0', self.out.size)}\n"

    def clear_slice(self, to: str, count: int) -> str:
        return self.fill(f"memset({to}, 0, {count} * sizeof(E));")

    def sums(self) -> str:
        """Sums of half-precision values are computed as floats."""
        to = "out0"
        if self.out.dtype in dt.HALVES:
            self.text += f"float *sum = {self.room.array('float', self.out.size)};\n"
            to = "sum"
        self.text += self.fill(f"memset({to}, 0, {self.out.size} * sizeof(T));\n")
        return to

    def store_sums(self) -> None:
        if self.out.dtype in dt.HALVES:
            self.loops(LoopLevel("i", self.out.size, "out0[i] = STORE(sum[i]);\n"))

    def scatter(self, slices, value: str, adds: bool, onto: bool = False) -> None:
        term = f"LOAD({value})" if adds else value
        to = self.sums() if adds and not onto else "out0"
        sign = "" if not adds else "|" if self.out.dtype == dt.bool_.numpy else "+"
        put = f"{to}[{slices.place}] {sign}= {term};\n"
        if onto and self.out.dtype in dt.HALVES:
            put = f"E *sum = {to} + {slices.place};\n*sum = STORE(LOAD(*sum) + {term});\n"
        inside = LoopLevel("k", slices.inner, put)
        self.loops(*slices.levels(self.place(1, slices.size), inside), ordered=True)
        if adds and not onto:
            self.store_sums()

    def windows(self, image) -> VectorWindows:
        how = self.record, self.name, self.rows, self.parameters
        self.frame = FloatKernel(*how, as_stored=True)
        return VectorWindows(self, image)


def emit(define, record, name: str, rows=None, parameters=()) -> Kernel:
    """The C kernel of a definition."""
    target = C(record, name, rows, parameters)
    define(target)
    return target.kernel()
