"""`and` and `or` that decide late, and evaluate no more than Python does.

The converter turns `a and b and c` into `and_(a, lambda: b, lambda: c)`: the first operand is
there already, the others come as functions without arguments, so that you say whether and when they
are evaluated. Write `and_(left, *rights)` and `or_(left, *rights)`. There is at least one operand.

As long as the operands are Python's values (or tensors that have a value), do as Python does: the
result is the first operand that decides, or the last, *itself*, not its truth; and no function
after it is called. `and_(0, f) -> 0` without a call; `or_(0, lambda: 7) -> 7`.

If an operand is a tensor of a program, nobody knows yet whether the next one counts. Both ways go
into the program: `choose(test, then, else_)` calls `then()` and `else_()` in a branch each, and
gives what the branch that is taken will give. Both must give a tensor of the same kind, so let
them give a truth value each: `truth(x)` makes one of a tensor, and of Python's values. What is
evaluated inside `then` happens only if that branch is taken.

- `and_` goes on if the operand is true, `or_` if it is false; `choose` and `is_static` help:
  `is_static(x)` says whether x is a tensor of a program;
- the rest of the operands, any number of them, belongs in the branch where it counts;
- every operand is evaluated once at most.

    x a tensor of a program:   and_(x > 0, lambda: 1 / x > 2)   divides only where x > 0

Source: The Python Language Reference, section 6.11, "Boolean operations".
"""

from minipaddle.engine.eager.control_flow import is_static
from minipaddle.engine.jit.branching import if_exp as choose
from minipaddle.engine.jit.truth import truth


def and_(left, *rights):
    """`left and right() and …`; with a tensor of a program, its truth."""
    raise NotImplementedError


def or_(left, *rights):
    """`left or right() or …`; with a tensor of a program, its truth."""
    raise NotImplementedError
