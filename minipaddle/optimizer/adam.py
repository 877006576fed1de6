"""Adam and its relatives: steps measured by running averages of the gradient and its square."""

from types import SimpleNamespace

from ..core.prelude import abs, maximum, slot, sqrt, type_error, where
from ..engine.core.op import elementwise
from ..executors.hot.eager_kernels import give_kernels
from ..regularizer import WeightDecayRegularizer
from .optimizer import Optimizer, constructor
from .sgd import descend


@elementwise
def averaged(m, average, x, *, rate):
    """The running average: rate · average + (1 - rate) · x."""
    return rate * average + (1 - rate) * x


@elementwise
def averaged_square(m, average, x, *, rate):
    """The running average of squares: rate · average + (1 - rate) · x²."""
    return rate * average + (1 - rate) * (x * x)


@elementwise
def adam_step(m, p, lr, first, second, power1, power2, *, epsilon):
    """p - lr · m̂ / (√v̂ + ε), where m̂ and v̂ are the averages without their bias to zero."""
    unbiased = m.sqrt(1 - power2)
    return p - (lr * unbiased / (1 - power1)) * first / (m.sqrt(second) + epsilon * unbiased)


give_kernels(averaged, averaged_square, adam_step)


@slot("optimizer.adam")
def adam(p, g, lr, moment1, moment2, power1, power2, *, beta1, beta2, epsilon):
    """One step of Adam: the new parameter, both averages, and the powers for the next step.

    `power1` is beta1^t and `power2` beta2^t in step t, which is 1 at first.
    """
    first = averaged(moment1, g, rate=beta1)
    second = averaged_square(moment2, g, rate=beta2)
    new = adam_step(p, lr, first, second, power1, power2, epsilon=epsilon)
    return new, first, second, power1 * beta1, power2 * beta2


def amsgrad(p, g, lr, moment1, moment2, largest, power1, power2, *, beta1, beta2, epsilon):
    """Adam's step measured by the largest v so far (Reddi et al., 2018)."""
    first = averaged(moment1, g, rate=beta1)
    second = averaged_square(moment2, g, rate=beta2)
    largest = maximum(largest, second)
    new = adam_step(p, lr, first, largest, power1, power2, epsilon=epsilon)
    return new, first, second, largest, power1 * beta1, power2 * beta2


def moments(o, shape) -> dict:
    """The averages, and the powers of beta as states: a captured step advances them itself.

    A step count in Python would be baked into a captured program as a constant.
    """
    return {
        "moment1": (shape, 0.0),
        "moment2": (shape, 0.0),
        **({"moment2_max": (shape, 0.0)} if getattr(o, "amsgrad", False) else {}),
        "beta1_pow_acc": ((), o.beta1),
        "beta2_pow_acc": ((), o.beta2),
    }


class Adam(Optimizer):
    """Running averages m of g and v of g²; p ← p - lr · m̂ / (√v̂ + ε).

    With `amsgrad` the largest v so far is used. With `lazy_mode` a step changes the rows alone that
    were looked up, averages too, in a table of `Embedding(sparse=True)`. `use_multi_tensor` asks
    for a faster kernel and changes no number.
    `weight_decay` is added to the gradient; for the decoupled kind see `AdamW`.
    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> adam = paddle.optimizer.Adam(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> adam.step()
    >>> round(w.item(), 4)
    -0.5
    """

    states = staticmethod(moments)

    @constructor
    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
        weight_decay=None, grad_clip=None, lazy_mode=False, multi_precision=False,
        use_multi_tensor=False, amsgrad=False, name=None,
    ): ...  # fmt: skip

    def keeps_rows(self, o):
        return o.lazy_mode

    @staticmethod
    def rule(o, p, g, lr, *states):
        step = amsgrad if o.amsgrad else adam
        return step(p, g, lr, *states, beta1=o.beta1, beta2=o.beta2, epsilon=o.epsilon)


