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
from typing import NamedTuple

from ..engine.core import dtype as dt
from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.ir.edit import count_uses, in_branches
from ..engine.ir.program import ITEM, Program
from ..engine.ops.linalg import product
from ..engine.ops.movement import reshape
from ..engine.passes.registry import program_pass
from .epilogue import Region, begins_with_product, joined, rebuilt, room_of

STRIP = 1 << 18
"""The most bytes that FEWEST rows may have: more do not fit into the second cache, nor on a
thread's stack."""

FEWEST = 8
"""The fewest rows that are computed together."""

BLAS = 1 << 20
"""Elements of a matrix from which OpenBLAS, which needs all rows at once, is faster."""


def products(group: Record) -> list[Record]:
    """The products in a group."""
    return [r for r in group.attrs["region"].records if r.op is product]


def is_chain(record: Record) -> bool:
    """Whether a record is a group with a second product."""
    return begins_with_product(record) and len(products(record)) > 1


def group_of(x: Record) -> Record | None:
    """The group with an epilogue whose only result a value is, reshapes aside."""
    while x.op is reshape:
        x = x.inputs[0]
    group = x.inputs[0] if x.op is ITEM else None
    if group is None or not begins_with_product(group) or len(group.shape) > 1:
        return None
    first, *more = products(group) or [None]
    return None if first is None or more else group


def hands_on(group: Record) -> bool:
    """Whether a group computes its rows in order, each where the product's row was."""
    region = group.attrs["region"]
    first = region.records[0]
    plain = first.attrs["out_perm"] == tuple(range(first.spec.ndim))
    whole = region.outputs[0].spec.size == first.spec.size
    return plain and whole and first.shape[-1] > 1 and room_of(region)[0] == 0


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


class Link(NamedTuple):
    """Two records that can be one: the second, the value it multiplies, the group that computes
    it, and the records that disappear: that group and views of its result."""

    region: Region
    x: Record
    group: Record
    gone: set[Record]

    @property
    def folds(self) -> bool:
        """Whether there is a reduction between the products."""
        return any(r.op.kind == "reduction" for r in self.group.attrs["region"].records)


def link(record: Record) -> Link | None:
    """The group that a product, or a group that begins with one, can be joined to."""
    if record.op is not product and not begins_with_product(record):
        return None
    region = Region(record)
    second = region.program.records[0]
    x = next((a for a, b in region.pairs if b is second.inputs[0]), None)
    group = None if x is None or second.op is not product else group_of(x)
    if group is None:
        return None
    first, own = group.attrs["region"].records[0], region.given[x]
    fits = first.dtype == second.dtype and first.dtype in (dt.float32.numpy, dt.float64.numpy)
    fits = fits and hands_on(group) and takes(second, own, first, record.op is product)
    if not (fits and profitable(first, second)):
        return None
    gone = [x]
    while gone[-1] is not group:
        gone.append(gone[-1].inputs[0])
    return Link(region, x, group, {*gone})


@program_pass(
    "back_to_back_gemm",
    looks_for=lambda op: op is product,
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
    return linked(program, {True: fused_attention, False: fused_feedforward})


def linked(program: Program, wanted: dict[bool, bool]) -> Program:
    """The program, and its branches and loops, with groups of two products; `wanted` says whether
    with (True) and without (False) a reduction between them.
    """
    program = in_branches(program, lambda region: linked(region, wanted))
    count, here = count_uses(program), set(program.records)
    gone: set[Record] = set()
    instead: dict[Record, Record] = {}
    for record in program.records:
        found = link(record)
        if found is None or found.group not in here or found.group in instead:
            continue
        if wanted[found.folds] and all(count[r] == 1 for r in found.gone):
            instead[record] = joined(found.region, found.x, found.group)
            gone |= found.gone
    return rebuilt(program, instead, gone) if instead else program
