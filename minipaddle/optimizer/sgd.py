"""Descent along the gradient, plain and with momentum."""

from ..engine.core.op import elementwise
from ..engine.core.slots import slot
from ..executors.hot.eager_kernels import give_kernels
from .optimizer import Optimizer, constructor


@elementwise
def descend(m, p, d, lr):
    """p - lr · d: one step from p against the direction d."""
    return p - lr * d


@elementwise
def pushed(m, velocity, g, *, momentum):
    """momentum · velocity + g."""
    return momentum * velocity + g


give_kernels(descend, pushed)


@slot("optimizer.sgd")
def sgd(p, g, lr):
    """One step of plain gradient descent: the new parameter."""
    return descend(p, g, lr)


@slot("optimizer.momentum")
def momentum(p, g, lr, velocity, *, mu):
    """v ← μ·v + g, p ← p - lr·v: (the new parameter, the new velocity)."""
    v = pushed(velocity, g, momentum=mu)
    return descend(p, v, lr), v


@slot("optimizer.nesterov")
def nesterov(p, g, lr, velocity, *, mu):
    """v ← μ·v + g, p ← p - lr·(g + μ·v): where momentum would be one step later."""
    v = pushed(velocity, g, momentum=mu)
    return descend(p, pushed(v, g, momentum=mu), lr), v


class SGD(Optimizer):
    """p ← p - lr · g.

    Source: Robbins and Monro, 1951; Paddle API `paddle.optimizer.SGD`.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> sgd = paddle.optimizer.SGD(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> sgd.step()
    >>> w.tolist()
    [-1.0]
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None,
        multi_precision=False, name=None,
    ):  # fmt: skip
        """Only the arguments of all optimizers."""

    def keeps_rows(self, o):
        return self.rule is SGD.rule

    @staticmethod
    def rule(o, p, g, lr):
        return (sgd(p, g, lr),)


class Momentum(Optimizer):
    """v ← μ·v + g, p ← p - lr·v; with Nesterov's look ahead p ← p - lr·(g + μ·v).

    `rescale_grad` multiplies the gradient. `use_multi_tensor` asks for a faster kernel, not for
    other numbers: it changes nothing here.
    Source: Sutskever et al., "On the importance of initialization and momentum", 2013.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> optimizer = paddle.optimizer.Momentum(0.5, momentum=0.5, parameters=[w])
    >>> for _ in range(2):
    ...     (2 * w).sum().backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    >>> w.tolist()
    [-2.5]
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False,
        weight_decay=None, grad_clip=None, multi_precision=False, rescale_grad=1.0,
        use_multi_tensor=False, name=None,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {"velocity": (shape, 0.0)}

    @staticmethod
    def rule(o, p, g, lr, velocity):
        step = nesterov if o.use_nesterov else momentum
        return step(p, g, lr, velocity, mu=o.momentum)

    def _clip(self, group):
        pairs = super()._clip(group)
        scale = group.rescale_grad
        return pairs if scale == 1.0 else [(p, g * scale) for p, g in pairs]
