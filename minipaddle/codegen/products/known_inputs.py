"""Bounds of the numbers in a kernel's inputs, which let it multiply in fewer bits.

Mixed precision rounds the inputs of a product to bfloat16 and multiplies them as float32, so that
only the end of a formula is rounded again. A processor that multiplies bfloat16 (`grouped_tiles`)
needs no more than the upper halves of such inputs, and makes the same products from them. Bytes
behind a ReLU are not negative: AVX2 multiplies four of them at once.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from ...engine.codegen.kernel_schedule import within
from ...engine.core.dtype import bfloat16, float32, int8
from ...engine.core.record import Record
from ...engine.ir.control import fused
from ...engine.ir.program import ITEM, NUMBER
from ...engine.ops.activation import relu
from ...engine.ops.elementwise import cast
from ...ops.activations import relu6
from ...ops.quantization import quantize
from ..machine import facts


class KnownInput(NamedTuple):
    """Inputs of the kernel that is being written, by what their numbers are."""

    halves: frozenset[Record] = frozenset()  # numbers of bfloat16, in float32
    unsigned: frozenset[Record] = frozenset()  # bytes from 0 to 127


NOTHING = KnownInput()
_known: ContextVar[KnownInput] = ContextVar("known", default=NOTHING)


def declare_inputs(pairs):
    """Within the block, kernels know their inputs. `pairs` are those of a kernel, and the records
    that made them.
    """
    pairs = [*pairs]
    halves = frozenset(x for x, source in pairs if holds_halves(source))
    return within(
        _known, KnownInput(halves, frozenset(x for x, source in pairs if is_unsigned(source)))
    )


def multiplies_halves(record: Record) -> bool:
    """Whether both inputs of the product that is being written hold only numbers of bfloat16."""
    known = _known.get().halves
    return all(
        edge.dtype == bfloat16.numpy or (edge.dtype == float32.numpy and edge in known)
        for edge in record.inputs
    )


def is_known_unsigned(edge: Record) -> bool:
    """Whether an input of the kernel that is being written has bytes from 0 to 127."""
    return edge in _known.get().unsigned


def origin(edge: Record) -> Record:
    """The record that computes an edge's numbers, inside of a group too, and before movements."""
    if edge.op is ITEM and edge.inputs[0].op is fused:
        return origin(edge.inputs[0].attrs["region"].outputs[edge.attrs["k"]])
    if edge.op is fused:
        return origin(edge.attrs["region"].outputs[0])
    return origin(edge.inputs[0]) if edge.op.kind == "movement" else edge


def is_small(edge: Record) -> bool:
    """Whether kernels may multiply a record's result in fewer bits than its dtype has."""
    return is_unsigned(edge) or (holds_halves(edge) and facts().bf16)  # last: it asks a compiler


def holds_halves(edge: Record) -> bool:
    """Whether a record's result is bfloat16, in float32."""
    source = origin(edge)
    widens = source.op is cast and source.dtype == float32.numpy
    return widens and source.inputs[0].dtype == bfloat16.numpy


def is_unsigned(edge: Record) -> bool:
    """Whether a record's result is bytes of numbers behind a ReLU, with 0 for 0.0."""
    source = origin(edge)
    if source.dtype != int8.numpy or source.op is not quantize:
        return False
    x, _, zero = source.inputs
    at_zero = zero.op is NUMBER and zero.attrs["value"] == 0
    return at_zero and x.op in (relu, relu6)
