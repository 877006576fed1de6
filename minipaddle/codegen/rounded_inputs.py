"""Which float32 arrays hold only numbers of bfloat16.

Mixed precision rounds the inputs of a product to bfloat16 and multiplies them as float32, so that
only the end of a formula is rounded again. A processor that multiplies bfloat16 (`grouped_tiles`)
needs no more than the upper halves of such inputs, and makes the same products from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar

from ..engine.codegen.kernel_schedule import within
from ..engine.core.dtype import bfloat16, float32
from ..engine.core.record import Record
from ..engine.ir.control import fused
from ..engine.ir.program import ITEM
from ..engine.ops.elementwise import cast

_rounded: ContextVar[frozenset[Record]] = ContextVar("rounded", default=frozenset())


def rounded_inputs(edges: Iterable[Record]):
    """Within the block, these inputs of kernels hold only numbers of bfloat16."""
    return within(_rounded, frozenset(edges))


def multiplies_halves(record: Record) -> bool:
    """Whether both inputs of the product that is being written hold only numbers of bfloat16."""
    kinds = {edge.dtype for edge in record.inputs}
    known = kinds == {float32.numpy} and _rounded.get().issuperset(record.inputs)
    return known or kinds == {bfloat16.numpy}


def holds_halves(edge: Record) -> bool:
    """Whether a record's result is bfloat16, in float32."""
    if edge.op is ITEM:
        return made_by_group(edge.inputs[0], edge.attrs["k"])
    if edge.op is fused:
        return made_by_group(edge, 0)
    if edge.op.kind == "movement":
        return holds_halves(edge.inputs[0])
    return edge.op is cast and edge.dtype == float32.numpy and is_half(edge.inputs[0])


def is_half(edge: Record) -> bool:
    return edge.dtype == bfloat16.numpy


def made_by_group(group: Record, k: int) -> bool:
    return group.op is fused and holds_halves(group.attrs["region"].outputs[k])
