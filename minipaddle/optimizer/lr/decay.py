"""Schedules that fall, in steps or smoothly: each is one formula of t = `last_epoch`."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise

from .scheduler import LRScheduler, positive_int


class NoamDecay(LRScheduler):
    """learning_rate · d_model^-½ · min(t^-½, t · warmup_steps^-1½).

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 5.3.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.NoamDecay(d_model=4, warmup_steps=1)
    >>> rate.step()
    >>> rate()
    0.5
    """

    def __init__(self, d_model, warmup_steps, learning_rate=1.0, last_epoch=-1, verbose=False):
        if d_model <= 0:
            raise ValueError(f"d_model must be positive, not {d_model}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        t = self.last_epoch
        decay = t**-0.5 if t else 1
        return self.base_lr * self.d_model**-0.5 * min(decay, t * self.warmup_steps**-1.5)


class PiecewiseDecay(LRScheduler):
    """values[i] from boundaries[i-1] up to, not including, boundaries[i].

    Source: Paddle API `paddle.optimizer.lr.PiecewiseDecay`.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.PiecewiseDecay([1], [0.1, 0.01])
    >>> first = rate()
    >>> rate.step()
    >>> first, rate()
    (0.1, 0.01)
    """

    def __init__(self, boundaries, values, last_epoch=-1, verbose=False):
        if len(values) != len(boundaries) + 1:
            raise ValueError(
                f"{len(boundaries)} boundaries make {len(boundaries) + 1} pieces, "
                f"but {len(values)} values were given"
            )
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(self.values[0], last_epoch, verbose)

    def get_lr(self):
        return self.values[bisect_right(self.boundaries, self.last_epoch)]


class NaturalExpDecay(LRScheduler):
    """learning_rate · e^(-gamma · t). Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> paddle.optimizer.lr.NaturalExpDecay(0.5, gamma=0.1)()
    0.5
    """

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(LRScheduler):
    """learning_rate / (1 + gamma · t). Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.InverseTimeDecay(0.5, gamma=1.0)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class PolynomialDecay(LRScheduler):
    """(learning_rate - end_lr) · (1 - t/decay_steps)^power + end_lr; with `cycle`, it starts again.

    Source: Paddle API `paddle.optimizer.lr.PolynomialDecay`.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.PolynomialDecay(1.0, decay_steps=2, end_lr=0.0)
    >>> rate.step()
    >>> rate()
    0.5
    """

    def __init__(
        self, learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False, last_epoch=-1,
        verbose=False,
    ):  # fmt: skip
        self.decay_steps = positive_int("decay_steps", decay_steps)
        if power <= 0:
            raise ValueError(f"power must be positive, not {power}")
        self.end_lr, self.power, self.cycle = end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        t, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= max(1, math.ceil(t / steps))
        left = 1 - min(t, steps) / steps
        return (self.base_lr - self.end_lr) * left**self.power + self.end_lr


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in `warmup_steps`, then `learning_rate`: a number or a schedule.

    Source: Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.2.

    >>> import minipaddle as paddle
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


class ExponentialDecay(LRScheduler):
    """learning_rate · gamma^t. Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.ExponentialDecay(0.5, gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        if not 0 < gamma < 1:
            raise ValueError(f"gamma must lie between 0 and 1, not {gamma}")
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr * self.gamma**self.last_epoch


class MultiStepDecay(LRScheduler):
    """learning_rate · gamma^(how many milestones are reached). Source: Paddle API of this name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.MultiStepDecay(0.5, milestones=[1, 5], gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, milestones, gamma=0.1, last_epoch=-1, verbose=False):
        if not isinstance(milestones, list | tuple):
            raise TypeError(f"milestones must be a list or tuple, not {milestones!r}")
        if any(a >= b for a, b in pairwise(milestones)):
            raise ValueError(f"milestones must increase: {list(milestones)}")
        if gamma >= 1:
            raise ValueError(f"gamma must be below 1, not {gamma}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr * self.gamma ** bisect_right(self.milestones, self.last_epoch)


class StepDecay(LRScheduler):
    """learning_rate · gamma^⌊t / step_size⌋. Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.StepDecay(0.5, step_size=1, gamma=0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False):
        if gamma >= 1:
            raise ValueError(f"gamma must be below 1, not {gamma}")
        self.step_size, self.gamma = positive_int("step_size", step_size), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class LambdaDecay(LRScheduler):
    """learning_rate · lr_lambda(t). Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.LambdaDecay(0.5, lambda t: 0.5**t)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def __init__(self, learning_rate, lr_lambda, last_epoch=-1, verbose=False):
        if not callable(lr_lambda):
            raise TypeError(f"lr_lambda must be a function epoch -> factor, not {lr_lambda!r}")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """learning_rate · lr_lambda(1) · … · lr_lambda(t). Source: Paddle API of the same name.

    >>> import minipaddle as paddle
    >>> rate = paddle.optimizer.lr.MultiplicativeDecay(0.5, lambda t: 0.5)
    >>> rate.step()
    >>> rate()
    0.25
    """

    def get_lr(self):
        return self.base_lr * math.prod(map(self.lr_lambda, range(1, self.last_epoch + 1)))
