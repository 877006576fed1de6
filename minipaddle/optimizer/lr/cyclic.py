"""Schedules that rise and fall: half cosines, triangles, one cycle."""

import math
from itertools import pairwise

from .scheduler import LRScheduler, one_of, positive_int, schedule


def cosine(start: float, end: float, done: float) -> float:
    """From `start` (done = 0) to `end` (done = 1) along half a cosine."""
    share = (1 + math.cos(math.pi * done)) / 2
    return start * share + end * (1 - share)


def linear(start: float, end: float, done: float) -> float:
    """From `start` (done = 0) to `end` (done = 1) along a line."""
    return start + (end - start) * done


class CosineAnnealingDecay(LRScheduler):
    """From learning_rate to eta_min along half a cosine in `T_max` calls, and back.

    Each rate follows from the one before, so that a changed `last_lr` is respected.
    Source: Loshchilov and Hutter, "SGDR", 2017, equation 5.
    Paddle API `paddle.optimizer.lr.CosineAnnealingDecay`.

    >>> rate = paddle.optimizer.lr.CosineAnnealingDecay(0.5, T_max=1)
    >>> rate.step()
    >>> rate()
    0.0
    """

    def __init__(self, learning_rate, T_max, eta_min=0, last_epoch=-1, verbose=False):
        self.T_max = positive_int("T_max", T_max)
        self.eta_min = float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        t, turn = self.last_epoch, self.T_max
        if t == 0:
            return self.base_lr
        if (t - 1 - turn) % (2 * turn) == 0:  # at the bottom: the ratio below would be 0 / 0
            return self.last_lr + (self.base_lr - self.eta_min) * (1 - math.cos(math.pi / turn)) / 2
        ratio = (1 + math.cos(math.pi * t / turn)) / (1 + math.cos(math.pi * (t - 1) / turn))
        return ratio * (self.last_lr - self.eta_min) + self.eta_min

    def lr_at(self, epoch):
        return cosine(self.base_lr, self.eta_min, epoch / self.T_max)


@schedule
def CosineAnnealingWarmRestarts(learning_rate, T_0, T_mult=1, eta_min=0, *, t):
    """Half a cosine from learning_rate to eta_min in T_0 calls, again in T_0·T_mult, and so on.

    `step(1.5)` is allowed: part of an epoch.
    Source: Loshchilov and Hutter, "SGDR", 2017.
    Paddle API `paddle.optimizer.lr.CosineAnnealingWarmRestarts`.

    >>> rate = paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.5, T_0=1)
    >>> rate.step()
    >>> rate()
    0.5
    """
    turn, growth = positive_int("T_0", T_0), positive_int("T_mult", T_mult)
    if growth == 1:
        t %= turn
    while t >= turn:
        t, turn = t - turn, turn * growth
    return cosine(learning_rate, eta_min, t / turn)


@schedule
def LinearLR(learning_rate, total_steps, start_factor=1.0 / 3, end_factor=1.0, *, t):
    """learning_rate times a factor that changes linearly from start_factor to end_factor.

    >>> rate = paddle.optimizer.lr.LinearLR(0.5, total_steps=2, start_factor=0.5)
    >>> rate.step()
    >>> rate()
    0.375
    """
    if not 0 < start_factor <= 1:
        raise ValueError(f"start_factor must lie in (0, 1], not {start_factor}")
    if not 0 <= end_factor <= 1:
        raise ValueError(f"end_factor must lie in [0, 1], not {end_factor}")
    done = min(t, total_steps) / positive_int("total_steps", total_steps)
    return learning_rate * linear(start_factor, end_factor, done)


@schedule
def OneCycleLR(
    max_learning_rate, total_steps, divide_factor=25.0, end_learning_rate=0.0001, phase_pct=0.3,
    anneal_strategy="cos", three_phase=False, *, t,
):  # fmt: skip
    """Up to max_learning_rate, down to its 1/divide_factor, and on to end_learning_rate.

    With `three_phase` the way down is as long as the way up; otherwise it goes straight to the
    end. Source: Smith and Topin, "Super-Convergence", 2018.
    Paddle API `paddle.optimizer.lr.OneCycleLR`.

    >>> rate = paddle.optimizer.lr.OneCycleLR(0.5, total_steps=11, phase_pct=0.5, divide_factor=5)
    >>> rate()
    0.1
    """
    last, up = positive_int("total_steps", total_steps) - 1, phase_pct * total_steps
    if not 0 <= phase_pct <= 1:
        raise ValueError(f"phase_pct must lie in [0, 1], not {phase_pct}")
    if three_phase and phase_pct > 0.5:
        raise ValueError(f"with three_phase, phase_pct must be at most 0.5, not {phase_pct}")
    one_of("anneal_strategy", anneal_strategy, ("cos", "linear"))
    if t > total_steps:
        raise ValueError(f"OneCycleLR was made for {total_steps} steps: this is step {t}")
    first, curve = max_learning_rate / divide_factor, cosine if anneal_strategy == "cos" else linear
    knots = [(0, first), (up - 1, max_learning_rate)]  # (time, rate), joined by the curve
    knots += [(2 * up - 2, first)] if three_phase else []
    for (t0, start), (t1, end) in pairwise([*knots, (last, end_learning_rate)]):
        if t <= t1 or t1 == last:
            return curve(start, end, (t - t0) / (t1 - t0))


class CyclicLR(LRScheduler):
    """A triangle wave between two rates; `mode` says how its height changes from cycle to cycle.

    triangular: not at all; triangular2: halved each cycle; exp_range: times exp_gamma each call.
    Source: Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.
    Paddle API `paddle.optimizer.lr.CyclicLR`.

    >>> rate = paddle.optimizer.lr.CyclicLR(0.25, 0.5, step_size_up=1)
    >>> rate.step()
    >>> rate()
    0.5
    """

    def __init__(
        self, base_learning_rate, max_learning_rate, step_size_up, step_size_down=None,
        mode="triangular", exp_gamma=1.0, scale_fn=None, scale_mode="cycle", last_epoch=-1,
        verbose=False,
    ):  # fmt: skip
        self.step_size_up = positive_int("step_size_up", step_size_up)
        self.step_size_down = positive_int("step_size_down", step_size_down or step_size_up)
        self.scale_mode = one_of("scale_mode", scale_mode, ("cycle", "iterations"))
        self.max_lr, self.scale_fn = float(max_learning_rate), scale_fn
        if scale_fn is None:
            one_of("mode", mode, ("triangular", "triangular2", "exp_range"))
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
            self.scale_fn = {
                "triangular": lambda cycle: 1.0,
                "triangular2": lambda cycle: 1 / 2 ** (cycle - 1),
                "exp_range": lambda iteration: exp_gamma**iteration,
            }[mode]
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self):
        cycle, step = divmod(self.last_epoch, self.step_size_up + self.step_size_down)
        rising = step <= self.step_size_up
        left = self.step_size_up + self.step_size_down - step
        height = step / self.step_size_up if rising else left / self.step_size_down
        scale = self.scale_fn(cycle + 1 if self.scale_mode == "cycle" else self.last_epoch)
        return self.base_lr + (self.max_lr - self.base_lr) * height * scale


__all__ = [
    "CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "CyclicLR", "LinearLR", "OneCycleLR",
]  # fmt: skip
