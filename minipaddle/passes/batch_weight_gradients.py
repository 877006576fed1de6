"""Weight gradients of several steps become one product, instead of a sum of products.

A weight that is used at every step of a sequence has as gradient a sum of products, one for each
step. The sum over steps and the sum inside a product are one sum:

    Σₜ xₜᵀ gₜ = [x₁; x₂; …]ᵀ [g₁; g₂; …]

so one large product replaces many small ones and their additions, if joining the operands moves
fewer bytes. Likewise Σₜ sum(gₜ) becomes the sum of Σₜ gₜ. (A sum may be added in any order.)
"""

from __future__ import annotations

from functools import reduce

from ..engine.core.record import Record
from ..engine.ir.edit import count_uses
from ..engine.ir.program import Program, everywhere
from ..engine.ops.elementwise import add
from ..engine.ops.movement import concat
from ..engine.ops.reduction import sum
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops.products import product
from .concat_of_slices import inner_additions, leaves, tensor


@program_pass(
    "batch_weight_gradients",
    looks_for=[product, sum],
    enable_addto=(True, "gradients that add up are added where they are computed"),
)
def batch_weight_gradients(program: Program, *, enable_addto: bool) -> Program:
    """The program with one product for a sum of products, and one sum for a sum of sums."""
    inner, used = inner_additions(program), count_uses(program)
    place = {r: k for k, r in enumerate(everywhere(program))}

    def batch(record, *inputs):
        groups: dict[object, list[Record]] = {}
        for part in leaves(record, inner) if record not in inner else ():
            like = kind(part, record, used)
            groups.setdefault(like or len(groups), []).append(part)
        if all(len(group) == 1 for group in groups.values()):
            return None
        same = [sorted(group, key=place.get) for group in groups.values()]
        return reduce(add, [merge(group) if len(group) > 1 else tensor(*group) for group in same])

    return rewritten(program, {add: batch}) if enable_addto else program


def kind(part: Record, whole: Record, used) -> tuple | None:
    """A key that terms which can be joined share; None if a term cannot be joined."""
    if used[part] > 1 or part.spec != whole.spec:
        return None
    if part.op is sum and part.inputs[0].dtype != part.dtype:
        return None  # true + true is true, and int32 runs over where its sum is int64
    if part.op is sum or (part.op is product and profitable(part)):
        return part.op, *sorted(part.attrs.items()), *(r.spec for r in part.inputs)
    return None


def profitable(part: Record) -> bool:
    """Whether joining the operands of such products is cheaper than adding their results."""
    if len(part.shape) != 2:
        return False
    x, y = part.inputs
    return x.spec.size + y.spec.size < part.spec.size


def merge(group: list[Record]):
    """The sum of terms of one kind."""
    attrs = group[0].attrs
    operands = [[tensor(r) for r in part.inputs] for part in group]
    if group[0].op is sum:
        return sum(reduce(add, [x for (x,) in operands]), **attrs)
    xs, ys = zip(*operands)
    x, y = concat(*xs, axis=attrs["x_perm"][1]), concat(*ys, axis=attrs["y_perm"][0])
    return product(x, y, **attrs)
