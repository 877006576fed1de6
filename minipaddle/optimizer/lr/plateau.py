"""A schedule that watches a number: it lowers the rate when the number no longer improves."""

import math

from .scheduler import LRScheduler, one_of


class ReduceOnPlateau(LRScheduler):
    """Multiply the rate by `factor` when `metrics` has not improved for `patience` calls.

    Better means lower (`mode="min"`) or higher by `threshold`, relative ("rel") or absolute
    ("abs"). After a cut it waits `cooldown` calls. Call `step(metrics)`.

    >>> rate = paddle.optimizer.lr.ReduceOnPlateau(0.5, factor=0.5, patience=0)
    >>> for loss in (1.0, 1.0):
    ...     rate.step(loss)
    >>> rate()
    0.25
    """

    def __init__(
        self, learning_rate, mode="min", factor=0.1, patience=10, threshold=1e-4,
        threshold_mode="rel", cooldown=0, min_lr=0, epsilon=1e-8, verbose=False,
    ):  # fmt: skip
        if factor >= 1:
            raise ValueError(f"factor must be below 1, so that the rate falls, not {factor}")
        self.mode = one_of("mode", mode.lower(), ("min", "max"))
        self.threshold_mode = one_of("threshold_mode", threshold_mode.lower(), ("rel", "abs"))
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.best, self.num_bad_epochs, self.cooldown_counter = None, 0, 0
        super().__init__(learning_rate, verbose=False)
        self.verbose = verbose

    def get_lr(self):
        return self.base_lr

    def state_keys(self):
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def better(self, value: float) -> bool:
        """Is `value` an improvement on the best so far?"""
        if self.best is None:
            return not math.isnan(value)
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1)
        low = self.mode == "min"
        return value < self.best - margin if low else value > self.best + margin

    def step(self, metrics=None, epoch=None):
        """Note `metrics` (a number, or a tensor with one element) and cut the rate if due."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if metrics is None:
            if self.last_epoch > 0:
                raise TypeError("ReduceOnPlateau.step(metrics) needs the number to watch")
            return
        value = self.number(metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            self.cut()

    @staticmethod
    def number(metrics) -> float:
        """`metrics` as a float; raises TypeError if it is not one number."""
        value = metrics.item() if hasattr(metrics, "item") else metrics
        if not isinstance(value, int | float):
            raise TypeError(f"metrics must be a number or a tensor with one, not {metrics!r}")
        return float(value)

    def cut(self) -> None:
        new = max(self.last_lr * self.factor, self.min_lr)
        if self.last_lr - new > self.epsilon:
            self.last_lr = new
            self.print_rate()
