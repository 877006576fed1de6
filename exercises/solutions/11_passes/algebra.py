"""Rules of algebra: pairs of functions, for numbers that are not quite numbers.

`RewriteRule(before, after, when=None)` rewrites a program. `before` is applied once to parameters
that stand for anything; the tree of operators that this leaves is what is looked for. Its
positional parameters stand for any value (the same one in all places), its keyword parameters for
any attribute, or number. Where the tree is found, `after` is called with what the parameters stood
for, and what it writes takes the place; but only if `when`, called with the same, says so.

Floating-point numbers are not those of algebra: `-0.0 + 0.0` is `0.0`, `inf * 0` is `nan`, and what
does not fit is rounded. Nobody wants a compiler that changes results in the last bit.
So only what holds for every float, to the last bit (the sign of a zero too; one nan is as good as
another), may be a rule. Write two functions that return lists of rules:

- `numbers()`: rules for the trees below, as far as they hold. Which of them do not?
    - x * 1, x / 1, x - 0, x + 0, x * 0, x - x, x / x, and pow(x, 1);
    - x * -1 and neg(neg(x)); x - neg(y) and x + neg(y), with one operator less;
    - pow(x, 2), which is `square(x)`;
    - maximum(x, x) and minimum(x, x); where(c, x, x);
    - x / c for a number c: a product is faster, x * (1 / c). It holds if c is a power of two,
      positive or negative, and neither c nor 1 / c is too small or too large for a float32: from
      2⁻¹²⁶ to 2¹²⁶.
- `transposes()`: axis d of `transpose(x, perm=p)` is axis p[d] of x. Two rules: one for a transpose
  that leaves all axes where they are; one for a transpose of a transpose, which is a single one.

    RewriteRule(lambda x: exp(log(x)), lambda x: x)                     the form; it does not hold
    RewriteRule(lambda x, *, p: reshape(x, shape=p), lambda x, *, p: x,
                lambda x, p: x.spec.shape == p)

Source: Goldberg, "What every computer scientist should know about floating-point arithmetic", 1991.
"""

import math

from minipaddle.engine.ops.elementwise import maximum, minimum, neg, pow, square, where
from minipaddle.engine.ops.movement import transpose
from minipaddle.engine.passes.patterns import RewriteRule


def _same(x, **known):
    return x


def _power_of_two(x, c):
    if type(c) not in (int, float) or not 2.0**-126 <= abs(c) <= 2.0**126:
        return False
    fraction, _ = math.frexp(c)  # c is fraction * 2**exponent, and |fraction| in [1/2, 1)
    return abs(fraction) == 0.5


def numbers() -> list:
    """Rules for numbers that hold to the last bit."""
    return [
        RewriteRule(lambda x: x * 1, _same),
        RewriteRule(lambda x: x / 1, _same),
        RewriteRule(lambda x: x - 0, _same),  # but not x + 0: -0.0 would stay -0.0
        RewriteRule(lambda x: pow(x, 1), _same),
        RewriteRule(lambda x: x * -1, neg),
        RewriteRule(lambda x: neg(neg(x)), _same),
        RewriteRule(lambda x, y: x - neg(y), lambda x, y: x + y),
        RewriteRule(lambda x, y: x + neg(y), lambda x, y: x - y),
        RewriteRule(lambda x: pow(x, 2), square),
        RewriteRule(lambda x: maximum(x, x), _same),
        RewriteRule(lambda x: minimum(x, x), _same),
        RewriteRule(lambda c, x: where(c, x, x), lambda c, x: x),
        RewriteRule(lambda x, *, c: x / c, lambda x, *, c: x * (1 / c), _power_of_two),
    ]


def transposes() -> list:
    """A transpose that does nothing, and two that are one."""
    return [
        RewriteRule(lambda x, *, p: transpose(x, perm=p), _same, lambda x, p: list(p) == sorted(p)),
        RewriteRule(
            lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),
            lambda x, *, p, q: transpose(x, perm=tuple(p[d] for d in q)),
        ),
    ]
