"""The C file of a program, and the facts that the executor needs."""

from __future__ import annotations

import hashlib

from ..core.record import Record
from .c_helpers import prologue
from .kernel import BLAS

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


def setters(prefix: str, helpers) -> str:
    """The functions with which Python sets the variables of a file."""
    return (SETTERS + (SET_BLAS if BLAS in helpers else "")).replace("PREFIX", prefix)


class Source:
    """A C file. Its exported functions begin with `prefix`, which is made of the file's content."""

    def __init__(self, helpers, kernels: dict[str, str], functions, hosted, timed):
        self.helpers = helpers
        self.kernels = kernels  # by their names
        self.hosted: list[Record] = hosted  # by number: the host computes them, or their errors
        self.timed: list[Record] = timed  # whose seconds the array `PREFIX_seconds` holds
        own = "\n".join([*kernels.values(), *functions])
        text = with_prologue([SHARED, *helpers, setters("PREFIX", helpers), own])
        self.prefix = "paddle_" + hashlib.sha256(text.encode()).hexdigest()[:12]
        self.text = text.replace("PREFIX", self.prefix)
        self.own = own.replace("PREFIX", self.prefix)  # without helpers
        self.functions = [each.replace("PREFIX", self.prefix) for each in functions]

    @property
    def uses_blas(self) -> bool:
        return BLAS in self.helpers


def with_prologue(texts: list[str]) -> str:
    """One file: the functions of `c_helpers` that the texts call, then the texts."""
    text = "\n".join(texts)
    return f"{prologue(text)}\n{text}"
