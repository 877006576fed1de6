"""The derivative of a loop is a loop: over the same iterations, the last one first.

A loop of a program sends *carried* values through its body, iteration after iteration; other values
that the body uses, *constants*, are the same in each iteration. For its derivative the loop keeps
each carried value as it was before every iteration, stacked, and how many iterations there were.

Write `reverse_iterations(body, iterations, stacks, constants, ends, kept_ends, shared)`:

- `body` is one iteration, a program. It takes the carried values, then the constants, and gives the
  carried values after the iteration;
- `iterations` is a tensor, the number of iterations; it may be 0. `stacks[k][i]` is carried value k
  before iteration i. A loop that is a tensor's has no Python `for`: the way back is a loop of the
  program too;
- `ends[k]` is the cotangent of carried value k after the last iteration, or None if it can have
  none (it is an integer, say). `kept_ends[k]` is the cotangent of stack k, or None as well:
  somebody may have used the stack itself, as the derivative of this loop does if it is
  differentiated again;
- `shared` are the numbers of those constants whose cotangent is asked for.

Return a list: for each k whose `ends[k]` is not None, in order, the cotangent of that carried value
as it came into the loop; then for each number in `shared` the cotangent of that constant, the sum
over all iterations.

The engine has: `derivative(body, values, cotangents, wanted)`, the cotangents of those values whose
numbers are in `wanted`, in that order, given the cotangents of what the body gives (None where
there is none); `while_loop(test, iteration, start)`, a loop of the program: `start` is a list of
tensors, `test(*carried)` gives a boolean tensor, `iteration(*carried)` the list for the next
iteration, and what is carried at the end comes back; `take(stack, i, axis=0)`, which is stack[i]
for a tensor i; `zeros_like(x)`.

    x = x * w, n iterations: with g at the end, x gets g·wⁿ and w the sum of the iterations' g·x

Source: reverse accumulation through loops, Griewank and Walther, "Evaluating Derivatives", 2nd ed.,
chapter 4; kept iterations as stacks: Yu and others, "Dynamic control flow in large-scale machine
learning", EuroSys 2018.
"""

from minipaddle.engine.eager.control_flow import while_loop
from minipaddle.engine.eager.replay import derivative, zeros_like
from minipaddle.engine.ops.gather import take


def reverse_iterations(body, iterations, stacks, constants, ends, kept_ends, shared) -> list:
    """Cotangents of the carried values before the loop, then of the shared constants."""
    raise NotImplementedError
