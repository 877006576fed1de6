"""A kernel: one C function that computes one record. The emitters of operators are listed here.

    static void NAME(const T *restrict in0, …, U *restrict out0, …, char *restrict work)

Inputs come in the record's order; numbers among them are literals and no arguments. Buffers are
contiguous, row-major, aligned to 64 bytes, and do not overlap. `work` is there if the kernel asks
for a workspace. What several kernels share are `helpers`: texts that a file has once, before the
kernels, in the order given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..core import dtype as dt
from ..core.record import Record
from ..ir.program import NUMBER

C_TYPES = {
    dt.bool_.numpy: "uint8_t",  # 0 or 1: gcc makes poor vectors of `bool` (a masked exp: 7 times)
    dt.uint8.numpy: "uint8_t",
    dt.int8.numpy: "int8_t",
    dt.int16.numpy: "int16_t",
    dt.int32.numpy: "int32_t",
    dt.int64.numpy: "int64_t",
    dt.float16.numpy: "_Float16",
    dt.bfloat16.numpy: "bfloat16",
    dt.float32.numpy: "float",
    dt.float64.numpy: "double",
}


def local(T: str, name: str, count: int) -> str:
    """C text: an array on the stack. It is aligned because gcc 12 reads one that it placed itself
    as if it lay better than it does, where one of several loops over it starts late.

    >>> local("float", "row", 3)
    'float row[3] __attribute__((aligned(64)));'
    """
    return f"{T} {name}[{count}] __attribute__((aligned(64)));"


FLOAT16 = """\
#if defined __clang__ && __clang_major__ < 15  /* a type to be stored, which is all we do with it */
#define _Float16 __fp16
#endif
"""

BFLOAT16 = """\
typedef struct { uint16_t bits; } bfloat16;  /* the upper half of a float */

static inline float widen(bfloat16 h)
{
    uint32_t bits = (uint32_t)h.bits << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline bfloat16 narrow(float x)  /* to nearest, ties to even; NaN stays NaN */
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x) return (bfloat16){(uint16_t)(bits >> 16 | 0x40)};
    return (bfloat16){(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
"""

BLAS = """\
static void (*blas_sgemm)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                          const float *, int64_t, float, float *, int64_t);
"""
"""The pointer to `cblas_sgemm` with 64-bit sizes; a file that has it lets it be set from outside.
It may be null: then kernels do without."""

BAD_INDEX = """\
static volatile int bad_index;  /* how often a place was out of range */
"""
"""Who finds that it changed while a kernel ran knows that a place was out of range, in this run or
in one on another thread; nothing was read or written there."""


class Ahead(NamedTuple):
    """What a kernel takes in the place of an input that is kept from run to run: so many elements
    of its dtype, which the C statement `call` makes of it in advance, from `given` into `made`.
    """

    edge: Record
    elements: int
    call: str


class Kernel(NamedTuple):
    """The text of one C function, the bytes of workspace it needs, and what it shares."""

    name: str
    source: str
    workspace: int = 0
    helpers: tuple[str, ...] = ()
    ahead: Ahead | None = None
    starts: tuple[int, ...] = ()  # of each input: elements before the first that it is given

    def call(self, given: list[str], made: list[str], work: str = "work") -> str:
        """The C expression that calls it with pointers to inputs, results and its workspace."""
        starts = [f" + {n}" if n else "" for n in self.starts] or [""] * len(given)
        inputs = [x + start for x, start in zip(given, starts, strict=True)]
        return f"{self.name}({', '.join([*inputs, *made, *([work] if self.workspace else [])])})"


_kept: ContextVar[frozenset[Record]] = ContextVar("kept", default=frozenset())


@contextmanager
def keeping(edges: Iterable[Record]):
    """Within the block, these inputs of kernels hold the same in every run."""
    token = _kept.set(frozenset(edges))
    try:
        yield
    finally:
        _kept.reset(token)


def is_kept(edge: Record) -> bool:
    """May an input of the kernel that is being written be replaced by something made of it?"""
    return edge in _kept.get()


EMITTERS: dict[str, object] = {}
"""Operator name -> `emit(record, name, rows=None, parameters=()) -> Kernel`.

`rows(first, last)`, for two C expressions, is C text to run as soon as rows [first, last) of the
result, seen as (rows, last axis), are complete; `parameters` are declarations that the function
has after its own (before `work`), for the buffers this text uses.
"""


def emits(*names):
    """Decorator: the emitter of the operators of these names."""

    def register(emit):
        EMITTERS.update(dict.fromkeys(names, emit))
        return emit

    return register


class GroupEmitter(NamedTuple):
    """Emits the groups that are more than one loop nest, such as a product with its epilogue."""

    matches: Callable[[Record], bool]
    emit: Callable[[Record, str], Kernel]
    in_place: Callable[[Record], list]  # (output, input of the region) that may share memory


GROUP_EMITTERS: list[GroupEmitter] = []


def group_emitter(record: Record) -> GroupEmitter | None:
    """The emitter of a group that is no plain loop nest."""
    return next((each for each in GROUP_EMITTERS if each.matches(record)), None)


def is_number(edge) -> bool:
    """Is this input of a record a literal, not a buffer?"""
    return edge.op is NUMBER


def mixed(record) -> bool:
    """Are its operands of several floating dtypes? NumPy knows what meets in what."""
    return len({r.dtype for r in record.inputs if r.dtype in dt.FLOATS and not is_number(r)}) > 1


def results(record) -> list:
    """The specs of the results, one or several."""
    return [record.spec] if record.dtype is not None else list(record.shape)


def function(record, name: str, body: str, *, work=False, parameters=()) -> str:
    """The C function of `record` around its body."""
    inputs = [e for e in record.inputs if not is_number(e)]
    signature = [f"const {C_TYPES[e.dtype]} *restrict in{k}" for k, e in enumerate(inputs)]
    outs = enumerate(results(record))
    signature += [f"{C_TYPES[s.dtype]} *restrict out{k}" for k, s in outs]
    signature += [*parameters, *(["char *restrict work"] if work else [])]
    return f"static void {name}({', '.join(signature)})\n{{\n{body.rstrip()}\n}}\n"


HEADS = re.compile(r"^\S.*\bvoid .*?\((.*)\)$", re.MULTILINE)


def without_names(source: str, name: str) -> str:
    """The text of a kernel, the same whatever it and what it is given are called."""
    given = re.findall(r"\w+(?=,|$)", ", ".join(HEADS.findall(source)))
    new = {x: f"argument{k}" for k, x in enumerate(dict.fromkeys(given))}
    return re.sub(r"\w+", lambda word: new.get(word[0], word[0]), source.replace(name, "NAME"))
