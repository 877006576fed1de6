"""A kernel: one C function that computes one record. The emitters of operators are listed here.

    static void NAME(const T *restrict in0, …, U *restrict out0, …, char *restrict work)

The parameters are the record's inputs in their order, except numbers: these are literals in the
text. Buffers are contiguous, row-major, aligned to 64 bytes, and do not overlap. The parameter
`work` exists if the kernel asks for a workspace. Kernels share `helpers`: texts that are once in
the file, before the kernels, in the order of the list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core.record import Record
from ..ir.control import fused
from ..ir.program import NUMBER

C_TYPES = {
    dt.bool_.numpy: "uint8_t",  # gcc makes slow vectors of `bool` (a masked exp: 7 times)
    dt.uint8.numpy: "uint8_t",
    dt.int8.numpy: "int8_t",
    dt.int16.numpy: "int16_t",
    dt.int32.numpy: "int32_t",
    dt.int64.numpy: "int64_t",
    dt.float16.numpy: "float16",
    dt.bfloat16.numpy: "bfloat16",
    dt.float32.numpy: "float",
    dt.float64.numpy: "double",
}


def number(value, dtype) -> str:
    """A number of any dtype, as C writes it: as a formula if it knows one."""
    if hasattr(value, "formula"):
        return f"({C_TYPES[dtype]}){value}"
    if dtype.kind == "f":
        return real(float(value), dtype)
    if dtype == np.bool_:
        return "true" if value else "false"
    return integer(int(dtype.type(value)), dtype)


def integer(value: int, dtype) -> str:
    """An integer."""
    if dtype == np.uint64:
        return f"{value}ULL"
    if value == -(2**63):
        return "INT64_MIN"
    wide = "LL" if abs(value) >= 2**31 else ""
    return f"({value}{wide})" if value < 0 else f"{value}{wide}"


def real(value: float, dtype) -> str:
    """A float, exactly. It becomes infinite if it is too large for its dtype."""
    suffix = "" if dtype == np.float64 else "f"
    with np.errstate(over="ignore"):
        value = np.float32(value) if suffix else np.float64(value)
    if math.isnan(value):
        return "NAN" if suffix else "(double)NAN"
    if math.isinf(value):
        text = "INFINITY" if suffix else "(double)INFINITY"
        return text if value > 0 else f"(-{text})"
    text = str(value)
    text = text if any(c in text for c in ".en") else f"{text}.0"
    return f"({text}{suffix})" if text[0] == "-" else f"{text}{suffix}"


def stack_array(T: str, name: str, count: int, most: int = 0) -> str:
    """C text that declares an array on the stack: of its `most` elements where the count is no
    number in C. It is aligned, because gcc 12 may assume more alignment than it gave the array,
    when one of several loops over it does not start at 0.

    >>> stack_array("float", "row", 3)
    'float row[3] __attribute__((aligned(64)));'
    """
    count = most if most and not f"{count}".isdigit() else count
    return f"{T} {name}[{count}] __attribute__((aligned(64)));"


def read_template(name: str, module: str) -> str:
    """The text of a file in the folder `templates` beside a module, whose `__file__` is given."""
    return (Path(module).parent / "templates" / name).read_text("utf-8")


FLOAT16 = read_template("float16.c", __file__)

BFLOAT16 = read_template("bfloat16.c", __file__)

POINTERS: dict[str, Callable[[], int | None]] = {}
"""The text of a helper that declares a pointer to a function -> what finds its address. Python sets
the pointer in a file with the helper. A kernel must know what to do if it is null."""

BAD_INDEX = """\
static volatile int bad_index;  /* how often a place was out of range */
"""
"""If the counter changed while a kernel ran, an index was out of range, in this run or in a run on
another thread. Nothing was read or written there."""


class Kernel(NamedTuple):
    """The text of one C function, the bytes of workspace it needs, and its helpers."""

    name: str
    source: str
    workspace: int = 0
    helpers: tuple[str, ...] = ()
    prepack: object = None  # the form in which it wants a constant input
    starts: tuple[int, ...] = ()  # for each input: elements to skip before its first
    in_place: list | None = None  # (result, input) that may share memory, if it is one nest

    def call(self, inputs: list[str], outputs: list[str], work: str = "work") -> str:
        """The C expression that calls the kernel on inputs, results and its workspace."""
        starts = [f" + {n}" if n else "" for n in self.starts] or [""] * len(inputs)
        inputs = [x + start for x, start in zip(inputs, starts, strict=True)]
        return f"{self.name}({', '.join([*inputs, *outputs, *([work] if self.workspace else [])])})"


EMITTERS: dict[str, object] = {}
"""Operator name -> `emit(record, name, rows=None, parameters=()) -> Kernel`.

