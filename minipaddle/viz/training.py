"""Curves that `paddle.Model.fit` draws."""

from __future__ import annotations


def fit_callback(curves, run: str, prefix: str):
    """A `paddle.callbacks.Callback` that logs what `fit` reports to `curves`."""
    from ..hapi.callbacks import Callback  # who draws no training needs no `hapi`

    class CurvesCallback(Callback):
        step = 0

        def on_train_batch_end(self, step, logs=None):
            self.step += 1
            self.log(prefix, logs)

        def on_eval_end(self, logs=None):
            self.log(f"{prefix}eval ", logs)

        def on_train_end(self, logs=None):
            if curves.live:
                curves.show()

        def log(self, prefix: str, logs) -> None:
            values = {prefix + name: value for name, value in numbers(logs or {}).items()}
            curves.log(self.step, run=run, **values)

    return CurvesCallback()


def numbers(logs: dict) -> dict[str, float]:
    """The numbers among reports; `fit` gives losses as lists, of which a single one counts."""
    found = {}
    for name, value in logs.items():
        if isinstance(value, list | tuple) and len(value) == 1:
            (value,) = value
        if name not in ("step", "batch_size") and isinstance(value, int | float):
            found[name] = value
    return found
