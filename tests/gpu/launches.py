"""The calls of a program on a GPU with the bytes that they read and write at least."""

from __future__ import annotations

from minipaddle.codegen.cuda.calls import Clear, Gemm, Launch
from minipaddle.engine.codegen.kernel import buffers, results
from minipaddle.engine.core.record import Record


def call_bytes(record: Record, call) -> int:
    """The bytes of all operands of a call, each once."""
    if isinstance(call, Clear):
        return call.nbytes
    if isinstance(call, Gemm):
        factors = (call.m * call.k + call.k * call.n) * call.dtype.itemsize
        return call.count * (factors + call.m * call.n * call.result.itemsize)
    assert isinstance(call, Launch)
    arrays = {"in": lambda r: [x.spec for x in buffers(r)], "out": results}
    return sum(arrays[o.kind](record)[o.k].nbytes for o in call.given if o.kind in arrays)
