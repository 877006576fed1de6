"""A matrix that several products read across its rows is transposed once for all of them.

The kernel of a product needs operands whose columns are neighbours in memory, and copies a
transposed operand to such an order in each call. A weight that a Python loop uses 32 times would be
copied 32 times. After this pass the program transposes it once, and the products read the result.
A constant of a loop in the program counts as read by several: `loop_invariants` moves its transpose
before the loop.
"""

from __future__ import annotations

from collections import Counter

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.control import fused, while_loop
from ..engine.ir.program import NUMBER, Program, everywhere
from ..engine.ops.movement import replace_axis, transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops.products import product


def across(record: Record) -> tuple[int, Record, tuple] | None:
    """(k, operand k, the transpose it needs) where a product reads it across its rows, or None."""
    perms = record.attrs["x_perm"], record.attrs["y_perm"]
    last = len(perms[0]) - 1
    rows, columns = record.attrs["out_perm"].index(last - 1), record.attrs["out_perm"].index(last)
    k, inner = (1, -1) if columns > rows else (0, -2)  # its axis lies innermost in the result
    if perms[k][inner] == last or record.inputs[k].op is NUMBER:
        return None
    order = perms[k] if k else (*perms[k][:-2], perms[k][-1], perms[k][-2])
    return k, record.inputs[k], order


@program_pass("pretranspose", looks_for=[product])
def pretranspose(program: Program) -> Program:
    """The program that transposes once each operand that several products read across its rows."""
    groups = [r.attrs["region"] for r in everywhere(program) if r.op is fused]
    inside = {r for region in groups for r in everywhere(region)}  # their kernels pack operands
    alone = [r for r in everywhere(program) if r.op is product and r not in inside]
    loops = [r for r in everywhere(program) if r.op is while_loop]
    constants = {x for r in loops for x in r.attrs["body"].inputs[r.attrs["carried"] :]}
    readings = [across(r) for r in alone]
    reads = Counter(each[1:] for each in readings if each is not None)
    reads.update(each for each in reads.copy() if each[0] in constants)
    if max(reads.values(), default=0) < 2:
        return program
    transposes: dict[tuple, object] = {}

    def read_transposed(record, *operands):
        k, source, order = across(record) or (0, None, ())
        if record in inside or reads[source, order] < 2:
            return None
        key = current.top.builder, source, order
        if key not in transposes:
            transposes[key] = transpose(operands[k], perm=order)
        straight = tuple(range(len(order)))
        perm = straight if k else (*straight[:-2], straight[-1], straight[-2])
        attrs = record.attrs | {"xy"[k] + "_perm": perm}
        return product(*replace_axis(operands, k, transposes[key]), **attrs)

    return rewritten(program, {product: read_transposed})
