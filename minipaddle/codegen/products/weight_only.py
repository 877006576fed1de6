"""Products of floats with a weight of 8 or 4 bits: its numbers become floats in registers.

Memory bounds a product of few rows by a weight, so the weight is read once, in its order: along the
inputs of two outputs, which share bytes if they have 4 bits.
"""

from __future__ import annotations

from string import Template

from ...engine.codegen.kernel import C_TYPES, Kernel, read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.writer import least, worth_sharing
from ..c_text import indent, share_loop
from ..kernel_frame import FloatKernel, writes

EIGHT = read_template("eight_bytes.c", __file__)
TEXT = Template(read_template("weight_only.c", __file__))
ROWS, CHUNK, SERIAL = 4, 16, 1 << 17
"""Rows at a time; pairs of outputs that are multiplied with the same rows; multiplications from
which on a second thread pays."""

NUMBERS = {
    8: ("first", "eight_bytes(w + (outs - 1) * K + k + 8 * u)",
        "1", "w[j * K + k]"),
    4: ("first << 28", "first >> 4", "(j ? 1 : 0x1p-28f)",
        "(j ? w[k] >> 4 : (int8_t)(w[k] << 4) >> 4)"),
}  # fmt: skip
"""C text by bits: eight numbers of an even and of an odd output, the unit of these, and a single
number. Four bits stay in the upper half of an integer: shifting them down would take longer, and a
power of two is exact. Sums with them are finite for rows of numbers below 2^70.
"""


@writes("weight_only_matmul")
def multiply(frame: FloatKernel) -> Kernel:
    """The kernel of rows of floats by a weight of few bits."""
    (x, _, scale), bits = (e.spec for e in frame.record.inputs), frame.record.attrs["bits"]
    T, (M, K), (groups, N) = C_TYPES[x.dtype], x.shape, scale.shape
    if T not in ("float", "double") or scale.dtype != x.dtype:
        raise CannotWrite(f"weight_only_matmul of {x} and scales in {scale.dtype}")
    low, high, unit, one = NUMBERS[bits]
    helper = TEXT.substitute(T=T, bits=bits, low=low, high=high, unit=unit, one=one)
    call = (
        f"weight_only_{T}_{bits}(%d, {K}, {K // max(groups, 1)}, {N}, in0 + m * {K},\n"
        f"    in1 + o * {K} / {8 // bits}, in2 + o, out0 + m * {N} + o, %s);\n"
    )

    def outputs(count: int) -> str:
        if N % 2 == 0:
            return call % (count, 2)
        return f"if (o + 1 < {N}) {call % (count, 2)}else {call % (count, 1)}"

    inside = f"const int64_t last = {least(f'chunk + {2 * CHUNK}', N)};\n"
    blocks = [(M // ROWS * ROWS, ROWS, 0), (M, M % ROWS, M // ROWS * ROWS)]
    for end, count, start in blocks:
        if end > start:
            inside += f"for (int64_t m = {start}; m < {end}; m += {count})\n"
            inside += f"    for (int64_t o = chunk; o < last; o += 2) {{\n{outputs(count)}    }}\n"
    loops = share_loop("chunk", N, inside, worth_sharing(M * K * N, SERIAL + 1), 2 * CHUNK)
    return frame.kernel(indent(loops, 4), (EIGHT, helper))
