"""Truth at run time: `and`, `or`, `not`.

If a left operand is a tensor, the right one is evaluated in a branch of the program: its effects
happen only if Python would evaluate it.
"""

from __future__ import annotations

from ..core.slots import slot
from ..eager.control_flow import is_static
from ..ops import logic as ops
from .branching import CHOICES
from .leaves import as_condition, scalar


def truth(x):
    """The truth of x: of a tensor with one element a 0-D boolean, of anything else a bool."""
    x = as_condition(x)
    if not is_static(x):
        return bool(x)
    if x.spec.size != 1:
        bool(x)  # raises the error of eager mode
    return scalar(x if x.spec.dtype.kind == "b" else x.astype("bool"))


@slot("jit.runtime.and_")
def and_(left, *rights):
    """The truth of `left and right() and …`; of Python's values, the value."""
    return fold_operands(left, rights, True, truth)


@slot("jit.runtime.or_")
def or_(left, *rights):
    """The truth of `left or right() or …`; of Python's values, the value."""
    return fold_operands(left, rights, False, truth)


def and_value(left, *rights):
    """`left and right() and …`: the first that is false, or the last."""
    return fold_operands(left, rights, True, identity)


def or_value(left, *rights):
    """`left or right() or …`: the first that is true, or the last."""
    return fold_operands(left, rights, False, identity)


def identity(x):
    return x


def fold_operands(left, rights, goes_on: bool, result_of):
    """Evaluate operands as long as their truth is `goes_on`; `result_of(x)` is what each gives."""
    for k, right in enumerate(rights):
        if is_static(as_condition(left)):
            rest = rights[k + 1 :]
            test = truth(left) if goes_on else ops.logical_not(truth(left))

            def more(right=right, rest=rest):
                return result_of(fold_operands(right(), rest, goes_on, result_of))

            return CHOICES[-1](test, more, lambda: result_of(left)).write()  # noqa: B023
        if bool(left) is not goes_on:
            return left
        left = right()
    return left


@slot("jit.runtime.not_")
def not_(x):
    """`not x`."""
    x = as_condition(x)
    return ops.logical_not(truth(x)) if is_static(x) else not x


def none(flags):
    """Whether none of the flags is true."""
    up = False
    for flag in flags:
        if is_static(flag):
            up = ops.logical_or(flag, up) if is_static(up) else flag
        elif flag:
            return False
    return ops.logical_not(up) if is_static(up) else True
