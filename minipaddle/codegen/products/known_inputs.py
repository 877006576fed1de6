"""Bounds of the numbers in a kernel's inputs, which let it multiply in fewer bits.

Bytes behind a ReLU are not negative: AVX2 multiplies four of them at once.
"""

from __future__ import annotations

from contextvars import ContextVar

from ...engine.codegen.kernel_schedule import within
from ...engine.core.dtype import int8
from ...engine.core.record import Record
from ...engine.ir.control import fused
from ...engine.ir.program import ITEM, NUMBER
from ...engine.ops.activation import relu
from ...ops.activations import relu6
from ...ops.quantization import quantize

_unsigned: ContextVar[frozenset[Record]] = ContextVar("unsigned", default=frozenset())


def declare_unsigned(edges):
    """Within the block, these inputs of the kernel that is being written are not negative."""
    return within(_unsigned, frozenset(edges))


def is_known_unsigned(edge: Record) -> bool:
    """Whether an input of the kernel that is being written has bytes from 0 to 127."""
    return edge in _unsigned.get()


def origin(edge: Record) -> Record:
    """The record that computes an edge's numbers, inside of a group too, and before movements."""
    if edge.op is ITEM and edge.inputs[0].op is fused:
        return origin(edge.inputs[0].attrs["region"].outputs[edge.attrs["k"]])
    if edge.op is fused:
        return origin(edge.attrs["region"].outputs[0])
    return origin(edge.inputs[0]) if edge.op.kind == "movement" else edge


def is_unsigned(edge: Record) -> bool:
    """Whether a record's result is bytes of numbers behind a ReLU, with 0 for 0.0."""
    source = origin(edge)
    if source.dtype != int8.numpy or source.op is not quantize:
        return False
    x, _, zero = source.inputs
    at_zero = zero.op is NUMBER and zero.attrs["value"] == 0
    return at_zero and x.op in (relu, relu6)
