"""A C file: its beginning (headers, vector mathematics, functions of NumPy that C lacks), the
functions with which Python sets its variables, kernels, and the facts that the executor needs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from string import Template

from ..core import dtype as dt
from ..core.record import Record
from .accumulator import reductions
from .kernel import BFLOAT16, C_TYPES, FLOAT16, POINTERS, read_template
from .scalar import PAIRED, PLAIN

HEADERS = read_template("headers.c", __file__)
"""The declarations of C's headers that files need. (Reading headers takes a while.)"""

INTEGERS = Template(read_template("integers.c", __file__))

REALS = Template(read_template("reals.c", __file__))

BITS = (
    {"T": "float", "f": "f", "I": "int32_t", "MANTISSA": 23, "EXPONENTS": "0xff", "BIAS": 126},
    {"T": "double", "f": "", "I": "int64_t", "MANTISSA": 52, "EXPONENTS": "0x7ff", "BIAS": 1022},
)
"""Of each floating type: the suffix of C's functions, and the bits of its parts."""

VECTOR = read_template("vector.c", __file__)

MACROS = {
    "INFINITY": "__builtin_inff()",
    "NAN": '__builtin_nanf("")',
    "signbit": "__builtin_signbit",
}

EXPONENTIAL = read_template("exp_float.c", __file__)

ERROR_FUNCTION = read_template("erf_float.c", __file__)

LONG_EXPONENTIAL = read_template("exp_double.c", __file__)

WORD = re.compile(r"\w+")

CLAUSE = "reduction"
"""The word of OpenMP in each text that needs one of the declared `reductions`."""


@cache
def helpers() -> str:
    """The functions that formulas call and C does not have, for each dtype."""
    integers = [C_TYPES[d.numpy] for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64)]
    return "\n".join(
        [INTEGERS.substitute(T=T) for T in integers] + list(map(REALS.substitute, BITS))
    )


FURTHER: list[tuple] = []


def register(text: str, complete=str) -> None:
    """Register C functions for formulas; `complete` fills in the tables that the text names."""
    FURTHER.append((text, complete))
    sections.cache_clear()


UNARY = sorted({*PLAIN.values(), "erfc", "fabs", "lgamma", "rint"})
BINARY = sorted({*PAIRED.values(), "fmod", "pow"})
VECTORIZED = {
    "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "expm1", "log1p", "log2", "log10", "erf", "pow",
}  # fmt: skip
"""The functions that have a vector form in glibc."""


@cache
def mathematics() -> dict[str, str]:
    """The declaration of each function of C's mathematics by its name. (A compiler takes as long to
    read math.h as to start.)
    """
    table = {name: f"#define {name} {text}" for name, text in MACROS.items()}
    for name in (*UNARY, *BINARY):
        vector = "VECTOR " if name in VECTORIZED else ""
        for kind, suffix in (("float", "f"), ("double", "")):
            arguments = ", ".join([kind] * (2 if name in BINARY else 1))
            table[name + suffix] = f"{vector}{kind} {name}{suffix}({arguments});"
    return table


def declarations(words: set[str] | None) -> list[str]:
    """The declarations of the functions that `words` name, or of all."""
    lines = [line for name, line in mathematics().items() if words is None or name in words]
    macro = [VECTOR] if "VECTOR" in "".join(lines) else []
    return [*macro, *lines, ""] if lines else []


@cache
def sections() -> list[tuple]:
    """The beginnings of a file, in order: (names, text, a function that completes the text). A
    file that uses one of the names needs the text.
    """
    texts = [({"expf"}, EXPONENTIAL), ({"erff"}, ERROR_FUNCTION), ({"exp"}, LONG_EXPONENTIAL)]
    texts += [
        ({"float16", "round_half"}, FLOAT16),
        ({"bfloat16", "widen", "narrow", "round_bfloat16"}, BFLOAT16),
    ]
    table = [(names, text, str) for names, text in texts]
    for text, complete in [(helpers(), str), *FURTHER]:
        for each in text.split("\n\n"):
            name = re.search(r"\w+(?=\()", each)[0]
            table.append(({name}, f"{each.strip()}\n", complete))
    return table


def prologue(text: str | None = None) -> str:
    """The beginning of a file: the texts that `text` needs, or all there are."""
    parts, words = [], set(WORD.findall(text or ""))
    every = [*sections(), *(reductions() if text is None or CLAUSE in words else ())]
    for names, part, complete in reversed(every):
        if text is None or not words.isdisjoint(names):
            parts.append(complete(part))
            words.update(WORD.findall(parts[-1]))
    lines = declarations(None if text is None else words)
    return "\n".join([HEADERS, *lines, *reversed(parts)])


# ---- the file ----------------------------------------------------------------------------------

SHARED = """\
static int threads = 1;
static int (*host)(int, void *const *, void *const *);
"""

SETTER = """\
__attribute__((visibility("default"))) void PREFIX_NAME(TYPE x) { NAME = x; }
"""


def function_pointers(helpers) -> dict[str, Callable]:
    """The pointers to functions in a file: their names, and what finds the addresses."""
    return {re.search(r"\(\*(\w+)\)", x)[1]: POINTERS[x] for x in helpers if x in POINTERS}


def setters(prefix: str, helpers) -> str:
    """The functions with which Python sets the variables of a file."""
    types = {"threads": "int "} | dict.fromkeys(["host", *function_pointers(helpers)], "void *")
    lines = (SETTER.replace("NAME", name).replace("TYPE ", T) for name, T in types.items())
    return "".join(lines).replace("PREFIX", prefix)


class SourceFile:
    """A C file. Its exported functions begin with `prefix`, which is made of the file's content.
    `arguments` are numbers that a copy of its library is for.
    """

    arguments: tuple[int, ...] = ()

    def __init__(self, kernels, functions):
        self.kernels, self.helpers = kernels, [*kernels.helpers]
        self.parts: list = []  # what `native.SPLIT` compiled
        self.hosted: list[Record] = kernels.hosted  # by number; the host computes them, or errors
        own = "\n".join([*kernels.texts.values(), *functions])
        text = with_prologue([SHARED, *self.helpers, setters("PREFIX", self.helpers), own])
        self.prefix = "paddle_" + hashlib.sha256(text.encode()).hexdigest()[:12]
        self.text = text.replace("PREFIX", self.prefix)
        self.own = own.replace("PREFIX", self.prefix)  # without helpers
        self.functions = [each.replace("PREFIX", self.prefix) for each in functions]


def with_prologue(texts: list[str]) -> str:
    """One file: the helpers that the texts call, then the texts."""
    text = "\n".join(texts)
    return f"{prologue(text)}\n{text}"
