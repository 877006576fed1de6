"""Questions with one answer. The elementwise ones have their faces in `math`."""

from ..core.prelude import broadcast_shapes, creation, dt
from ..ops import truth
from . import reduce


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """Is |x - y| <= atol + rtol · |y| everywhere?

    >>> paddle.allclose(paddle.to_tensor([1.0]), paddle.to_tensor([1.000001])).item()
    True
    """
    close = truth.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))
    return reduce.all(close)


def equal_all(x, y, name=None):
    """Are all elements equal? Shapes that do not broadcast are not equal.

    >>> paddle.equal_all(paddle.ones([2]), paddle.ones([2])).item()
    True
    """
    try:
        broadcast_shapes(x.spec.shape, y.spec.shape)
    except ValueError:
        return creation.full(shape=(), value=False, dtype=dt.bool_.numpy)
    return reduce.all(x == y)


def isreal(x, name=None):
    """True everywhere: MiniPaddle has no complex numbers.

    >>> paddle.isreal(paddle.ones([2])).tolist()
    [True, True]
    """
    return creation.full(shape=x.spec.shape, value=True, dtype=dt.bool_.numpy)


__all__ = ["allclose", "equal_all", "isreal"]
