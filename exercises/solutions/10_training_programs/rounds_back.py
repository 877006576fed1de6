"""The derivative of a loop is a loop: over the same rounds, the last one first.

A loop of a program sends *carried* values through its body, round after round; other values that
the body uses, *constants*, are the same in each round. For its derivative the loop keeps each
carried value as it was before every round, stacked, and how many rounds there were.

Write `rounds_back(body, rounds, stacks, constants, ends, kept_ends, shared)`:

- `body` is one round, a program. It takes the carried values, then the constants, and gives the
  carried values after the round;
- `rounds` is a tensor, the number of rounds; it may be 0. `stacks[k][i]` is carried value k before
  round i. A loop that is a tensor's has no Python `for`: the way back is a loop of the program too;
- `ends[k]` is the cotangent of carried value k after the last round, or None if it can have none
  (it is an integer, say). `kept_ends[k]` is the cotangent of stack k, or None as well: somebody may
  have used the stack itself, as the derivative of this loop does if it is differentiated again;
- `shared` are the numbers of those constants whose cotangent is asked for.

Return a list: for each k whose `ends[k]` is not None, in order, the cotangent of that carried value
as it came into the loop; then for each number in `shared` the cotangent of that constant, the sum
over all rounds.

The engine has: `derivative(body, values, cotangents, wanted)`, the cotangents of those values
whose numbers are in `wanted`, in that order, given the cotangents of what the body gives (None
where there is none); `while_loop(test, round, start)`, a loop of the program: `start` is a list of
tensors, `test(*carried)` gives a boolean tensor, `round(*carried)` the list for the next round, and
what is carried at the end comes back; `take(stack, i, axis=0)`, which is stack[i] for a tensor i;
`zeros_like(x)`.

    x = x * w, n rounds: with g at the end, x gets g·wⁿ and w the sum of the rounds' g·x

Source: reverse accumulation through loops, Griewank and Walther, "Evaluating Derivatives", 2nd ed.,
chapter 4; kept rounds as stacks: Yu and others, "Dynamic control flow in large-scale machine
learning", EuroSys 2018.
"""

from minipaddle.engine.eager.control_flow import while_loop
from minipaddle.engine.eager.replay import derivative, zeros_like
from minipaddle.engine.ops.gather import take


def rounds_back(body, rounds, stacks, constants, ends, kept_ends, shared) -> list:
    """Cotangents of the carried values before the loop, then of the shared constants."""
    moving = [k for k, g in enumerate(ends) if g is not None]
    wanted = moving + [len(stacks) + k for k in shared]  # constants stand behind the carried values

    def one_round(i, *cotangents):
        i = i - 1
        values = [take(stack, i, axis=0) for stack in stacks]
        after = list(ends)  # None stays None
        for k, g in zip(moving, cotangents, strict=False):
            after[k] = g
        found = derivative(body, values + constants, after, wanted)
        # before round i the value went into the round, and onto the stack
        carried = [g + take(kept_ends[k], i, axis=0) for k, g in zip(moving, found, strict=False)]
        sums = zip(cotangents[len(moving) :], found[len(moving) :], strict=True)
        return [i, *carried, *(before + g for before, g in sums)]

    start = [rounds, *(ends[k] for k in moving), *(zeros_like(constants[k]) for k in shared)]
    return while_loop(lambda i, *_: i > 0, one_round, start)[1:]
