"""Distributions on the line."""

import math

from ..engine.ops import elementwise as e
from ..tensor.math import exp, log, log1p, sign, tan
from ..tensor.random import gaussian, uniform
from .base import Distribution, parameters, register_kl

__all__ = ["Cauchy", "Exponential", "Gumbel", "Laplace", "LogNormal", "Normal", "Uniform"]

# ---- loc + scale · noise ---------------------------------------------------------------------


class Located(Distribution):
    """The base of loc + scale · noise; subclasses define `noise` and `standard_log_prob`."""

    def __init__(self, loc, scale, name=None):
        self.loc, self.scale = parameters(loc, scale)
        super().__init__(self.loc.spec.shape)

    def noise(self, shape, seed):
        raise self.missing("noise")

    def standard_log_prob(self, z):
        raise self.missing("density")

    def draw(self, shape, seed):
        return self.loc + self.scale * self.noise(shape, seed).astype(self.loc.dtype)

    def log_prob(self, value):
        return self.standard_log_prob((value - self.loc) / self.scale) - log(self.scale)

    mean = property(lambda self: self.loc)

    def uniform(self, shape, low: float, seed: int):
        """Uniform between `low` and 1, both excluded."""
        tiny = 2.0**-24
        return uniform(shape, "float32", low + tiny, 1 - tiny, seed)


class Normal(Located):
    """exp(-½ z²) / (scale √(2π)) with z = (value - loc) / scale.

    >>> normal = paddle.distribution.Normal(0.0, 2.0)
    >>> round(normal.log_prob(paddle.to_tensor(2.0)).item(), 4), normal.variance.item()
    (-2.1121, 4.0)
    """

    def sample(self, shape=(), seed=0):
        """Draws; as in Paddle, gradients flow through them."""
        return self.draw(self.extend(shape), seed)

    def noise(self, shape, seed):
        return gaussian(shape, 0.0, 1.0, seed, self.loc.dtype)

    def standard_log_prob(self, z):
        return -0.5 * z * z - 0.5 * math.log(2 * math.pi)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + log(self.scale)

    variance = property(lambda self: self.scale * self.scale)


class Laplace(Located):
    """exp(-|z|) / (2 scale) with z = (value - loc) / scale.

    >>> round(paddle.distribution.Laplace(0.0, 1.0).entropy().item(), 4)
    1.6931
    """

    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def noise(self, shape, seed):
        u = self.uniform(shape, -1.0, seed)
        return -sign(u) * log1p(-e.abs(u))

    def standard_log_prob(self, z):
        return -e.abs(z) - math.log(2)

    def entropy(self):
        return 1 + log(2 * self.scale)

    variance = property(lambda self: 2 * self.scale * self.scale)


class Gumbel(Located):
    """exp(-z - exp(-z)) / scale with z = (value - loc) / scale: the largest of many draws.

    >>> round(paddle.distribution.Gumbel(0.0, 1.0).mean.item(), 4)
    0.5772
    """

    EULER = 0.5772156649015329

    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def noise(self, shape, seed):
        return -log(-log(self.uniform(shape, 0.0, seed)))

    def standard_log_prob(self, z):
        return -z - exp(-z)

    def entropy(self):
        return log(self.scale) + 1 + self.EULER

    mean = property(lambda self: self.loc + self.EULER * self.scale)
    variance = property(lambda self: math.pi**2 / 6 * self.scale * self.scale)


class Cauchy(Located):
    """1 / (π scale (1 + z²)) with z = (value - loc) / scale; it has no mean.

    >>> round(paddle.distribution.Cauchy(0.0, 1.0).prob(paddle.to_tensor(0.0)).item(), 4)
    0.3183
    """

    def noise(self, shape, seed):
        return tan(math.pi / 2 * self.uniform(shape, -1.0, seed))

    def standard_log_prob(self, z):
        return -log1p(z * z) - math.log(math.pi)

    def entropy(self):
        return log(4 * math.pi * self.scale)

    @property
    def mean(self):
        raise ValueError("Cauchy distribution has no mean")


class LogNormal(Normal):
    """exp of a `Normal` with this loc and scale.

    >>> round(paddle.distribution.LogNormal(0.0, 1.0).mean.item(), 4)
    1.6487
    """

    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def draw(self, shape, seed):
        return exp(super().draw(shape, seed))

    def log_prob(self, value):
        return super().log_prob(log(value)) - log(value)

    def entropy(self):
        return super().entropy() + self.loc

    mean = property(lambda self: exp(self.loc + self.scale * self.scale / 2))

    @property
    def variance(self):
        square = self.scale * self.scale
        return (exp(square) - 1) * exp(2 * self.loc + square)


# ---- others on the line ----------------------------------------------------------------------


class Uniform(Distribution):
    """1 / (high - low) between low and high, 0 elsewhere and, as in Paddle, at the ends.

    >>> paddle.distribution.Uniform(0.0, 4.0).prob(paddle.to_tensor([1.0, 5.0])).tolist()
    [0.25, 0.0]
    """

    def __init__(self, low, high, name=None):
        self.low, self.high = parameters(low, high)
        super().__init__(self.low.spec.shape)

    def sample(self, shape=(), seed=0):
        """Draws; as in Paddle, gradients flow through them."""
        return self.draw(self.extend(shape), seed)

    def draw(self, shape, seed):
        u = uniform(shape, "float32", 0.0, 1.0, seed).astype(self.low.dtype)
        return self.low + (self.high - self.low) * u

    def log_prob(self, value):
        inside = (value > self.low) & (value < self.high)
        return e.where(inside, -log(self.high - self.low), -math.inf)

    def entropy(self):
        return log(self.high - self.low)

    mean = property(lambda self: (self.low + self.high) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)


class Exponential(Distribution):
    """rate · exp(-rate · value) from 0 on.

    >>> paddle.distribution.Exponential(4.0).mean.item()
    0.25
    """

    def __init__(self, rate):
        (self.rate,) = parameters(rate)
        super().__init__(self.rate.spec.shape)

    def draw(self, shape, seed):
        u = uniform(shape, "float32", 0.0, 1.0, seed).astype(self.rate.dtype)
        return -log1p(-u) / self.rate

    def log_prob(self, value):
        return log(self.rate) - self.rate * value

    def entropy(self):
        return 1 - log(self.rate)

    mean = property(lambda self: 1 / self.rate)
    variance = property(lambda self: 1 / (self.rate * self.rate))


# ---- divergences -----------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _(p, q):
    ratio, away = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + away - 1 - log(ratio))


@register_kl(Laplace, Laplace)
def _(p, q):
    ratio, away = p.scale / q.scale, e.abs(p.loc - q.loc)
    return ratio * exp(-away / p.scale) + away / q.scale - 1 - log(ratio)


@register_kl(Cauchy, Cauchy)
def _(p, q):
    both = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return log(both / (4 * p.scale * q.scale))


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - log(ratio)


@register_kl(Uniform, Uniform)
def _(p, q):
    inside = (q.low <= p.low) & (p.high <= q.high)
    return e.where(inside, log((q.high - q.low) / (p.high - p.low)), math.inf)
