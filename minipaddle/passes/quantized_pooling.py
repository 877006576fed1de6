"""Numbers are rounded before they are pooled: rounding keeps their order.

    quantize(max_pool(relu(x)))   →   max_pool(quantize(relu(x)))       bit for bit

The rounding then joins the product before it (see `epilogue`), which writes bytes instead of
floats. On AVX2 the arena of LeNet takes a quarter of the memory, that of a VGG two fifths; but more
numbers are rounded, which takes up to a fifth more time: so it is a switch (`pool_bytes`).

NaN has no place in that order: x must be rescaled sums of whole numbers, and a bias. Where
something else reads the pooled floats too, such as a residual connection, all stays: there would be
two poolings.
"""

from __future__ import annotations

from functools import reduce
from itertools import product

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.program import Program
from ..engine.ops.activation import relu
from ..engine.ops.elementwise import add, maximum
from ..engine.ops.movement import reshape, slice_
from ..engine.ops.var import Var
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.pooling import max_pool
from ..ops.quantization import dequantize, quantize
from ..ops.quantized import one_number, size_of


def chain(x, ops: tuple) -> tuple[list[Record], Var]:
    """The records of these operators that a value went through, the last one first, as long as
    nothing else reads what they give; and what the first of them was given.
    """
    records, record = [], made_by(x)
    while record is not None and record.op in ops and current.top.builder.uses(record) == 1:
        records.append(record)
        x = current.top.builder.tensor(record.inputs[0])
        record = made_by(x)
    return records, x


def pool(q, windows):
    """The largest of each window, as maxima of slices; the windows lie within the image."""
    taps = product(*(range(k) for k, *_ in windows))
    everything = [(None, None, None)] * 2

    def tap(places):
        cut = [(t, t + (n - 1) * s + 1, s) for t, (_, s, _, n) in zip(places, windows)]
        return slice_(q, index=(*everything, *cut))

    return reduce(maximum, map(tap, taps))


def lies_within(record: Record) -> bool:
    """Whether all windows of a pooling lie within its image."""
    sizes = record.inputs[0].shape[2:]
    every = zip(record.attrs["windows"], sizes, strict=True)
    return all(low == 0 and (n - 1) * s + k <= size for (k, s, low, n), size in every)


def adds_bias(record: Record) -> bool:
    """Whether a sum adds the same along the axes of an image: then a NaN fills whole windows."""
    return all(n == 1 for n in record.inputs[1].shape[2 - record.spec.ndim :])


def round_first(record: Record, x, scale, zero):
    """The rounding of a value before it is pooled, then the pooling; None to let both stand."""
    steps, source = chain(x, (max_pool, relu, reshape))
    pools = [step for step in steps if step.op is max_pool]
    if not pools or not all(map(lies_within, pools)) or size_of(scale) != 1 or size_of(zero) != 1:
        return None
    if any(step.op is reshape for step in steps[steps.index(pools[0]) :]):
        return None
    terms, summed = chain(source, (add,))
    first = made_by(summed)
    if first is None or first.op is not dequantize or not all(map(adds_bias, terms)):
        return None
    y = relu(source) if any(step.op is relu for step in steps) else source
    y = quantize(y, one_number(scale), one_number(zero), **record.attrs)
    for step in reversed(steps):
        if step.op is max_pool:
            y = pool(y, step.attrs["windows"])
        elif step.op is reshape:
            y = reshape(y, shape=step.attrs["shape"])
    return y


def quantized_pooling(program: Program) -> Program:
    """The program that rounds to whole numbers before it takes the largest of windows."""
    return rewritten(program, {quantize: round_first})
