"""A C file: whole, as people read it, or in parts, so that a compiler works on each at once."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.record import Record
from .c_helpers import prologue
from .kernel import BAD_INDEX, BLAS

SHARED = """\
static int threads = 1;
static int (*host)(int, void *const *, void *const *);
"""

SETTERS = """\
__attribute__((visibility("default"))) void PREFIX_threads(int n) { threads = n; }
__attribute__((visibility("default"))) void PREFIX_host(void *f) { host = f; }
"""

SET_BLAS = """\
__attribute__((visibility("default"))) void PREFIX_blas(void *f) { blas_sgemm = f; }
"""

VARIABLES = (SHARED, BLAS, BAD_INDEX)
"""Of what kernels share the variables: a part that has none of its own looks at those of the last.
"""


def setters(prefix: str, helpers) -> str:
    """The functions by which the variables of a file are set from outside."""
    return (SETTERS + (SET_BLAS if BLAS in helpers else "")).replace("PREFIX", prefix)


class Source(NamedTuple):
    """A C file, and what must be known to run it."""

    helpers: list[str]
    kernels: dict[str, str]  # by their names
    functions: list[str]
    prefix: str
    hosted: list[Record]  # record number k of these is (or may be) computed by `host(k, …)`
    timed: list[Record]  # whose times stand in `PREFIX_seconds`, if they are taken

    @property
    def text(self) -> str:
        """The file."""
        return whole([SHARED, *self.helpers, setters(self.prefix, self.helpers), self.own])

    @property
    def own(self) -> str:
        """The part of it that belongs to this program: no helpers."""
        return "\n".join([*self.kernels.values(), *self.functions])

    @property
    def uses_blas(self) -> bool:
        return BLAS in self.helpers

    def parts(self, n: int) -> list[str]:
        """n files with about as much to compile in each; the last calls the kernels of all."""
        shares: list[list[str]] = [[] for _ in range(n)]
        sizes = [0] * (n - 1) + [sum(map(len, self.functions))]
        for name in sorted(self.kernels, key=lambda k: -len(self.kernels[k])):
            least = sizes.index(min(sizes))
            shares[least].append(name)
            sizes[least] += len(self.kernels[name])
        texts = [self.part(names) for names in shares[:-1]]
        others = [declared(name, self.kernels[name]) for names in shares[:-1] for name in names]
        calls = [*others, setters(self.prefix, self.helpers), *self.functions]
        return [*texts, self.part(shares[-1], calls)]

    def part(self, names: list[str], calls=()) -> str:
        """A file of some kernels, which others may call; with `calls` it is the last."""
        linked = "" if calls else "extern "
        head = [
            "\n".join(variable(line, linked) for line in text.splitlines())
            if text in VARIABLES
            else text
            for text in (SHARED, *self.helpers)
        ]
        return whole([*head, *(opened(name, self.kernels[name]) for name in names), *calls])


def whole(texts: list[str]) -> str:
    """Texts as a file, after what they need of the functions that all programs share."""
    text = "\n".join(texts)
    return f"{prologue(text)}\n{text}"


def variable(line: str, linked: str) -> str:
    """A line that declares a variable of a file, as one of all parts."""
    line = line.replace("static ", linked, 1)
    return line.replace(" = 1", "") if linked else line


def opened(name: str, text: str) -> str:
    """A kernel that other parts may call."""
    return text.replace(f"static void {name}(", f"void {name}(", 1)


def declared(name: str, text: str) -> str:
    """The declaration of a kernel of another part."""
    return re.search(rf"^static (void {name}\([^)]*\))$", text, re.MULTILINE)[1] + ";"
