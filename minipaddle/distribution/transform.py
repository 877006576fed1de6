"""Functions of random variables that have an inverse, and the distributions of their values.

Source: Paddle API `paddle.distribution.transform`.
"""

import functools
import math

from ..core.prelude import Var, e, not_supported, type_error
from ..nn.functional import softplus
from ..tensor.math import exp, log, log1p, sigmoid, tanh
from .base import Distribution, parameters

__all__ = [
    "AbsTransform", "AffineTransform", "ChainTransform", "ExpTransform", "PowerTransform",
    "SigmoidTransform", "TanhTransform", "Transform", "TransformedDistribution",
]  # fmt: skip


class Transform:
    """A function y = f(x) of each element; subclasses define `_forward`, `_inverse` and
    `_forward_log_det_jacobian`, log |dy/dx|.

    Called with a tensor it is `forward`; with a distribution it gives that of y; with another
    transform, the chain that begins with that one.

    >>> square = paddle.distribution.ChainTransform(
    ...     [paddle.distribution.PowerTransform(paddle.to_tensor(2.0))])
    >>> square.inverse(square(paddle.to_tensor([3.0]))).tolist()
    [3.0]
    """

    def __init__(self):
        pass

    def __call__(self, input):
        if isinstance(input, Distribution):
            return TransformedDistribution(input, [self])
        if isinstance(input, Transform):
            return ChainTransform([input, self])
        return self.forward(input)

    def forward(self, x):
        """y = f(x)."""
        return self._forward(tensor_of(self, x))

    def inverse(self, y):
        """The x of a y."""
        return self._inverse(tensor_of(self, y))

    def forward_log_det_jacobian(self, x):
        """log |dy/dx| at x."""
        return self._forward_log_det_jacobian(tensor_of(self, x))

    def inverse_log_det_jacobian(self, y):
        """log |dx/dy| at y."""
        return -self._forward_log_det_jacobian(self._inverse(tensor_of(self, y)))

    def forward_shape(self, shape) -> tuple:
        """The shape of y."""
        return tuple(shape)

    def inverse_shape(self, shape) -> tuple:
        """The shape of x."""
        return tuple(shape)

    def _refuse(self, *args):
        raise not_supported(f"{type(self).__name__} does not define this")

    _forward = _inverse = _forward_log_det_jacobian = _refuse


def tensor_of(transform, x):
    """x, which must be a tensor."""
    if not isinstance(x, Var):
        raise type_error(f"{type(transform).__name__} was given {x!r}", "a tensor")
    return x


class AbsTransform(Transform):
    """y = |x|, whose inverse is the pair (-y, y); it has no density."""

    def _forward(self, x):
        return e.abs(x)

    def _inverse(self, y):
        return -y, y

    def inverse_log_det_jacobian(self, y):
        """A pair of zeros, for the two of the inverse."""
        return y * 0, y * 0


class AffineTransform(Transform):
    """y = loc + scale · x.

    >>> f = paddle.distribution.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(2.0))
    >>> f.forward(paddle.to_tensor([3.0])).tolist(), f.inverse(paddle.to_tensor([7.0])).tolist()
    ([7.0], [3.0])
    """

    def __init__(self, loc, scale):
        super().__init__()
        self.loc, self.scale = parameters(loc, scale)

    def _forward(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def _forward_log_det_jacobian(self, x):
        return log(e.abs(self.scale)) + x * 0


class ExpTransform(Transform):
    """y = eˣ.

    >>> paddle.distribution.ExpTransform().inverse(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """

    def _forward(self, x):
        return exp(x)

    def _inverse(self, y):
        return log(y)

    def _forward_log_det_jacobian(self, x):
        return x


class PowerTransform(Transform):
    """y = x^power, for positive x."""

    def __init__(self, power):
        super().__init__()
        (self.power,) = parameters(power)

    def _forward(self, x):
        return x**self.power

    def _inverse(self, y):
        return y ** (1 / self.power)

    def _forward_log_det_jacobian(self, x):
        return log(e.abs(self.power * x ** (self.power - 1)))


class SigmoidTransform(Transform):
    """y = 1 / (1 + e⁻ˣ)."""

    def _forward(self, x):
        return sigmoid(x)

    def _inverse(self, y):
        return log(y) - log1p(-y)

    def _forward_log_det_jacobian(self, x):
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """y = tanh x."""

    def _forward(self, x):
        return tanh(x)

    def _inverse(self, y):
        return (log1p(y) - log1p(-y)) / 2

    def _forward_log_det_jacobian(self, x):
        return 2 * (math.log(2) - x - softplus(-2 * x))


class ChainTransform(Transform):
    """One transform after the other, the first one first."""

    def __init__(self, transforms):
        super().__init__()
        self.transforms = list(transforms)

    def _forward(self, x):
        return functools.reduce(lambda y, f: f.forward(y), self.transforms, x)

    def _inverse(self, y):
        return functools.reduce(lambda x, f: f.inverse(x), reversed(self.transforms), y)

    def _forward_log_det_jacobian(self, x):
        total = 0.0
        for f in self.transforms:
            total, x = total + f.forward_log_det_jacobian(x), f.forward(x)
        return total


class TransformedDistribution(Distribution):
    """The distribution of transformed draws.

    >>> D = paddle.distribution
    >>> lognormal = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
    >>> one = paddle.to_tensor(2.0)
    >>> abs(lognormal.log_prob(one) - D.LogNormal(0.0, 1.0).log_prob(one)).item() < 1e-6
    True
    """

    def __init__(self, base, transforms):
        self.base, self.transforms = base, list(transforms)
        self.chain = ChainTransform(self.transforms)
        super().__init__(base.batch_shape, base.event_shape)

    def sample(self, shape=()):
        return self.chain.forward(self.base.sample(shape)).detach()

    def rsample(self, shape=()):
        return self.chain.forward(self.base.rsample(shape))

    def log_prob(self, value):
        x = self.chain.inverse(value)
        change = self.chain.forward_log_det_jacobian(x)
        axes = list(range(-len(self.event_shape), 0))
        return self.base.log_prob(x) - (change.sum(axes) if axes else change)
