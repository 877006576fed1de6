"""Schedules that fall, in steps or smoothly: each is one formula of t = `last_epoch`."""

import math
from bisect import bisect_right
from itertools import pairwise

from .scheduler import LRScheduler, positive_int, schedule


@schedule
def NoamDecay(d_model, warmup_steps, learning_rate=1.0, *, t):
    """learning_rate · d_model^-½ · min(t^-½, t · warmup_steps^-1½).

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 5.3.
    Paddle API `paddle.optimizer.lr.NoamDecay`.

    >>> rate = paddle.optimizer.lr.NoamDecay(d_model=4, warmup_steps=1)
    >>> rate.step()
    >>> rate()
    0.5
    """
    if d_model <= 0:
        raise ValueError(f"d_model must be positive, not {d_model}")
    return learning_rate * d_model**-0.5 * min(t**-0.5 if t else 1, t * warmup_steps**-1.5)


@schedule
def PiecewiseDecay(boundaries, values, *, t):
    """values[i] from boundaries[i-1] up to, not including, boundaries[i].

    >>> rate = paddle.optimizer.lr.PiecewiseDecay([1], [0.1, 0.01])
    >>> first = rate()
    >>> rate.step()
    >>> first, rate()
    (0.1, 0.01)
    """
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"{len(boundaries)} boundaries make {len(boundaries) + 1} pieces, "
            f"but {len(values)} values were given"
        )
    return values[bisect_right(boundaries, t)]


@schedule
def NaturalExpDecay(learning_rate, gamma, *, t):
    """learning_rate · e^(-gamma · t).

    >>> paddle.optimizer.lr.NaturalExpDecay(0.5, gamma=0.1)()
    0.5
    """
    return learning_rate * math.exp(-gamma * t)


@schedule
def InverseTimeDecay(learning_rate, gamma, *, t):
    """learning_rate / (1 + gamma · t).

    >>> rate = paddle.optimizer.lr.InverseTimeDecay(0.5, gamma=1.0)
    >>> rate.step()
    >>> rate()
    0.25
    """
    return learning_rate / (1 + gamma * t)


@schedule
def PolynomialDecay(learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False, *, t):
    """(learning_rate - end_lr) · (1 - t/decay_steps)^power + end_lr; with `cycle`, it starts again.

    >>> rate = paddle.optimizer.lr.PolynomialDecay(1.0, decay_steps=2, end_lr=0.0)
    >>> rate.step()
    >>> rate()
    0.5
    """
    steps = positive_int("decay_steps", decay_steps)
    if power <= 0:
        raise ValueError(f"power must be positive, not {power}")
    if cycle:
        steps *= max(1, math.ceil(t / steps))
    left = 1 - min(t, steps) / steps
    return (learning_rate - end_lr) * left**power + end_lr


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in `warmup_steps`, then `learning_rate`: a number or a schedule.

    Source: Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.2.
    Paddle API `paddle.optimizer.lr.LinearWarmup`.

    >>> rate = paddle.optimizer.lr.LinearWarmup(0.5, warmup_steps=2, start_lr=0.0, end_lr=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, last_epoch=-1, verbose=False):
        if not isinstance(learning_rate, int | float | LRScheduler):
            raise TypeError(f"learning_rate must be a number or a schedule, not {learning_rate!r}")
        if end_lr <= start_lr:
            raise ValueError(f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps = positive_int("warmup_steps", warmup_steps)
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self):
        if self.last_epoch < self.warmup_steps:
            done = self.last_epoch / self.warmup_steps
            return (self.end_lr - self.start_lr) * done + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate

    def state_dict(self):
        inner = self.learning_rate
        own = super().state_dict()
        return own | {"LinearWarmup_LR": inner.state_dict()} if hasattr(inner, "step") else own

    def set_state_dict(self, state_dict):
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])


@schedule
def ExponentialDecay(learning_rate, gamma, *, t):
    """learning_rate · gamma^t.

    >>> rate = paddle.optimizer.lr.ExponentialDecay(0.5, gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """
    if not 0 < gamma < 1:
        raise ValueError(f"gamma must lie between 0 and 1, not {gamma}")
    return learning_rate * gamma**t


def require_below_1(gamma):
    """`gamma`, if the rate falls with it."""
    if gamma >= 1:
        raise ValueError(f"gamma must be below 1, not {gamma}")
    return gamma


@schedule
def MultiStepDecay(learning_rate, milestones, gamma=0.1, *, t):
    """learning_rate · gamma^(number of milestones reached).

    >>> rate = paddle.optimizer.lr.MultiStepDecay(0.5, milestones=[1, 5], gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """
    if not isinstance(milestones, list | tuple):
        raise TypeError(f"milestones must be a list or tuple, not {milestones!r}")
    if any(a >= b for a, b in pairwise(milestones)):
        raise ValueError(f"milestones must increase: {list(milestones)}")
    return learning_rate * require_below_1(gamma) ** bisect_right(milestones, t)


@schedule
def StepDecay(learning_rate, step_size, gamma=0.1, *, t):
    """learning_rate · gamma^⌊t / step_size⌋.

    >>> rate = paddle.optimizer.lr.StepDecay(0.5, step_size=1, gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """
    return learning_rate * require_below_1(gamma) ** (t // positive_int("step_size", step_size))


def factor(lr_lambda):
    """`lr_lambda`, if it is a function."""
    if not callable(lr_lambda):
        raise TypeError(f"lr_lambda must be a function epoch -> factor, not {lr_lambda!r}")
    return lr_lambda


@schedule
def LambdaDecay(learning_rate, lr_lambda, *, t):
    """learning_rate · lr_lambda(t).

    >>> rate = paddle.optimizer.lr.LambdaDecay(0.5, lambda t: 0.5**t)
    >>> rate.step()
    >>> rate()
    0.25
    """
    return learning_rate * factor(lr_lambda)(t)


@schedule
def MultiplicativeDecay(learning_rate, lr_lambda, *, t):
    """learning_rate · lr_lambda(1) · … · lr_lambda(t).

    >>> rate = paddle.optimizer.lr.MultiplicativeDecay(0.5, lambda t: 0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """
    return learning_rate * math.prod(map(factor(lr_lambda), range(1, t + 1)))


__all__ = [
    "ExponentialDecay", "InverseTimeDecay", "LambdaDecay", "LinearWarmup", "MultiStepDecay",
    "MultiplicativeDecay", "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay",
    "StepDecay",
]  # fmt: skip
