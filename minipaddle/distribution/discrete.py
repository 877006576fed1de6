"""Distributions on whole numbers."""

import math

from ..core.prelude import e, whole_numbers
from ..eager.modes import no_grad
from ..engine.ops.nn import softmax
from ..ops.arithmetic import clip
from ..tensor.along import take_along_axis
from ..tensor.math import log, log1p
from ..tensor.random import bernoulli, multinomial, uniform
from .base import Distribution, parameters, register_kl

__all__ = ["Bernoulli", "Categorical"]


class Bernoulli(Distribution):
    """1 with probability `probs`, else 0. Probabilities are kept off 0 and 1, as in Paddle.

    >>> paddle.distribution.Bernoulli(0.5).prob(paddle.to_tensor([0.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    def __init__(self, probs, name=None):
        (p,) = parameters(probs)
        epsilon = 2.0**-23 if p.dtype.name != "float64" else 2.0**-52
        self.p = clip(p, min=epsilon, max=1 - epsilon)
        self.probs, self.logits = self.p, log(self.p) - log1p(-self.p)
        super().__init__(p.spec.shape)

    def sample(self, shape=()):
        with no_grad():
            return bernoulli(self.p.broadcast_to(self.extend(shape)))

    def rsample(self, shape=(), temperature=1.0):
        """The logits of a draw that is nearly 0 or 1: its sigmoid is, for a low temperature."""
        tiny = 2.0**-24
        u = uniform(self.extend(shape), "float32", tiny, 1 - tiny).astype(self.p.dtype)
        return (self.logits + log(u) - log1p(-u)) / temperature

    def log_prob(self, value):
        return value * log(self.p) + (1 - value) * log1p(-self.p)

    def cdf(self, value):
        """The probability of at most `value`."""
        return e.where(value < 0, 0.0, e.where(value < 1, 1 - self.p, 1.0))

    def entropy(self):
        return -self.p * log(self.p) - (1 - self.p) * log1p(-self.p)

    mean = property(lambda self: self.p)
    variance = property(lambda self: self.p * (1 - self.p))


class Categorical(Distribution):
    """0, 1, … with probabilities given by the last axis of `logits`.

    As in Paddle, `probs` and `log_prob` take `logits` for weights and divide them by their sum;
    `sample`, `entropy` and `kl_divergence` take them for logarithms. Logarithms of probabilities
    (log_softmax) are what the second expect, probabilities what the first do.

    >>> dice = paddle.distribution.Categorical(paddle.ones([6]))
    >>> round(dice.probs(paddle.to_tensor([2])).item(), 4), round(dice.entropy().item(), 4)
    (0.1667, 1.7918)
    """

    def __init__(self, logits, name=None):
        (self.logits,) = parameters(logits)
        self._prob = self.logits / self.logits.sum(-1, keepdim=True)
        super().__init__(self.logits.spec.shape[:-1])

    def sample(self, shape=()):
        shape = whole_numbers(shape)
        with no_grad():
            rows = softmax(self.logits, axis=-1).reshape([-1, self.logits.shape[-1]])
            places = multinomial(rows, math.prod(shape), True)
            return places.transpose([1, 0]).reshape([*shape, *self.batch_shape])

    def log_prob(self, value):
        return log(self.probs(value))

    def prob(self, value):
        return self.probs(value)

    def probs(self, value):
        """The probabilities of categories: of each row, for a vector or for its row of `value`."""
        if not self.batch_shape:
            return self._prob[value.reshape([-1])].reshape(value.shape)
        if value.ndim == 1:
            value = value.reshape([1] * len(self.batch_shape) + [-1])
        return take_along_axis(self._prob, value, -1)

    def log_weights(self):
        return self.logits - self.logits.logsumexp(-1, keepdim=True)

    def entropy(self):
        return -(softmax(self.logits, axis=-1) * self.log_weights()).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    return p.p * log(p.p / q.p) + (1 - p.p) * (log1p(-p.p) - log1p(-q.p))


@register_kl(Categorical, Categorical)
def _(p, q):
    away = p.log_weights() - q.log_weights()
    return (softmax(p.logits, axis=-1) * away).sum(-1, keepdim=True)  # keeps the axis, as Paddle
