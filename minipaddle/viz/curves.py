"""Training curves: live in a notebook, lines of text elsewhere, a figure at the end."""

import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ..core.display import Display
from ..hapi.callbacks import Callback
from ..tuning import Tuned
from .chart import Panel, Picture, PolyLine, chart

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, the dark ones first: lines are thin."""
STYLES = ("-", "--", "-.", ":")
BARS = "▁▂▃▄▅▆▇█"


class Curves(Display):
    """Numbers that change during training, drawn as they come.

    `log(step, loss=…, accuracy=…, run="adam")` adds points: one panel per name, one line per run.
    In a notebook the picture is updated in place, elsewhere a line of text is printed; at most once
    in `every` seconds, and at the end of a `with` block (or by `show()`). `smoothing` in [0, 1) is
    the weight of the past in a moving average; the raw points stay visible behind it.

    >>> from minipaddle import viz
    >>> curves = viz.Curves(live=False)
    >>> for step in range(4):
    ...     curves.log(step, loss=1 / (step + 1))
    >>> print(curves)
    step 3  loss 0.25 █▃▁▁
    """

    def __init__(self, smoothing: float = 0.0, *, every: float = 1.0, live: bool = True, file=None):
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be in [0, 1), not {smoothing}")
        self.smoothing, self.every, self.live, self.file = smoothing, every, live, file
        self.points = defaultdict(list)  # (name, run) -> [(step, value)]
        self.shown, self.handle = -float("inf"), None

    def log(self, step, run: str = "", **values) -> None:
        """Add a point to each named curve; a value is a number or a tensor of one element."""
        for name, value in values.items():
            self.points[name, run].append((step, float(value)))
        if self.live and time.monotonic() - self.shown >= self.every:
            self.show()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.live:
            self.show()

    # ---- showing -----------------------------------------------------------------------------

    def show(self) -> None:
        """Show the present state: update the picture in a notebook, else print a line."""
        if not in_notebook():
            print(self, file=self.file or sys.stdout)
        elif self.handle is None:
            from IPython.display import display

            self.handle = display(self.picture(), display_id=True)
        else:
            self.handle.update(self.picture())
        self.shown = time.monotonic()

    @property
    def text(self) -> str:
        lines = []
        for run in dict.fromkeys(run for _, run in self.points):
            series = {name: points for (name, r), points in self.points.items() if r == run}
            step = max(points[-1][0] for points in series.values())
            parts = [f"{run}: step {step}" if run else f"step {step}"]
            for name, points in series.items():
                values = self.smooth([v for _, v in points])
                parts.append(f"{name} {values[-1]:.4g} {sparkline(values)}")
            lines.append("  ".join(parts))
        return "\n".join(lines) or "no curves yet"

    def rich(self) -> dict:
        return self.picture().rich()

    def picture(self) -> Picture:
        """A panel for each name, a line for each run."""
        names = list(dict.fromkeys(name for name, _ in self.points)) or [""]
        runs = list(dict.fromkeys(run for _, run in self.points))
        panels = []
        for name in names:
            held = [(k, run) for k, run in enumerate(runs) if (name, run) in self.points]
            lines = [line for k, run in held for line in self.lines(self.points[name, run], run, k)]
            labels = {"xlabel": "step", "title": name}
            panels.append(Panel(lines=lines, axes=labels))
        return chart((4.5 * len(names), 3), panels, str(self), columns=len(names))

    def lines(self, points, run: str, k: int) -> Iterator[PolyLine]:
        """A line, smoothed, and its raw points behind it."""
        steps, values = zip(*points)
        colour, style = COLOURS[k % len(COLOURS)], STYLES[k % len(STYLES)]
        if self.smoothing:
            yield PolyLine(steps, values, colour, {"alpha": 0.25})
        marker = "o" if len(points) == 1 else None
        look = {"linestyle": style, "label": run or None, "marker": marker}
        yield PolyLine(steps, self.smooth(values), colour, look)

    def smooth(self, values) -> list[float]:
        """The exponential moving average, its start corrected as in Adam (Kingma and Ba, 2015).

        A nan or an infinity stays where it is and does not spread.
        """
        out, mean, weight = [], 0.0, 0.0
        for v in values:
            if not math.isfinite(v):
                out.append(v)
                continue
            mean = self.smoothing * mean + (1 - self.smoothing) * v
            weight = self.smoothing * weight + 1 - self.smoothing
            out.append(mean / weight)
        return out

    def callback(self, run: str = "", prefix: str = "") -> Callback:
        """A callback for `paddle.Model.fit` that logs what each batch and evaluation reports.

        Source: Paddle API `paddle.callbacks.Callback`.
        """
        return FitCurves(self, run, prefix)


class FitCurves(Callback):
    """Logs the reports of `paddle.Model.fit` to curves."""

    def __init__(self, curves: Curves, run: str, prefix: str):
        super().__init__()
        self.curves, self.run, self.prefix = curves, run, prefix
        self.step = 0

    def on_train_batch_end(self, step, logs=None):
        self.step += 1
        self.log(self.prefix, logs)

    def on_eval_end(self, logs=None):
        self.log(f"{self.prefix}eval ", logs)

    def on_train_end(self, logs=None):
        if self.curves.live:
            self.curves.show()

    def log(self, prefix: str, logs) -> None:
        values = {prefix + name: value for name, value in numbers(logs or {}).items()}
        self.curves.log(self.step, run=self.run, **values)


def numbers(logs: dict) -> dict[str, float]:
    """The numbers among reports; `fit` gives losses as lists, of which a single one counts."""
    single = {
        k: v[0] if isinstance(v, list | tuple) and len(v) == 1 else v for k, v in logs.items()
    }
    kept = single.keys() - {"step", "batch_size"}
    return {k: v for k, v in single.items() if k in kept and isinstance(v, int | float)}


def sparkline(values, width: int = 24) -> str:
    """Numbers as small bars; the mean of several where there are more than fit."""
    n = min(width, len(values))
    cuts = [round(k * len(values) / n) for k in range(n + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(cuts)]
    finite = [v for v in means if math.isfinite(v)]
    if not finite:
        return "!" * n
    low, high = min(finite), max(finite)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0
    return "".join(BARS[int((v - low) * scale)] if math.isfinite(v) else "!" for v in means)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def tuning(tuned: Tuned) -> Picture:
    """The best time so far of each kernel that was searched, as a part of its default's.

    Flat at 1: nothing was faster than the default. Of many kernels only those with the most
    trials are drawn.

    >>> from minipaddle import viz
    >>> from minipaddle.tuning import Tuned
    >>> print(viz.tuning(Tuned(None, [], 2.0, 1.0, 2, {"k0_add": [1.25, 0.5]})))
    k0_add: step 2  part of the default's time 0.5 ██▁
    """
    curves = Curves(live=False)
    searched = [kernel for kernel, curve in tuned.curves.items() if curve]
    dearest = sorted(searched, key=lambda kernel: -len(tuned.curves[kernel]))
    for kernel in dearest[: len(COLOURS)]:
        for trial, best in enumerate(tuned.best_so_far(kernel)):
            curves.log(trial, run=kernel, **{"part of the default's time": best})
    return curves.picture()
