"""Kernels that C and CUDA share: one definition, written for either `Target`.

A definition says what happens to one element, in words that C and CUDA have in common, and which
loops it stands in. `take` copies slices o, i of k elements:

    k.loops(Level("o", 3), Level("i", 5, place("in1[i]")), k.copy("out0 + …", "in0 + … at …", 8))

    C       for (o) for (i) { int64_t at = …; memcpy(…); }     threads share a loop
    CUDA    o, i, k = digits of the thread's number;  int64_t at = …;  out0[…] = in0[…];

A target has the types, the loops, what a place out of range does, and how terms for the same
element are added up. What starts with `in` or `out` names the record's inputs and results.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import NamedTuple

from ..engine.codegen.kernel import results
from ..engine.codegen.scalar import wide
from ..engine.core import dtype as dt


class Level(NamedTuple):
    """A loop; `text` is done in it before its inner loops. All of an innermost loop may be done by
    the statement `whole`.
    """

    name: str
    extent: int
    text: str = ""
    whole: str = ""


class Target:
    """A kernel that is being written, in C or in CUDA."""

    types: dict  # dtype -> the type of an element in memory
    out_of_range = ""  # a statement

    def __init__(self, record, name: str):
        self.record, self.name, self.attrs = record, name, record.attrs
        self.specs, self.outs = [x.spec for x in record.inputs], results(record)
        self.out = self.outs[0]

    # ---- text --------------------------------------------------------------------------------

    def fill(self, text: str, **words) -> str:
        """A text with its words, for elements of the first result's dtype. E is an element in
        memory, T what is computed with; LOAD and STORE make one of the other; ZERO is in memory.
        """
        return fill(text, self.types, self.out.dtype, words)

    def place(self, k: int, size: int, wraps=True, ignored=None, instead="", i="i") -> str:
        """`at` is the place that element i of input k says. If that is out of range, or `ignored`
        (then something is done `instead`), the loop goes on with the next.
        """
        index = f"in{k}[{i}]"
        wrap = f"if (at < 0) at += {size};\n" if wraps else ""
        return (
            f"{skip(index, ignored, instead)}int64_t at = {index};\n{wrap}"
            f"if (at < 0 || at >= {size}) {{\n    {self.out_of_range}continue;\n}}\n"
        )

    # ---- what a target does in its own way ---------------------------------------------------

    def loops(self, *levels: Level) -> None:
        """Nested loops in any order."""

    def copy(self, to: str, source: str, count: int) -> Level:
        """The innermost loop that copies from one pointer to another."""

    def copies(self, outer: int, moves) -> None:
        """Copy (to, source, count) for every o."""

    def clear(self) -> None:
        """The result is zero."""

    def clear_slice(self, to: str, count: int) -> str:
        """A statement: what lies from a pointer on is zero; outside of an innermost loop."""

    def scatter(self, slices, value: str, adds: bool) -> None:
        """Put elements (o, i, k) of slices at the places in1, in their order, or add them up."""

    def windows(self, image):
        """The `Windows` of a pooling of an image, a spec."""


def skip(index: str, ignored: int | None, instead: str = "") -> str:
    """Statements: what is done in the place of the rest if an index is one that is ignored."""
    instead = instead and f"    {instead}\n"
    return "" if ignored is None else f"if ({index} == {ignored}) {{\n{instead}    continue;\n}}\n"


def fill(text: str, types: dict, dtype, words: dict) -> str:
    """A template with its words; see `Target.fill`."""
    E, T = types[dtype], types[wide(dtype)]
    special = dtype == dt.bfloat16.numpy
    words = {
        "E": E, "T": T, "LOAD": "widen" if special else f"({T})",
        "STORE": "narrow" if special else f"({E})", "ZERO": "narrow(0)" if special else f"({E})0",
        **words,
    }  # fmt: skip
    return re.sub(r"\b[A-Z]+\b", lambda m: str(words.get(m[0], m[0])), text)


def insert(text: str, **words: str) -> str:
    """A template with texts in the places of lines that are a word alone, as far indented."""

    def put(line) -> str:
        lines = words[line[2]].strip("\n")
        return indent(lines + "\n", line[1]) if lines else ""

    return re.sub(rf"^( *)({'|'.join(words)})\n", put, text, flags=re.MULTILINE)


KERNELS: dict[str, object] = {}
"""Operator name -> the definition, a function of a `Target`."""


def kernel(*names):
    """Decorator: the definition of the kernels of these operators."""

    def register(define):
        KERNELS.update(dict.fromkeys(names, define))
        return define

    return register