`rows(first, last)`, for two C expressions, is an epilogue: C text that runs as soon as rows
[first, last) of the result, seen as (rows, last axis), are complete. `parameters` declares the
buffers that this text uses; the function has them after its own parameters, before `work`.
"""


def entries(table: dict):
    """A decorator for functions, which puts them into a table under the names that it gets."""

    def decorate(*names):
        def register(function):
            table.update(dict.fromkeys(names, function))
            return function

        return register

    return decorate


emits = entries(EMITTERS)
"""Decorator that registers the emitter of the operators with these names."""


IN_PLACE: dict[str, list[tuple[int, int]]] = {}
"""Operator name -> pairs (result, input) that may share memory. The kernel checks all indices
before it writes."""


class GroupEmitter(NamedTuple):
    """An emitter for groups of more than one loop nest, such as a product with its epilogue."""

    matches: Callable[[Record], bool]
    emit: Callable[[Record, str], Kernel]
    in_place: Callable[[Record], list]  # (output, input of the region) that may share memory


GROUP_EMITTERS: list[GroupEmitter] = []


def group_emitter(record: Record) -> GroupEmitter | None:
    """The emitter for a group; None if the group is a plain loop nest, or there is none."""
    emitters = GROUP_EMITTERS if record.op is fused else ()
    return next((each for each in emitters if each.matches(record)), None)


def is_number(edge) -> bool:
    """Whether an input of a record is a literal, and not a buffer."""
    return edge.op is NUMBER


def has_mixed_dtypes(record) -> bool:
    """Whether the operands have several floating dtypes. NumPy knows the rules for these."""
    return len({r.dtype for r in record.inputs if r.dtype in dt.FLOATS and not is_number(r)}) > 1


def results(record) -> list:
    """The specs of the results, one or several."""
    return [record.spec] if record.dtype is not None else list(record.shape)


def buffers(record) -> list:
    """The inputs that are no numbers."""
    return [x for x in record.inputs if not is_number(x)]


def parameters_of(record, types=C_TYPES, pointer="*restrict ") -> list[str]:
    """The parameters of a record's kernel: in0, in1, …, out0, … Those that may share memory are
    plain pointers.
    """
    pairs = IN_PLACE.get(record.op.name, [])
    shared = {f"out{k}" for k, _ in pairs} | {f"in{j}" for _, j in pairs}
    values = [(f"const {types[x.dtype]}", f"in{k}") for k, x in enumerate(buffers(record))]
    values += [(types[s.dtype], f"out{k}") for k, s in enumerate(results(record))]
    return [f"{T} {'*' if x in shared else pointer}{x}" for T, x in values]


def function(record, name: str, body: str, *, work=False, parameters=()) -> str:
    """The C function of a record with this body."""
    workspace = ["char *restrict work"] if work else []
    return c_function(name, [*parameters_of(record), *parameters, *workspace], body)


def c_function(name: str, parameters, body: str) -> str:
    """The C function with these parameters and this body."""
    return f"static void {name}({', '.join(parameters)})\n{{\n{body.rstrip()}\n}}\n"


HEADS = re.compile(r"^\S.*\bvoid .*?\((.*)\)$", re.MULTILINE)
WORDS = re.compile(r"(\W+)")


def normalize_names(source: str, name: str) -> str:
    """The text of a kernel with standard names for itself and its parameters."""
    parameters = re.findall(r"\w+(?=,|$)", ", ".join(HEADS.findall(source)))
    new = {x: f"argument{k}" for k, x in enumerate(dict.fromkeys(parameters))}
    return "".join([new.get(word, word) for word in WORDS.split(source.replace(name, "NAME"))])
