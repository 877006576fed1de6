"""A matrix that several products read across its rows is transposed once for all of them.

The kernel of a product needs operands whose columns are neighbours in memory, and copies a
transposed operand to such an order in each call. A weight that a Python loop uses 32 times would be
copied 32 times. After this pass the program transposes it once, and the products read the result.
"""

from __future__ import annotations

from collections import Counter

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.program import NUMBER, Program, everywhere
from ..engine.ops.linalg import product
from ..engine.ops.movement import transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten


def across(record: Record) -> tuple[int, tuple] | None:
    """(operand of a product that is read across its rows, the transpose it needs), or None."""
    perms = record.attrs["x_perm"], record.attrs["y_perm"]
    last = len(perms[0]) - 1
    rows, columns = record.attrs["out_perm"].index(last - 1), record.attrs["out_perm"].index(last)
    k, inner = (1, -1) if columns > rows else (0, -2)  # its axis lies innermost in the result
    if perms[k][inner] == last or record.inputs[k].op is NUMBER:
        return None
    order = perms[k] if k else (*perms[k][:-2], perms[k][-1], perms[k][-2])
    return k, order


@program_pass("pretranspose", looks_for=[product])
def pretranspose(program: Program) -> Program:
    """The program that transposes once each operand that several products read across its rows."""
    reads = Counter()
    for record in everywhere(program):
        if record.op is product and (found := across(record)):
            reads[record.inputs[found[0]], found[1]] += 1
    if not any(n > 1 for n in reads.values()):
        return program
    made: dict[tuple, object] = {}

    def read_transposed(record, *operands):
        found = across(record)
        if found is None or reads[record.inputs[found[0]], found[1]] < 2:
            return None
        k, order = found
        key = current.top.builder, record.inputs[k], order
        if key not in made:
            made[key] = transpose(operands[k], perm=order)
        straight = tuple(range(len(order)))
        perm = straight if k else (*straight[:-2], straight[-1], straight[-2])
        now = [made[key] if j == k else x for j, x in enumerate(operands)]
        return product(*now, **record.attrs | {"xy"[k] + "_perm": perm})

    return rewritten(program, {product: read_transposed})
