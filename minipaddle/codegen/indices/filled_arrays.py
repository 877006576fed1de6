"""Kernels that fill an array and then write some places of it, for C and CUDA."""

from __future__ import annotations

from ...engine.codegen.kernel import Kernel, emits
from ...engine.codegen.nest_kernel import emit_nest
from ...engine.codegen.scalar import literal, wide
from ...engine.core import dtype as dt
from ...engine.core.op import OPS
from ...ops.strided import strides_of
from ..rows.axis_lines import fill_kernel
from ..target import KernelTarget, LoopLevel, kernel
from .indexing import assign_slice, each_element, element


def fill_with(k: KernelTarget, value) -> None:
    """Put a number in every place of the result."""
    text = f"out0[i] = STORE({literal(value, wide(k.out.dtype)).template});\n"
    k.loops(LoopLevel("i", k.out.size, text))


@emits(*(op.name for op in OPS.values() if op.kind == "reduction"))
def emit_reduction(record, name: str) -> Kernel:
    """A loop nest; of no elements the reduction is its identity."""
    if record.inputs[0].spec.size or not record.spec.size:
        return emit_nest(record, name)
    value = literal(record.op.identity, wide(record.dtype)).template
    text = f"for (int64_t i = 0; i < {record.spec.size}; i++) out0[i] = STORE({value});\n"
    return fill_kernel(record, name, text, record.dtype)


@kernel("eye")
def eye(k: KernelTarget) -> None:
    """Ones on the diagonal of a matrix of zeros."""
    rows, columns = k.out.shape
    k.clear()
    text = f"out0[i * {columns + 1}] = STORE(1);\n"
    k.loops(LoopLevel("i", min(rows, columns), text))


@kernel("embed_diagonal")
def embed_diagonal(k: KernelTarget) -> None:
    """A diagonal in planes that are filled with a number."""
    (x,), attrs, steps = k.specs, k.attrs, strides_of(k.out.shape)
    planes = attrs["axis1"], attrs["axis2"]
    above = max(attrs["offset"], 0), max(-attrs["offset"], 0)
    start = above[1] * steps[planes[0]] + above[0] * steps[planes[1]]
    rest = [step for d, step in enumerate(steps) if d not in planes]
    rest.append(steps[planes[0]] + steps[planes[1]])
    to = " + ".join([str(start), *(f"i{d} * {step}" for d, step in enumerate(rest))])
    fill_with(k, attrs["fill"])
    each_element(k, x.shape, f"out0[{to}] = in0[{element(x.shape, len(x.shape))}];\n")


@kernel("unslice")
def unslice(k: KernelTarget) -> None:
    """Zeros, with an array in a slice: for steps and new axes, which no loop nest has."""
    k.clear()
    assign_slice(k, k.specs[0].shape, k.attrs["index"], "in0")


@kernel("move", "by_mode")
def move(k: KernelTarget) -> None:
    """The same elements."""
    k.loops(k.copy("out0", "in0", k.out.size))


CHECK = """\
int held = 1;
for (int64_t i = 0; i < SIZE; i++) held &= LOAD(in0[i]) != 0;
if (!held) bad_index++;
memcpy(out0, in0, SIZE * sizeof(E));
"""


@emits("check")
def emit_check(record, name: str):
    """The host raises the error of an assertion that does not hold."""
    return fill_kernel(record, name, CHECK, record.dtype, SIZE=record.spec.size)


REINTERPRET = """\
memcpy(out0, in0, BYTES);
for (int64_t i = 0; i < TRUTHS; i++) out0[i] = out0[i] != 0;
"""


@emits("reinterpret")
def emit_reinterpret(record, name: str):
    """The same bytes; a boolean of bytes is whether they are not 0."""
    truths = record.spec.size if record.dtype == dt.bool_.numpy else 0
    size = record.spec.nbytes
    return fill_kernel(record, name, REINTERPRET, record.dtype, BYTES=size, TRUTHS=truths)
