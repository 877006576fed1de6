"""Steps divided, element by element, by the size of past gradients."""

from ..engine.ops.elementwise import sqrt, square
from .adam import averaged, averaged_square
from .optimizer import Optimizer, constructor
from .sgd import descend, pushed


class Adagrad(Optimizer):
    """s ← s + g², p ← p - lr · g / (√s + ε).

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> adagrad = paddle.optimizer.Adagrad(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> adagrad.step()
    >>> round(w.item(), 4)
    -0.5
    """

    @constructor
    def __init__(
        self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None,
        name=None, initial_accumulator_value=0.0,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {"moment": (shape, float(o.initial_accumulator_value))}

    def keeps_rows(self, o):
        return self.rule is Adagrad.rule

    @staticmethod
    def rule(o, p, g, lr, moment):
        total = moment + square(g)
        return descend(p, g / (sqrt(total) + o.epsilon), lr), total


class Adadelta(Optimizer):
    """Steps in the units of the parameter: d = g · √(E[d²] + ε) / √(E[g²] + ε), p ← p - lr · d.

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> adadelta = paddle.optimizer.Adadelta(learning_rate=1.0, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> adadelta.step()
    >>> round(w.item(), 4)
    -0.0045
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, epsilon=1e-6, rho=0.95, parameters=None, weight_decay=None,
        grad_clip=None, name=None,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {"_avg_squared_grad": (shape, 0.0), "_avg_squared_update": (shape, 0.0)}

    @staticmethod
    def rule(o, p, g, lr, of_gradients, of_updates):
        of_gradients = averaged_square(of_gradients, g, rate=o.rho)
        d = g * sqrt((of_updates + o.epsilon) / (of_gradients + o.epsilon))
        return descend(p, d, lr), of_gradients, averaged_square(of_updates, d, rate=o.rho)


class RMSProp(Optimizer):
    """E[g²] ← ρ·E[g²] + (1-ρ)·g², v ← μ·v + lr · g / √(E[g²] + ε), p ← p - v.

    With `centered`, E[g²] - E[g]², the variance, stands for E[g²] under the root.
    Source: Hinton, "Neural Networks for Machine Learning", lecture 6e, 2012.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> rmsprop = paddle.optimizer.RMSProp(learning_rate=0.5, rho=0.75, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> rmsprop.step()
    >>> round(w.item(), 4)
    -1.0
    """

    @constructor
    def __init__(
        self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameters=None,
        weight_decay=None, grad_clip=None, name=None,
    ):  # fmt: skip
        if momentum < 0:
            raise ValueError(f"momentum must not be negative: {momentum}")

    @staticmethod
    def states(o, shape):
        return {"momentum": (shape, 0.0), "mean_square": (shape, 0.0), "mean_grad": (shape, 0.0)}

    @staticmethod
    def rule(o, p, g, lr, velocity, mean_square, mean_grad):
        mean_square = averaged_square(mean_square, g, rate=o.rho)
        variance = mean_square
        if o.centered:
            mean_grad = averaged(mean_grad, g, rate=o.rho)
            variance = mean_square - square(mean_grad)
        v = pushed(velocity, lr * g / sqrt(variance + o.epsilon), momentum=o.momentum)
        return p - v, v, mean_square, mean_grad
