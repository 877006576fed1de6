"""Dead code: what nobody needs is not computed.

A program has records that lead to nothing: the part of a formula that you do not use, and after
other passes the records whose place something better has taken. Write two functions:

- `has_effect(record)`: does a record do something besides computing? Operators such as `show` (a
  `print` of yours) and `check` (an `assert`) say so themselves: `record.op.effect`. A branch or a
  loop has an effect if any record in one of its regions has one, at whatever depth;
  `regions(record)` is a dict of the programs inside it.
- `needed(program)`: the list of those of `program.records` that must be computed, in their order:
    - what makes one of `program.results` (outputs, and new values of states);
    - what has an effect;
    - what is in the set `binders(program)`: the first records to show a size that only their values
      decide, such as how many elements are positive; others refer to it by name;
    - what any of these takes, directly or through others. And nothing else.
  One pass over the records is enough, if it goes in the right direction.

    v1 = exp(x); v2 = tanh(x); v3 = add(v1, 1.0); return v2      ->  [v2]

Source: Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 9.1.6; marking what is live:
Cytron and others, "Efficiently computing static single assignment form", 1991, section 7.1.
"""

from minipaddle.engine.ir.program import binders, regions


def has_effect(record) -> bool:
    """Does a record, or one inside it, do something besides computing?"""
    raise NotImplementedError


def needed(program) -> list:
    """The records that must be computed, in their order."""
    raise NotImplementedError
