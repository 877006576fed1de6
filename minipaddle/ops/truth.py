"""More elementwise operators on truth and bits: tests of numbers, and, exclusive or, shifts."""

from ..engine.core.op import elementwise
from ..engine.ops.var import Var


@elementwise(result="bool")
def isclose(m, x, y, *, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|x - y| <= atol + rtol · |y|, or equal; two nans are close only with `equal_nan`.

    >>> paddle.isclose(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([1.000001, 2.1])).tolist()
    [True, False]
    """
    near = (m.abs(x - y) <= atol + rtol * m.abs(y)) & (m.abs(y) < m.inf) | (x == y)
    return near | (x != x) & (y != y) if equal_nan else near


@elementwise(result="bool")
def logical_xor(m, x, y):
    """Whether exactly one is true. Numbers are true unless they are 0.

    >>> paddle.logical_xor(paddle.to_tensor([3, 0]), paddle.to_tensor([1, 1])).tolist()
    [False, True]
    """
    return m.logical_xor(x, y)


@elementwise(result="bool")
def isnan(m, x):
    """Whether x is not a number (nan).

    >>> paddle.isnan(paddle.to_tensor([1.0, float("nan")])).tolist()
    [False, True]
    """
    return x != x


@elementwise(result="bool")
def isinf(m, x):
    """Whether x is infinite.

    >>> paddle.isinf(paddle.to_tensor([1.0, float("-inf")])).tolist()
    [False, True]
    """
    return m.abs(x) == m.inf


@elementwise(result="bool")
def isfinite(m, x):
    """Whether x is a number that is not infinite.

    >>> paddle.isfinite(paddle.to_tensor([1.0, float("inf"), float("nan")])).tolist()
    [True, False, False]
    """
    return m.abs(x) < m.inf


@elementwise(result="bool")
def isposinf(m, x):
    """Whether x is +inf.

    >>> paddle.isposinf(paddle.to_tensor([float("inf"), float("-inf")])).tolist()
    [True, False]
    """
    return x == m.inf


@elementwise(result="bool")
def isneginf(m, x):
    """Whether x is -inf.

    >>> paddle.isneginf(paddle.to_tensor([float("inf"), float("-inf")])).tolist()
    [False, True]
    """
    return x == -m.inf


@elementwise(result="bool")
def signbit(m, x):
    """Whether the sign is negative, as that of -0.0.

    >>> paddle.signbit(paddle.to_tensor([0.0, -0.0, -1.0])).tolist()
    [False, True, True]
    """
    return m.signbit(x)


@elementwise(result="bool")
def logical_and(m, x, y):
    """Whether both are true. Numbers are true unless they are 0.

    >>> paddle.logical_and(paddle.to_tensor([1, 2]), paddle.to_tensor([1, 0])).tolist()
    [True, False]
    """
    return m.logical_and(x, y)


@elementwise
def bitwise_left_shift(m, x, y, *, is_arithmetic=True):
    """x · 2^y without the bits that overflow; both kinds of shift are the same here.

    >>> paddle.bitwise_left_shift(paddle.to_tensor([3]), paddle.to_tensor([2])).tolist()
    [12]
    """
    return x << y


@elementwise
def bitwise_right_shift(m, x, y, *, is_arithmetic=True):
    """⌊x / 2^y⌋; a shift that is not arithmetic brings in zeros from the left instead of the sign.

    >>> paddle.bitwise_right_shift(paddle.to_tensor([-8]), paddle.to_tensor([2])).tolist()
    [-2]
    """
    if is_arithmetic:
        return x >> y
    top = x.dtype.itemsize * 8 - 1  # the sign's place; the rest of the mask is shifted in two steps
    return m.where(y == 0, x, (x >> y) & ~((x * 0 - 1) << (top - y) << 1))


Var.register(
    {  # `binary` gives no attributes, which have a value here
        "__lshift__": lambda self, other: bitwise_left_shift(self, other),
        "__rshift__": lambda self, other: bitwise_right_shift(self, other),
    }
)
