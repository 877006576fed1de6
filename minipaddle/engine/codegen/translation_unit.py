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
ONCE_SIZE = 5000
"""Letters of kernels that take a compiler as long as one function that all parts share: most of
them are loops that are written out."""


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
        sizes = {name: len(text) for name, text in self.kernels.items()}
        sizes |= {text: ONCE_SIZE * len(once(text)) for text in self.helpers if once(text)}
        shares: list[list[str]] = [[] for _ in range(n)]
        full = [0] * (n - 1) + [sum(map(len, self.functions))]
        for own in sorted(sizes, key=lambda k: -sizes[k]):
            least = full.index(min(full))
            shares[least].append(own)
            full[least] += sizes[own]
        texts = [self.part(share) for share in shares[:-1]]
        others = [declared(k, text) for k, text in self.kernels.items() if k not in shares[-1]]
        calls = [*others, setters(self.prefix, self.helpers), *self.functions]
        return [*texts, self.part(shares[-1], calls)]

    def part(self, share: list[str], calls=()) -> str:
        """A file of some kernels and helpers, which others call; with `calls` it is the last."""
        linked = "" if calls else "extern "
        head = []
        for text in (SHARED, *self.helpers):
            if text in VARIABLES:
                text = "\n".join(variable(line, linked) for line in text.splitlines())
            elif text not in share and once(text):
                text = "\n".join(f"{function};" for function in once(text))
            head.append(text.replace("define ONCE static", "define ONCE"))
        kernels = (opened(k, text) for k, text in self.kernels.items() if k in share)
        return whole([*head, *kernels, *calls])


def once(text: str) -> list[str]:
    """The heads of the functions that a text says to compile once."""
    return re.findall(r"^ONCE (void [^{]*?)\s*{", text, re.MULTILINE)


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
