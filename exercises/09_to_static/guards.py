"""Decisions about open sizes: certain for every size, or guarded.

`if x.shape[0] * 2 > 1:` is true whatever the size is. `if x.shape[0] > 4:` is not: the program is
written for the side that the size at hand (the symbol's hint) takes, and this decision becomes a
guard: the program may serve again only where the answer is the same. Write three functions:

- `bounds(x)`: (least, greatest) value of a size, None where there is no bound. `x` is an int, or a
  polynomial: `terms_of(x)` gives {monomial: coefficient} for both, monomials being tuples of names.
  A name is a string that knows what it stands for: `name.bounds()` is (1, None) for an argument's
  size, (0, None) for one that values decide, such as how many elements are positive. A name may
  also stand for a quotient or a maximum, which have other bounds.
    - The bounds of a product of names are the products of their bounds (None if one is None). This
      is right only for numbers that are not negative. So if a product of two names or more has one
      whose least value is None or negative, the bounds of x are (None, None).
    - A coefficient multiplies both bounds; a negative one exchanges them.
    - The bounds of a sum are the sums of the bounds.
- `certain(low, high, sign)`: is every number between the bounds `sign` 0, where sign is one of
  "==", "<", "<=", ">", ">="? True if every one is, False if none is, None if it depends. Nobody
  knows whether a bound is ever reached: for "==" answer False or None, never True.
- `allowed(guards, sizes)`: may a program serve for these sizes, {"n": 5}? Each of `guards` is
  (left, sign, right, answer), where left and right are sizes, `at(left, sizes)` is the number that
  one is, and `COMPARE[sign]` the function that compares. A guard about symbols that `sizes` does
  not have (`symbols(left)` is the set of them) is checked elsewhere, while the program runs: skip
  it.

    2n - 1   has bounds (1, None)     2n > 1 is certain
    n - 4    has bounds (-3, None)    n > 4 is not: a guard, ("n", ">", 4, False) with the hint 3

Source: interval arithmetic, Moore, "Interval Analysis", 1966; guards in PyTorch's `torch.compile`,
Ansel and others, ASPLOS 2024.
"""

from math import prod

from minipaddle.engine.core.dim import COMPARE, at, symbols
from minipaddle.engine.core.symbols import terms_of


def bounds(x):
    """The least and the greatest value of a size; None where there is no bound."""
    raise NotImplementedError


def certain(low, high, sign):
    """Is every number between the bounds `sign` 0 (True), or none (False), or some (None)?"""
    raise NotImplementedError


def allowed(guards, sizes):
    """Would each decision of a program be taken as it was, with these sizes?"""
    raise NotImplementedError
