"""Callbacks, called before and after the steps, epochs and evaluations of `Model.fit`."""

import os
import warnings

from ..engine.core.errors import teach
from ..optimizer.lr import LRScheduler as Schedule
from .progress import ProgressLine

__all__ = ["Callback", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger"]


class Callback:
    """The base: define the methods you need; `self.model` and `self.params` are set before.

    >>> class Counting(paddle.callbacks.Callback):
    ...     steps = 0
    ...     def on_train_batch_end(self, step, logs=None):
    ...         self.steps += 1
    """

    def __init__(self):
        self.model = None
        self.params = {}

    def set_params(self, params: dict) -> None:
        """`batch_size`, `epochs`, `steps`, `verbose`, `metrics` and `save_dir` of the run."""
        self.params = params

    def set_model(self, model) -> None:
        """The `Model` that runs."""
        self.model = model

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_train_end(self, logs=None):
        """After the last epoch."""

    def on_eval_begin(self, logs=None):
        """Before an evaluation."""

    def on_eval_end(self, logs=None):
        """After an evaluation."""

    def on_predict_begin(self, logs=None):
        """Before a prediction."""

    def on_predict_end(self, logs=None):
        """After a prediction."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        """After an epoch, before its evaluation."""

    def on_train_batch_begin(self, step, logs=None):
        """Before a training step."""

    def on_train_batch_end(self, step, logs=None):
        """After a training step; `logs` has the loss and the metrics."""

    def on_eval_batch_begin(self, step, logs=None):
        """Before a batch of an evaluation."""

    def on_eval_batch_end(self, step, logs=None):
        """After a batch of an evaluation."""

    def on_predict_batch_begin(self, step, logs=None):
        """Before a batch of a prediction."""

    def on_predict_batch_end(self, step, logs=None):
        """After a batch of a prediction."""


class Callbacks:
    """Several callbacks called like one: `callbacks.on_epoch_begin(3)`."""

    def __init__(self, callbacks, model, params: dict):
        self.all = list(callbacks)
        for callback in self.all:
            callback.set_model(model)
            callback.set_params(params)

    def __getattr__(self, name: str):
        def call_each(*args):
            for callback in self.all:
                getattr(callback, name)(*args)

        return call_each


class ProgBarLogger(Callback):
    """Report progress: nothing (verbose=0), a bar (1), or a line every `log_freq` batches (2)."""

    def __init__(self, log_freq: int = 1, verbose: int = 2):
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self.line = None

    def values(self, logs: dict) -> dict:
        return {k: logs[k] for k in self.params.get("metrics", ()) if k in logs}

    def begin(self, steps) -> None:
        self.line = ProgressLine(steps, live=self.verbose == 1) if self.verbose else None
        self.samples = self.steps = self.reported = 0
        self.last: dict = {}

    def note(self, step: int, logs: dict, values: dict) -> None:
        self.samples += logs.get("batch_size", 0)
        self.steps, self.last = step + 1, values
        if self.line is not None and (self.verbose == 1 or self.steps % self.log_freq == 0):
            self.line.update(self.steps, values)
            self.reported = self.steps

    def end(self) -> None:
        if self.line is not None and (self.verbose == 1 or self.reported < self.steps):
            self.line.close(self.steps, self.last)
        self.line = None

    def say(self, text: str) -> None:
        if self.verbose:
            print(text, flush=True)

    def on_train_begin(self, logs=None):
        self.say(
            "The loss value printed in the log is the current step, and the metric is the "
            "average value of previous steps."
        )

    def on_epoch_begin(self, epoch, logs=None):
        self.say(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self.begin(self.params["steps"])

    def on_train_batch_end(self, step, logs=None):
        self.note(step, logs, self.values(logs))

    def on_epoch_end(self, epoch, logs=None):
        self.end()

    def on_eval_begin(self, logs=None):
        self.say("Eval begin...")
        self.begin(logs["steps"])

    def on_eval_batch_end(self, step, logs=None):
        self.note(step, logs, self.values(logs))

    def on_eval_end(self, logs=None):
        self.end()
        self.say(f"Eval samples: {self.samples}")

    def on_predict_begin(self, logs=None):
        self.say("Predict begin...")
        self.begin(logs["steps"])

    def on_predict_batch_end(self, step, logs=None):
        self.note(step, logs, {})

    def on_predict_end(self, logs=None):
        self.end()
        self.say(f"Predict samples: {self.samples}")


class LRScheduler(Callback):
    """Step the optimizer's schedule after every batch, or after every epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False):
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("LRScheduler steps by_step or by_epoch, not both")
        self.by_step, self.by_epoch = by_step, by_epoch

    def step(self) -> None:
        schedule = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(schedule, Schedule):
            schedule.step()

    def on_train_batch_end(self, step, logs=None):
        if self.by_step:
            self.step()

    def on_epoch_end(self, epoch, logs=None):
        if self.by_epoch:
            self.step()


class ModelCheckpoint(Callback):
    """Save the model every `save_freq` epochs under `save_dir`, and at the end as `final`."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None):
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def save(self, name: str) -> None:
        if self.save_dir:
            path = os.path.join(os.path.abspath(self.save_dir), name)
            print(f"save checkpoint at {path}")
            self.model.save(path)

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.save_freq == 0:
            self.save(str(epoch))

    def on_train_end(self, logs=None):
        self.save("final")


class EarlyStopping(Callback):
    """Stop when the evaluation's `monitor` has not improved by `min_delta` `patience` times.

    `mode` "min" or "max" says which way is better ("auto": max for what is called acc…); the first
    value must beat `baseline`. The best model is saved as `best_model` in `fit`'s save_dir.
    """

    def __init__(
        self, monitor: str = "loss", mode: str = "auto", patience: int = 0, verbose: int = 1,
        min_delta: float = 0, baseline: float | None = None, save_best_model: bool = True,
    ):  # fmt: skip
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode must be 'auto', 'min' or 'max', not {mode!r}")
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.baseline, self.min_delta = baseline, abs(min_delta)
        self.save_best_model = save_best_model
        upwards = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.sign = 1 if upwards else -1

    def on_train_begin(self, logs=None):
        self.best = self.baseline
        self.wait, self.epoch = 0, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_eval_end(self, logs=None):
        if not logs or self.monitor not in logs:
            warnings.warn(
                teach(
                    f"EarlyStopping watches {self.monitor!r}, which the evaluation does not give",
                    f"one of {sorted(logs or {})}",
                ),
                stacklevel=2,
            )
            return
        value = logs[self.monitor]
        value = float(value[0] if isinstance(value, list | tuple) else value)
        if self.best is None or self.sign * (value - self.best) > self.min_delta:
            self.best, self.wait = value, 0
            if self.save_best_model and self.params.get("save_dir"):
                self.model.save(os.path.join(self.params["save_dir"], "best_model"))
        else:
            self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.model.stop_training = True
            if self.verbose:
                print(f"Epoch {self.epoch + 1}: Early stopping.")
