"""Chains: what is done to the rows of one product goes straight into the next one.

    softmax(q kᵀ · scale + mask) v        activation(x w1 + b1) w2 + b2

The matrix between two products (scores, a hidden layer) is made a few rows at a time, in memory
that stays in the cache, and never stands in memory as a whole: a group with an epilogue, and the
product (or the group) that alone uses its rows, become one group. Rows are whole, so the formula is
the one that was written; nothing is computed twice.
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
"""Bytes of the fewest rows that are worth a tile: more do not stay in the second cache, nor on a
thread's stack."""

FEWEST = 8
"""So many rows are computed together at least."""

BLAS = 1 << 20
"""Elements of a matrix from which OpenBLAS, which wants all rows at once, is faster."""


def products(group: Record) -> list[Record]:
    """The products in a group."""
    return [r for r in group.attrs["region"].records if r.op is product]


def is_chain(record: Record) -> bool:
    """Is it a group with a second product?"""
    return begins_with_product(record) and len(products(record)) > 1


def group_of(x: Record) -> Record | None:
    """The group with an epilogue whose only result a value is, maybe reshaped."""
    while x.op is reshape:
        x = x.inputs[0]
    group = x.inputs[0] if x.op is ITEM else None
    if group is None or not begins_with_product(group) or len(group.shape) > 1:
        return None
    first, *more = products(group) or [None]
    return None if first is None or more else group


def hands_on(group: Record) -> bool:
    """Are its rows made one after the other, each where the product's was?"""
    region = group.attrs["region"]
    first = region.records[0]
    plain = first.attrs["out_perm"] == tuple(range(first.spec.ndim))
    whole = region.outputs[0].spec.size == first.spec.size
    return plain and whole and first.shape[-1] > 1 and room_of(region)[0] == 0


def takes(second: Record, x: Record, first: Record, last: bool) -> bool:
    """Does the product `second` multiply the rows of x, which `first` makes, each once and in their
    order? Unless it is the `last` record, what comes after it wants rows in their order as well.
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


@slot("chain.pays")
def pays(first: Record, second: Record) -> bool:
    """Is a chain of these products as fast as they are apart? Then it pays, for it is smaller.
    Measured on one thread, whatever the size of a strip: 0.85 to 1.02 of the time for attention of
    64 to 2048 tokens (the longer the better), 0.91 to 1.02 for feed-forward layers; OpenBLAS is
    faster than our tiles where matrices are large, and dot products where rows are few.
    """
    row = first.shape[-1] * first.dtype.itemsize
    weights = [prod(r.inputs[1].shape[d] for d in r.attrs["y_perm"][-2:]) for r in (first, second)]
    return row * FEWEST <= STRIP and max(weights) < BLAS and first.shape[-2] >= FEWEST


class Link(NamedTuple):
    """Two records that can be one: the second, the value it multiplies, the group that makes it,
    and all that goes with that: looks at its result."""

    region: Region
    x: Record
    group: Record
    gone: set[Record]

    @property
    def folds(self) -> bool:
        """Is anything folded between the products?"""
        return any(r.op.kind == "reduction" for r in self.group.attrs["region"].records)


def link(record: Record) -> Link | None:
    """What a product, or a group that begins with one, can be joined to."""
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
    if not (fits and pays(first, second)):
        return None
    gone = [x]
    while gone[-1] is not group:
        gone.append(gone[-1].inputs[0])
    return Link(region, x, group, {*gone})


@program_pass(
    "chain",
    fused_attention=(
        True,
        "softmax(QKᵀ)V, and all that folds rows between products, without the matrix",
    ),
    fused_feedforward=(True, "two products with an activation between, without the hidden matrix"),
)
def chain(program: Program, *, fused_attention: bool, fused_feedforward: bool) -> Program:
    """The program with groups that hand the rows of a product straight on to another product."""
    return linked(program, {True: fused_attention, False: fused_feedforward})


def linked(program: Program, wanted: dict[bool, bool]) -> Program:
    """The program, its branches and loops too, with chains that fold between their products, or
    not, if these are wanted.
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
