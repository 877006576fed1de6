"""A value used twice receives both gradients.

`cotangents` is a dict: for each record, what has arrived there so far on the walk back. Write
`accumulate(cotangents, record, g)`, which the walk calls each time a use of `record`'s value sends
its contribution `g`. It returns nothing; it changes the dict:

- if nothing has arrived at `record` before, `g` is what has arrived now;
- otherwise it is the sum of both.

One thing to beware of: the same `g` may have been handed to several records (both inputs of an
addition receive the very same tensor). Make a new sum; never change a tensor that arrived.

    y = x * x, at x = 3, seed 1:  accumulate(c, x, 3), then again  ->  c[x] is 6

Source: the chain rule, summed over paths; Griewank and Walther, "Evaluating Derivatives", ch. 3.
"""


def accumulate(cotangents, record, g):
    """Add the contribution `g` to what has arrived at `record`."""
    raise NotImplementedError
