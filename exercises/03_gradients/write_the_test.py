"""Write the test that catches these wrong engines.

`check_engine(draw)` returns nothing if the engine is right, and raises AssertionError (or lets
through what the engine raises) if it is wrong. You write the test; the check of this exercise
breaks the engine, in one place at a time, and sees whether your test notices. Each of these
engines must be caught:

- it forgets to accumulate: of a value used twice only one use counts;
- it walks in the wrong order: a value is passed before all its uses have been;
- it does not sum over what broadcasting repeated, but takes the first;
- tanh has the rule g (1 - out), without the square;
- hooks are called twice;
- x @ y has the wrong sign in the rule for y;
- and others like them, which you are not told: in the rules of + - * / @, tanh, exp, relu, sum,
  mean, transpose and indexing; in what a hook returns and in the order of hooks; in second
  derivatives of tanh and exp; in PyLayer, whose own backward must be used.

And the right engine must pass, and so must another one whose code differs and is right. How your
test finds out is up to you: `check_grad` from `minipaddle.testing`, values worked out by hand, or
both. It may use everything that `import minipaddle as paddle` brings, with these operators and
functions.

`draw(*shape)` gives a float64 tensor of that shape: numbers of both signs, 0.5 to 1.5 in size, so
away from kinks, and new ones with every call; `draw()` gives one number. Choose shapes and
programs with care: which mistakes cannot be seen if all shapes are equal, or in one number?

    def check_engine(draw):                  # catches the fourth, and no other
        check_grad(paddle.tanh, draw(2))

Source: DeMillo, Lipton and Sayward, "Hints on test data selection", Computer 11 (4), 1978.
"""

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.testing import check_grad


def check_engine(draw):
    """Raise AssertionError unless the engine is right."""
    raise NotImplementedError
