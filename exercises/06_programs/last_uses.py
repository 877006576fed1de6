"""When a value may be let go.

A program has `records` in the order in which they are computed. `record.inputs` is the list of
records whose values it takes; `program.results` is the list of records whose values the program
hands out. Everything else is needed until the last record that takes it, and no longer.

Write `last_uses(program)`. Return a dict: for each number k of a record (0, 1, …) the list of the
values, each once, that nobody needs after record k:

- a value that record k takes and no later record does, no matter what made it: a record, or one of
  `program.given`, the inputs and states;
- the value of record k itself, if no record takes it;
- never one of `program.results`;
- a given value that no record takes does not appear, and a k where nothing ends need not.

    v1 = tanh(x);  v2 = add(v1, x);  v3 = exp(v1);  v4 = multiply(v2, v2);  return v4
    ->  {1: [x], 2: [v1, v3], 3: [v2]}

The interpreter asks it once for a program, and then lets go of the values after each record. Look
at each record a few times, not at every pair: programs have thousands.
"""


def last_uses(program) -> dict:
    """For each number of a record the values that nobody needs after it."""
    raise NotImplementedError
