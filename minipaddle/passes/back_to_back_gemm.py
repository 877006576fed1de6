"""Back-to-back products: the rows of one product are used by the next one at once.

    softmax(q kᵀ · scale + mask) v        activation(x w1 + b1) w2 + b2

The matrix between two products (scores, a hidden layer) is computed a few rows at a time, in memory
that stays in the cache, and is never stored as a whole. A group with an epilogue, and the product
(or the group) that alone uses its rows, become one group. Rows are whole, so the formula does not
change, and nothing is computed twice.
Source: Rabe and Staats, "Self-attention Does Not Need O(n²) Memory", 2021; Dao and others,
"FlashAttention", 2022 (which cut the rows, too).
"""

from __future__ import annotations

from math import prod

from ..engine.core import dtype as dt
from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.ir.program import ITEM, Program
from ..engine.passes.fusion_groups import skip_reshapes
from ..engine.passes.nest import Nest
from ..engine.passes.registry import program_pass
from ..ops.products import product
from .epilogue import Region, begins_with_product, build_group, join_groups
from .frozen_states import BLAS, BorrowedWeight
from .strip_products import is_strips

STRIP = 1 << 18
"""The most bytes that FEWEST rows may have: more do not fit into the second cache, nor on a
thread's stack."""

FEWEST = 8
"""The fewest rows that are computed together."""

DTYPES = dt.float32.numpy, dt.float64.numpy
"""The dtypes for which there is a kernel."""


def products(group: Record) -> list[Record]:
    """The products in a group."""
    return [r for r in group.attrs["region"].records if r.op is product]


def is_chain(record: Record) -> bool:
    """Whether a record is a group with a second product."""
    return begins_with_product(record) and len(products(record)) > 1 and not is_strips(record)


def group_of(x: Record) -> Record | None:
    """The group with an epilogue whose only result a value is, reshapes aside."""
    x = skip_reshapes(x)
    group = x.inputs[0] if x.op is ITEM else None
    if group is None or not begins_with_product(group) or len(group.shape) > 1:
        return None
    return group if len(products(group)) == 1 else None


def hands_on(group: Record) -> bool:
    """Whether a group computes its rows in order, each where the product's row was."""
    region = group.attrs["region"]
    first, *rest = region.records
    plain = first.attrs["out_perm"] == tuple(range(first.spec.ndim))
    (result,) = region.outputs
    whole = (result.spec.size, result.dtype) == (first.spec.size, first.dtype)
    over = not rest or (0, first) in Nest(rest, region.outputs).in_place()
    return plain and whole and first.shape[-1] > 1 and over


def takes(second: Record, x: Record, first: Record, last: bool) -> bool:
    """Whether the product `second` reads the rows of x, which `first` computes, each once and in
    order. Unless it is the `last` record, it must also write its rows in order.
    """
    plain = tuple(range(x.spec.ndim))
    attrs, (left, right) = second.attrs, second.inputs
    lead = [right.shape[d] for d in attrs["y_perm"]][:-2]
    return (
        left is x
        and right is not x
        and attrs["x_perm"] == plain
        and (attrs["out_perm"] == plain or (last and attrs["out_perm"][-1] == plain[-1]))
        and second.shape[-1] > 1
        and x.shape[-2:] == first.shape[-2:]
        and all(n >= k for n, k in zip(x.shape, lead))
    )


@slot("back_to_back_gemm.profitable")
def profitable(first: Record, second: Record) -> bool:
    """Whether two products in one group are as fast as apart: then the group saves memory.
    Measured on one thread, whatever the size of a strip: 0.85 to 1.02 of the time for attention of
    64 to 2048 tokens (the longer the better), 0.91 to 1.02 for feed-forward layers; OpenBLAS is
    faster than our tiles where matrices are large, and dot products where rows are few.
    """
    row = first.shape[-1] * first.dtype.itemsize
    weights = [prod(r.inputs[1].shape[d] for d in r.attrs["y_perm"][-2:]) for r in (first, second)]
    return row * FEWEST <= STRIP and max(weights) < BLAS and first.shape[-2] >= FEWEST


@program_pass(
    "back_to_back_gemm",
    looks_for=[product],
    fused_attention=(
        True,
        "softmax(QKᵀ)V, and all that folds rows between products, without the matrix",
    ),
    fused_feedforward=(True, "two products with an activation between, without the hidden matrix"),
)
def back_to_back_gemm(
    program: Program, *, fused_attention: bool, fused_feedforward: bool
) -> Program:
    """The program with groups in which a product uses the rows of another one at once."""

    packed = {s.record for s in program.states if isinstance(s.storage, BorrowedWeight)}

    def join(record, alone):
        if record.op is not product and not begins_with_product(record):
            return None
        region = Region(record)
        second = region.program.records[0]
        x = next((a for a, b in region.pairs if b is second.inputs[0]), None)
        group = None if x is None or second.op is not product else group_of(x)
        if group is None:
            return None
        if not packed.isdisjoint((*record.inputs, *group.inputs)):
            return None  # kernels of one product pack their weights
        inside = [x]
        while inside[-1] is not group:
            inside.append(inside[-1].inputs[0])
        folds = any(r.op.kind == "reduction" for r in group.attrs["region"].records)
        wanted = fused_attention if folds else fused_feedforward
        first, own = group.attrs["region"].records[0], region.given[x]
        fits = wanted and first.dtype == second.dtype and first.dtype in DTYPES and alone(inside)
        fits = fits and hands_on(group) and takes(second, own, first, record.op is product)
        if not (fits and profitable(first, second)):
            return None
        return build_group(region, x, group), {*inside}

    return join_groups(program, join)
