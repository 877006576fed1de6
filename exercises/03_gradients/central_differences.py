"""The two smallest parts of a gradient checker: a slope without rules, and what counts as equal.

**`slope(f, x, index, epsilon)`** says how fast the number f(x) grows with one element of the array
`x`, by a *central difference*: nudge this element up by epsilon, then down by epsilon, leave all
others alone, and divide what f changed by how far apart the two points are.

- `f` takes an array of the shape of x and returns a number. It may keep the array you give it, so
  give it two different ones; and `x` belongs to somebody else: it must be the same afterwards.
- `x` is a floating array of any shape, `index` a tuple with a place for each of its axes: () for
  an array without axes.

**`agrees(derivative, quotient, rtol, atol)`** says whether a derivative and such a difference
quotient are equal up to `atol` plus the share `rtol` of the larger of the two sizes (sizes, not
signs); a difference of exactly this much is still allowed. Nothing agrees with NaN.

    slope(lambda x: (x**2).sum(), array([1.0, 3.0]), (1,), 0.5)   ->  6.0
    agrees(100.0, 101.0, 0.01, 0.0)                               ->  True: 1 <= 0.01 * 101
    agrees(100.0, -100.0, 0.01, 0.0)                              ->  False

`minipaddle.testing.check_grad` runs on your two functions.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., section 1.2.
"""


def slope(f, x, index, epsilon):
    """The central difference of f at `x` for the element at `index`, a number."""
    raise NotImplementedError


def agrees(derivative, quotient, rtol, atol):
    """Are the two equal up to `atol` and the share `rtol`? Never if one is NaN."""
    raise NotImplementedError
