"""Kernels for C and CUDA from one definition, which is a function of a `KernelTarget`.

A definition contains the statements for one element, which are the same in C and CUDA, and the
loops around them. For example, `take` copies slices o, i of k elements:

    k.loops(Level("o", 3), Level("i", 5, place("in1[i]")), k.copy("out0 + …", "in0 + … at …", 8))

    C       for (o) for (i) { int64_t at = …; memcpy(…); }     threads share a loop
    CUDA    o, i, k = digits of the thread's number;  int64_t at = …;  out0[…] = in0[…];

A target knows the types and the loops, what to do at an index out of range, and how to add several
terms to one element. `in0`, `in1`, … and `out0`, … are the record's inputs and results.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import NamedTuple

from ..engine.codegen.kernel import entries, results
from ..engine.codegen.scalar import NARROWED, WIDENED, wide


class LoopLevel(NamedTuple):
    """A loop; its `text` precedes its inner loops. The statement `whole` may replace an
    innermost loop.
    """

    name: str
    extent: int
    text: str = ""
    whole: str = ""


class KernelTarget:
    """A kernel that is being written, in C or in CUDA."""

    types: dict  # dtype -> the type of an element in memory
    out_of_range = ""  # a statement

    def __init__(self, record, name: str):
        self.record, self.name, self.attrs = record, name, record.attrs
        self.specs, self.outs = [x.spec for x in record.inputs], results(record)
        self.out = self.outs[0]

    # ---- text --------------------------------------------------------------------------------

    def fill(self, text: str, **words) -> str:
        """Replace words in a text, for the dtype of the first result. E is the type of an element
        in memory, T the type for computing; LOAD and STORE convert; ZERO is a zero in memory.
        """
        return fill(text, self.types, self.out.dtype, words)

    def place(self, k: int, size: int, wraps=True, ignored=None, instead="", i="i") -> str:
        """Statements that set `at` to the index in element i of input k. If it is out of range, or
        equal to `ignored` (then `instead` is done), the loop continues with the next element.
        """
        index = f"in{k}[{i}]"
        wrap = f"if (at < 0) at += {size};\n" if wraps else ""
        return (
            f"{skip(index, ignored, instead)}int64_t at = {index};\n{wrap}"
            f"if (at < 0 || at >= {size}) {{\n    {self.out_of_range}continue;\n}}\n"
        )

    # ---- what a target does in its own way ---------------------------------------------------

    def loops(self, *levels: LoopLevel, each: int = 1) -> None:
        """Nested loops, whose order does not matter; `each` elements are met in one iteration."""

    def copy(self, to: str, source: str, count: int) -> LoopLevel:
        """The innermost loop that copies from one pointer to another."""

    def copies(self, outer: int, moves) -> None:
        """Copy (to, source, count) for each o."""

    def begin_with(self, k: int) -> None:
        """Copy input k to the result, unless they are the same memory."""

    def check(self, k: int, size: int, wraps: bool = True) -> None:
        """Go on only if all indices of input k are in range; see `place`."""

    def clear(self) -> None:
        """Fill the result with zeros."""

    def clear_slice(self, to: str, count: int) -> str:
        """A statement, outside innermost loops, that writes zeros from a pointer on."""

    def sums(self) -> str:
        """The pointer to zeros, of the type for computing, that become the result."""

    def store_sums(self) -> None:
        """Store the sums in the result."""

    def scatter(self, slices, value: str, adds: bool, onto: bool = False) -> None:
        """Put elements (o, i, k) of slices at the indices in1, in order, or add them there: to
        zeros, or `onto` what the result holds.
        """

    def windows(self, image):
        """The `Windows` of a pooling of an image, a spec."""


def skip(index: str, ignored: int | None, instead: str = "") -> str:
    """Statements that do `instead`, and continue, if an index is the ignored one."""
    instead = instead and f"    {instead}\n"
    return "" if ignored is None else f"if ({index} == {ignored}) {{\n{instead}    continue;\n}}\n"


def fill(text: str, types: dict, dtype, words: dict) -> str:
    """Replace words in a template: see `KernelTarget.fill`."""
    E, T = types[dtype], types[wide(dtype)]
    load, store, zero = f"({T})", f"({E})", f"({E})0"
    if dtype in WIDENED:
        load, store = (table[dtype].partition("(")[0] for table in (WIDENED, NARROWED))
        zero = f"{store}(0)"
    words = {
        "E": E, "T": T, "LOAD": load, "STORE": store, "ZERO": zero, **words,
    }  # fmt: skip
    return re.sub(r"\b[A-Z]+\b", lambda m: str(words.get(m[0], m[0])), text)


def insert(text: str, **words: str) -> str:
    """Replace lines that are a single word by texts with the same indentation."""

    def put(line) -> str:
        lines = words[line[2]].strip("\n")
        return indent(lines + "\n", line[1]) if lines else ""

    return re.sub(rf"^( *)({'|'.join(words)})\n", put, text, flags=re.MULTILINE)


KERNELS: dict[str, object] = {}
"""Operator name -> the definition, a function of a `KernelTarget`."""


kernel = entries(KERNELS)
"""Decorator that registers the definition of the kernels of these operators."""
