"""Optimizers met less often: NAdam, RAdam, Rprop, ASGD."""

from ..engine.ops.elementwise import maximum, minimum, sign, sqrt, where
from ..tensor.creation import arange
from .adam import averaged, averaged_square
from .optimizer import Optimizer, constructor
from .sgd import descend


class NAdam(Optimizer):
    """Adam with Nesterov's look ahead; `momentum_decay` slowly raises its momentum.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> nadam = paddle.optimizer.NAdam(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> nadam.step()
    >>> w.item() < -0.5
    True
    """

    @constructor
    def __init__(
        self, learning_rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-8, momentum_decay=0.004,
        parameters=None, weight_decay=None, grad_clip=None, name=None,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {
            "momentum_decay_pow": ((), 1.0), "beta2_pow": ((), 1.0), "mu_product": ((), 1.0),
            "moment1": (shape, 0.0), "moment2": (shape, 0.0),
        }  # fmt: skip

    @staticmethod
    def rule(o, p, g, lr, decay, power2, product, moment1, moment2):
        slower = 0.96**o.momentum_decay
        decay, power2 = decay * slower, power2 * o.beta2
        mu = o.beta1 * (1 - 0.5 * decay)
        mu_next = o.beta1 * (1 - 0.5 * decay * slower)
        product = product * mu
        first = averaged(moment1, g, rate=o.beta1)
        second = averaged_square(moment2, g, rate=o.beta2)
        ahead = first * (mu_next / (1 - product * mu_next)) + g * ((1 - mu) / (1 - product))
        d = ahead / (sqrt(second / (1 - power2)) + o.epsilon)
        return descend(p, d, lr), decay, power2, product, first, second


class RAdam(Optimizer):
    """Adam that waits to divide by √v̂ until its variance can be known: no warm-up is needed.

    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> radam = paddle.optimizer.RAdam(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> radam.step()
    >>> round(w.item(), 4)
    -1.0
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
        weight_decay=None, grad_clip=None, name=None,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {
            "beta1_pow": ((), 1.0),
            "beta2_pow": ((), 1.0),
            "rho": ((), 0.0),  # t·β₂ᵗ / (1 - β₂ᵗ), kept so that no step count is needed
            "moment1": (shape, 0.0),
            "moment2": (shape, 0.0),
        }

    @staticmethod
    def rule(o, p, g, lr, power1, power2, rho, moment1, moment2):
        power1, power2 = power1 * o.beta1, power2 * o.beta2
        rho = (rho * (o.beta2 - power2) + power2) / (1 - power2)
        first = averaged(moment1, g, rate=o.beta1)
        second = averaged_square(moment2, g, rate=o.beta2)
        longest = 2 / (1 - o.beta2) - 1
        length = longest - 2 * rho
        known = maximum(length, 5.0)
        rectified = sqrt(
            (known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known)
        )
        adaptive = rectified * sqrt(1 - power2) / (sqrt(second) + o.epsilon)
        d = first / (1 - power1) * where(length > 5, adaptive, 1.0)
        return descend(p, d, lr), power1, power2, rho, first, second


class Rprop(Optimizer):
    """Only the sign of the gradient counts; each element has its own step size.

    The size grows by etas[1] while the sign stays and shrinks by etas[0] when it turns, within
    `learning_rate_range`. For full batches.
    Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation", 1993.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> rprop = paddle.optimizer.Rprop(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> rprop.step()
    >>> w.tolist()
    [-0.5]
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, learning_rate_range=(1e-5, 50), parameters=None, etas=(0.5, 1.2),
        grad_clip=None, multi_precision=False, name=None,
    ):  # fmt: skip
        low, high = learning_rate_range
        if not 0 < low <= high:
            raise ValueError(f"learning_rate_range must be 0 < low <= high, not {low}, {high}")
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"etas must be 0 < shrink < 1 < grow, not {etas}")

    def options_for(self, p, group):
        group.first = self._rate.number
        return group

    @staticmethod
    def states(o, shape):
        return {"prevs": (shape, 0.0), "learning_rates": (shape, o.first)}

    @staticmethod
    def rule(o, p, g, lr, before, sizes):
        turned, (low, high), (shrink, grow) = g * before, o.learning_rate_range, o.etas
        sizes = where(turned > 0, sizes * grow, where(turned < 0, sizes * shrink, sizes))
        sizes = minimum(maximum(sizes, low), high)
        g = where(turned < 0, 0.0, g)
        return p - sign(g) * sizes, g, sizes


class ASGD(Optimizer):
    """Steps along the mean of the last `batch_num` gradients.

    Source: Schmidt, Le Roux and Bach, "Minimizing Finite Sums with the Stochastic Average
    Gradient", 2017; Paddle API `paddle.optimizer.ASGD`.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> asgd = paddle.optimizer.ASGD(learning_rate=0.5, batch_num=2, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> asgd.step()
    >>> w.tolist()
    [-1.0]
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, batch_num=1, parameters=None, weight_decay=None, grad_clip=None,
        multi_precision=False, name=None,
    ):  # fmt: skip
        if batch_num <= 0:
            raise ValueError(f"batch_num must be positive, not {batch_num}")
        self.options["batch_num"] = int(batch_num)

    @staticmethod
    def states(o, shape):
        return {"d": (shape, 0.0), "y": ((o.batch_num, *shape), 0.0), "m": ((), 0)}

    @staticmethod
    def rule(o, p, g, lr, total, last, count):
        slot = one_at(count % o.batch_num, o.batch_num, p.spec.ndim)
        total = total - where(slot, last, 0.0).sum(0) + g
        mean_of = minimum(count + 1, o.batch_num).astype(p.dtype)
        return descend(p, total, lr / mean_of), total, where(slot, g, last), count + 1


def one_at(place, n: int, ndim: int):
    """bool[n, 1, …]: True at `place`, for choosing among n arrays of `ndim` axes."""
    return (arange(n) == place).reshape([n] + [1] * ndim)
