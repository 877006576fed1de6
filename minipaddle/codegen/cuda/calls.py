"""The calls that compute a record on a GPU, one after another: kernels and matrix products.

A call knows no addresses, only operands (`Operand`). So the memory can be planned after the calls
are known, and any device with memory can run them: a GPU, or the test that emulates one.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.codegen.kernel import C_TYPES, buffers, entries, results
from ...engine.core import dtype as dt

CUDA_TYPES = C_TYPES | {dt.float16.numpy: "half"}
"""The types of elements in memory. `half` and `bfloat16` are bits; formulas compute with floats."""


class Operand(NamedTuple):
    """Memory of a record, from the byte `offset` on: its "in" or "out" number k (numbers do not
    count as inputs), its "work"space, or its "value"; or the program's table of "wrong" indices;
    or the "slot" k, which has an address.
    """

    kind: str
    k: int = 0
    offset: int = 0


class Launch(NamedTuple):
    """A kernel, run by (x, y) blocks of (x, y) threads. It gets the addresses of operands, or the
    address of a table of them if it does the work of `parts`.
    """

    name: str
    source: str
    blocks: tuple[int, int]
    threads: tuple[int, int]
    given: tuple[Operand, ...]
    helpers: tuple[str, ...] = ()
    parts: tuple[Launch, ...] = ()


class Matrix(NamedTuple):
    """Matrices in memory: `pitch` elements from one line to the next, `step` from one matrix to
    the next. A line is a row, or a column if the matrix is `turned`.
    """

    at: Operand
    pitch: int
    step: int = 0
    turned: bool = False


class Gemm(NamedTuple):
    """c[b] = x[b] · y[b] for `count` matrices: m rows, n columns, sums of k terms. c has the dtype
    `result`. With `tf32` a GPU may round factors of float32 to 10 bits. If no equal steps lead from
    one matrix to the next, `starts` has the bytes from the operands to each x[b], y[b] and c[b].
    """

    x: Matrix
    y: Matrix
    c: Matrix
    m: int
    n: int
    k: int
    count: int
    dtype: object
    result: object
    tf32: bool = False
    starts: tuple[tuple[int, int, int], ...] = ()


class Clear(NamedTuple):
    """Fill memory with zeros."""

    at: Operand
    nbytes: int


class KernelCalls(NamedTuple):
    """All calls that compute a record, and the bytes of workspace they need."""

    calls: tuple
    workspace: int = 0


def operands(record) -> tuple[Operand, ...]:
    """All inputs, then all results."""
    ins = [Operand("in", k) for k in range(len(buffers(record)))]
    return (*ins, *(Operand("out", k) for k in range(len(results(record)))))


CUDA_EMITTERS: dict[str, object] = {}
"""Operator name -> `emit(record, name) -> Calls`; names of kernels begin with `name`."""


cuda_emitter = entries(CUDA_EMITTERS)
"""Decorator that registers the function that returns the calls of these operators."""
