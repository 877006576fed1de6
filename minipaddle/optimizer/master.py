"""Weights in half precision, and their copies in single precision.

A step changes a weight by less than half precision can add to it: 1 + 1/512 is 1 in bfloat16. So an
optimizer may keep a copy of each such weight, its master, in which small steps add up.
Source: Micikevicius et al., "Mixed Precision Training", 2018, section 3.1.
"""

from ..core.prelude import dt, slot


@slot("optimizer.upcast")
def upcast(weights, master, g, dtype) -> tuple:
    """(weights, gradient) of a parameter in half precision as a rule takes them, both in `dtype`.

    The weights are those of the master copy, if there is one. What the rule gives is written to
    both.
    """
    return (weights.astype(dtype) if master is None else master), g.astype(dtype)


def keep_masters(optimizer, wanted: bool) -> None:
    """Let an optimizer keep a master of each parameter in half precision, or none.

    A master begins as the parameter is now. States that exist already stay what they are.
    """
    optimizer.multi_precision = wanted
    for p, kept in optimizer._states.items():
        kept.half = p.spec.dtype in dt.HALVES
        if not (wanted and kept.half):
            kept.master = None
        elif kept.master is None:
            kept.master = optimizer.master_of(p, kept.dtype)
