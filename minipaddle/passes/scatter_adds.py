"""x + scatter_sum(value, index) becomes scatter_add(x, index, value), where x has more places.

So the cotangent of a table, or of the sequence that a loop reads slice by slice, is added up
without an array of zeros for each of its terms. The kernel writes over x, if nothing else needs it.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.ir.edit import count_uses
from ..engine.ir.program import Program, open_sizes
from ..engine.ops.elementwise import add
from ..engine.ops.gather import scatter_sum
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.scatter import scatter_add


@program_pass("scatter_adds", looks_for=[scatter_sum])
def scatter_adds(program: Program) -> Program:
    """The program with scatter_add in the place of sums.

    >>> from minipaddle.ir.parser import parse
    >>> program = parse('''program p(x: float32[9, 2], k: int64[], y: float32[2]) {
    ...   v1 = scatter_sum(y, k, shape=(9, 2,), axis=0) : float32[9, 2]
    ...   v2 = add(x, v1) : float32[9, 2]
    ...   return v2
    ... }''')
    >>> from minipaddle.passes.scatter_adds import scatter_adds
    >>> print(*(record.op.name for record in scatter_adds(program).records))
    scatter_sum scatter_add
    """
    if open_sizes(program):
        return program
    used = count_uses(program)

    def rule(record, *terms):
        for sums, x in (terms, terms[::-1]):
            scatter = made_by(sums)
            if scatter is None or scatter.op is not scatter_sum or made_by(x) is None:
                continue
            value, index = scatter.inputs
            small = 2 * value.spec.size <= scatter.spec.size
            if small and x.spec == sums.spec and used[scatter] <= 1:
                value, index = map(current.top.builder.tensor, (value, index))
                return scatter_add(x, index, value, axis=scatter.attrs["axis"])
        return None

    return rewritten(program, {add: rule})
