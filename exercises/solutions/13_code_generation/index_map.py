"""Where an element comes from: quotients and remainders of sums of loop variables.

A reshape or a transpose moves nothing in a loop nest; its reader asks at another index. To find it
one divides: element `f` of a flat array stands in row `f // columns`, column `f % columns`. Here
`f` is no number but a `Polynomial`, a sum such as `8·i + 2·j + 5` over loop variables:

- `self.terms` is a dict {monomial: factor}. A monomial is a tuple that holds one symbol: a loop
  variable, or a quotient or remainder that could not be simplified. `()` is the monomial of the
  constant. Factors are whole numbers, never 0; they may be negative;
- `self.like(terms)` makes one; `a + b`, `a - b`, `a * n`, `a + n` work (n: a whole number);
- `bounds(a)` is (the smallest value, the largest value).

Write `divide_by(self, n)`, which becomes a method of Polynomial. n is at least 1. Return (quotient,
remainder) with the values of Python's `//` and `%` for all values of the loops:

1. Split `self`: factors that are multiples of n leave at once, divided by n, into the quotient.
   What stays is the *rest*: the other terms, and `constant % n` (constant // n leaves too).
2. If all values of the rest have the same quotient by n (look at `bounds`), there is nothing left
   to divide: both results are sums.
3. Otherwise divide n and the rest's factors by what they all share. The remainder is multiplied
   with it at the end.
4. Now `composite("//", rest, n)` and `composite("%", rest, n)` could not be simplified. They become
   C, where a division rounds towards 0: give them no rest that can be negative. Add the smallest
   multiple of n that lifts it, and subtract from the quotient what that adds.

    (4·i + j).divide_by(4), 0 ≤ j < 4   ->  i, j
    (4·i + j).divide_by(4), 0 ≤ j < 8   ->  i + j // 4, j % 4
    (4·i + 2·j).divide_by(8)            ->  (2·i + j) // 4, 2 · ((2·i + j) % 4)

Every index of every kernel is made with it.
Source: Graham, Knuth and Patashnik, "Concrete Mathematics", section 3.4, on `mod`.
"""

from math import gcd

from minipaddle.engine.core.polynomial import composite
from minipaddle.engine.core.symbols import bounds


def divide_by(self, n):
    """(quotient, remainder) by n, as simple as they can be."""
    leaving = {m: factor // n for m, factor in self.terms.items() if factor % n == 0}
    staying = {m: factor for m, factor in self.terms.items() if factor % n}
    constant = self.terms.get((), 0)
    quotient = self.like({**leaving, (): constant // n})
    rest = self.like({**staying, (): constant % n})
    low, high = bounds(rest)
    if high // n == low // n:  # with n = 1 always: the rest is 0
        return quotient + low // n, rest - low // n * n
    shared = gcd(n, *rest.terms.values())
    n, low = n // shared, low // shared
    rest = self.like({m: factor // shared for m, factor in rest.terms.items()})
    if low < 0:
        lift = -(low // n)
        rest, quotient = rest + lift * n, quotient - lift
    return quotient + composite("//", rest, n), composite("%", rest, n) * shared
