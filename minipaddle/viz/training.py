"""Curves that `paddle.Model.fit` draws."""

from __future__ import annotations

from ..hapi.callbacks import Callback


class CurvesCallback(Callback):
    """Logs what `fit` reports after each batch, and after each evaluation, to `Curves`.

    Source: Paddle API `paddle.callbacks.Callback`, `paddle.callbacks.VisualDL`.
    """

    def __init__(self, curves, run: str = "", prefix: str = ""):
        super().__init__()
        self.curves, self.run, self.prefix, self.step = curves, run, prefix, 0

    def on_train_batch_end(self, step, logs=None):
        self.step += 1
        self.log(self.prefix, logs)

    def on_eval_end(self, logs=None):
        self.log(f"{self.prefix}eval ", logs)

    def on_train_end(self, logs=None):
        if self.curves.live:
            self.curves.show()

    def log(self, prefix: str, logs) -> None:
        """The numbers among the reports; of a list, as `fit` gives losses, the first."""
        for name, value in (logs or {}).items():
            value = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
            if name not in ("step", "batch_size") and isinstance(value, int | float):
                self.curves.log(self.step, run=self.run, **{prefix + name: value})
