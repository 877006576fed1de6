"""Sums along rows of a product that is weighted become sums along the rows of smaller matrices.

    o = p v;  Σ p · (g vᵀ)   →   o = p v;  Σ g · o

as Σ_j p_ij Σ_n g_in v_jn = Σ_n g_in Σ_j p_ij v_jn. So the backward of a softmax between products
needs no sum along its rows: the result of the forward has it.
Source: Dao and others, "FlashAttention", 2022, appendix B.2.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.dtype import FLOATS
from ..engine.core.record import Record
from ..engine.ir.program import NUMBER, Program
from ..engine.ops import elementwise, reduction
from ..engine.ops.movement import inverse
from ..engine.passes.patterns import as_tensor
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.products import product


def with_short_sums(program: Program) -> Program:
    """The program with sums along shorter rows."""
    return rewritten(program, {reduction.sum: shorten_sum})


def shorten_sum(record, x):
    """The sum of a product along shorter rows, if it is of weights times another product."""
    weighted = made_by(x)
    along, axes = (x.ndim - 1,), tuple(range(x.ndim))
    if weighted is None or weighted.op is not elementwise.multiply or x.spec.dtype not in FLOATS:
        return None
    if record.attrs["axis"] != along or not record.attrs["keepdim"]:
        return None
    for weights, factor in (weighted.inputs, weighted.inputs[::-1]):
        lead, shapes = skip_casts(factor), {r.shape for r in weighted.inputs if r.op is not NUMBER}
        if lead.op is product and lead.attrs["out_perm"] == axes and shapes == {weighted.shape}:
            g, v = lead.inputs
            o = find_product(skip_casts(weights), v, lead.attrs["y_perm"])
            if o is not None:
                return sum_of_results(as_tensor(g), lead.attrs["x_perm"], o, x.dtype)
    return None


def sum_of_results(g, perm: tuple, o: Record, dtype):
    """Σ g · o along the last axis of g transposed by `perm`, where the product's result `o` has the
    order of the sum: computed in the order of g.
    """
    order = inverse(o.attrs["out_perm"])
    order = tuple(order[d] for d in inverse(perm))
    o = as_tensor(o)
    o = o if order == tuple(range(o.ndim)) else o.transpose(order)
    total = (g.astype(dtype) * o.astype(dtype)).sum(perm[-1], keepdim=True)
    return total if perm == tuple(range(total.ndim)) else total.transpose(perm)


def find_product(weights: Record, v: Record, v_perm: tuple) -> Record | None:
    """The product p v of the program that is being written, where v is transposed in `v_perm`."""
    plain, turned = tuple(range(len(v_perm))), (*v_perm[:-2], v_perm[-1], v_perm[-2])
    products = (r for r in current.top.builder.program.records if r.op is product)
    same = (r for r in products if r.inputs[1] is v and skip_casts(r.inputs[0]) is weights)
    perms = plain, turned
    return next((r for r in same if (r.attrs["x_perm"], r.attrs["y_perm"]) == perms), None)


def skip_casts(record: Record) -> Record:
    """The value before casts from floats to floats."""
    while record.op is elementwise.cast and {record.dtype, record.inputs[0].dtype} <= FLOATS:
        record = record.inputs[0]
    return record
