"""A test of the whole engine as one function: whether it differentiates correctly.

A test must be able to fail: `check_engine` is tried on engines that are wrong on purpose.
"""

from itertools import count, islice
from math import prod

from ..engine.core.dtype import float64
from ..engine.core.slots import slot
from ..engine.eager.pylayer import PyLayer
from ..engine.eager.tensor import Tensor
from ..engine.ops import activation, elementwise, movement, special
from .gradcheck import check_grad


def selfcheck() -> None:
    """Raise AssertionError if the engine, with everything plugged in, differentiates wrongly.

    >>> from minipaddle.testing import selfcheck
    >>> selfcheck()
    >>> with paddle.plugged("ops.tanh.vjp", lambda g, out: g * (1 - out)):
    ...     selfcheck()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    AssertionError: the derivative of tanh by input 0 at [0, 0] is ...
    """
    check_engine(samples())


def samples():
    """A function `draw(*shape)`: a float64 tensor of different numbers.

    They are between 0.5 and 1.5 in size, so away from kinks and poles, and of either sign.
    """
    numbers = count(1)

    def draw(*shape):
        golden = [(0.5 + 0.618034 * k % 1) * (-1) ** k for k in islice(numbers, prod(shape))]
        return Tensor(golden, dtype=float64).reshape(list(shape))

    return draw


PAIRS = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / b,
    lambda a, b: a @ b,
)
SINGLES = (
    special.tanh,
    elementwise.exp,
    activation.relu,
    lambda a: a.sum(),
    lambda a: a.mean(),
    lambda a: a[[0, 0]],
    lambda a: a.exp() * (a + a.tanh()),  # paths of unequal length to a value used three times
)


@slot("testing.check_engine")
def check_engine(draw) -> None:
    """Raise AssertionError, or what the engine raises, unless the engine is right.

    `draw(*shape)` gives a tensor of numbers to test with. Looked at are operators, values used
    several times, broadcasting, second derivatives, hooks, and rules of the user's own.
    """
    for program in PAIRS:
        check_grad(program, draw(2, 3), draw(3), order=2)  # b is broadcast, save in a product
    for program in SINGLES:
        check_grad(program, draw(2, 3), order=2)
    check_grad(lambda a, b: a @ b, draw(2, 3), draw(3, 2), order=2)
    # a sum gives both inputs the same cotangent
    check_grad(lambda a, b: a.tanh() + (a + b), draw(2), draw(2))
    check_grad(lambda a: movement.transpose(a, perm=(1, 2, 0)), draw(2, 2, 2))
    check_hooks(draw(), draw(), draw())
    check_own_rule(draw())


def check_hooks(x, first, second) -> None:
    """Each hook sees the gradient once, in order, and what it returns goes on."""
    x.stop_gradient, seen = False, []
    y = x * 1.0
    y.register_hook(lambda g: seen.append(g.item()))  # None: looks, and changes nothing
    y.register_hook(lambda g: g + first)
    y.register_hook(lambda g: g * second)
    y.backward()
    assert seen == [1.0], f"a hook on y was called with {seen} in the backward of y"
    right = (1.0 + first.item()) * second.item()
    assert abs(x.grad.item() - right) < 1e-12, f"hooks give {x.grad.item()}; {right} is right"


class Tenfold(PyLayer):
    """The identity with ten times the gradient: nobody could derive this rule."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * 10.0


def check_own_rule(x) -> None:
    """A PyLayer's own backward is used."""
    x.stop_gradient = False
    Tenfold.apply(x).backward()
    assert x.grad.item() == 10.0, f"a PyLayer with the rule 10 g gives {x.grad.item()} g"