class AdamW(Adam):
    """Adam with decoupled weight decay: p ← p · (1 - lr · weight_decay), then Adam's step.

    `apply_decay_param_fun(name)` says which parameters decay, `lr_ratio(parameter)` is a factor
    on the learning rate. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
    2019.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> adamw = paddle.optimizer.AdamW(0.5, parameters=[w], weight_decay=0.1)
    >>> (2 * w).sum().backward()
    >>> adamw.step()
    >>> round(w.item(), 4)
    -0.5
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
        weight_decay=0.01, use_lowprecision_moment=False, lr_ratio=None, apply_decay_param_fun=None,
        grad_clip=None, lazy_mode=False, multi_precision=False, amsgrad=False, name=None,
    ):  # fmt: skip
        if use_lowprecision_moment:
            raise NotImplementedError("AdamW keeps its moments in float32: no low-precision ones")

    def _set_decay(self, group):
        decay = 0.0 if group.weight_decay is None else group.weight_decay
        if isinstance(decay, WeightDecayRegularizer):
            raise type_error(
                f"AdamW's weight_decay must be a number, not {decay!r}",
                hint="Adam(weight_decay=...) adds a regularizer to the loss",
            )
        group.decay, group.weight_decay = float(decay), None

    def options_for(self, p, group):
        decays = group.apply_decay_param_fun is None or group.apply_decay_param_fun(p.name)
        ratio = 1.0 if group.lr_ratio is None else float(group.lr_ratio(p))
        return SimpleNamespace(
            **{**vars(group), "decay": group.decay if decays else 0.0, "ratio": ratio}
        )

    @staticmethod
    def rule(o, p, g, lr, *states):
        lr = lr if o.ratio == 1.0 else lr * o.ratio
        p = p * (1 - lr * o.decay) if o.decay else p
        return Adam.rule(o, p, g, lr, *states)


class Adamax(Optimizer):
    """Adam with the largest |g| (slowly forgotten) in place of the root mean square.

    Source: Kingma and Ba, "Adam", 2015, section 7.1.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> adamax = paddle.optimizer.Adamax(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> adamax.step()
    >>> round(w.item(), 4)
    -0.5
    """

    @constructor
    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
        weight_decay=None, grad_clip=None, name=None,
    ): ...  # fmt: skip

    @staticmethod
    def states(o, shape):
        return {"moment": (shape, 0.0), "inf_norm": (shape, 0.0), "beta1_pow_acc": ((), o.beta1)}

    @staticmethod
    def rule(o, p, g, lr, moment, inf_norm, power1):
        first = averaged(moment, g, rate=o.beta1)
        largest = maximum(abs(g), inf_norm * o.beta2 + o.epsilon)
        return descend(p, first / largest, lr / (1 - power1)), first, largest, power1 * o.beta1


class Lamb(Optimizer):
    """Adam's direction plus decay, scaled so that each parameter moves in proportion to its norm.

    r = m̂ / (√v̂ + ε) + λ·p, p ← p - lr · ‖p‖/‖r‖ · r. A parameter excluded from decay is not
    scaled either, unless `always_adapt`.
    Source: You et al., "Large Batch Optimization for Deep Learning", 2020.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> lamb = paddle.optimizer.Lamb(learning_rate=0.5, parameters=[w])
    >>> (2 * w).sum().backward()
    >>> lamb.step()
    >>> round(w.item(), 4)
    -0.5
    """

    states = staticmethod(moments)

    @constructor
    def __init__(
        self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
        parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False,
        always_adapt=False, name=None,
    ): ...  # fmt: skip

    def options_for(self, p, group):
        excluded = group.exclude_from_weight_decay_fn
        decay = 0.0 if excluded and excluded(p) else group.lamb_weight_decay
        return SimpleNamespace(**{**vars(group), "lamb_weight_decay": decay})

    @staticmethod
    def rule(o, p, g, lr, moment1, moment2, power1, power2):
        first = averaged(moment1, g, rate=o.beta1)
        second = averaged_square(moment2, g, rate=o.beta2)
        r = first / (1 - power1) / (sqrt(second / (1 - power2)) + o.epsilon)
        r = r + o.lamb_weight_decay * p
        if o.lamb_weight_decay or o.always_adapt:
            of_p, of_r = norm(p), norm(r)
            lr = lr * where((of_p > 0) & (of_r > 0), of_p / of_r, 1.0)
        return descend(p, r, lr), first, second, power1 * o.beta1, power2 * o.beta2


def norm(x):
    """√Σx²."""
    return sqrt((x * x).sum())
