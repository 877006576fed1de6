"""The result of a search, to look at."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.display import TableDisplay, make_table


class TunedKernel(NamedTuple):
    """A kernel: its seconds in a step by default and now, and the choices that differ."""

    kernel: str
    default: float
    tuned: float
    choice: dict


@dataclass
class Tuned(TableDisplay):
    """The result of `paddle.tune`: prints as a table; `viz.tuning` draws how it was found.

    `before` and `after` are the seconds of a step (medians of runs in turn); `curves` hold for each
    kernel the part of the default's time that each trial took, in order (inf: it was wrong).
    """

    function: object
    rows: list[TunedKernel]
    before: float
    after: float
    trials: int
    curves: dict[str, list[float]] = field(repr=False)
    stopped: bool = False
    width = 100

    def best_so_far(self, kernel: str) -> list[float]:
        """The least part of the default's time after each trial; it starts at the default's, 1."""
        best = [1.0]
        for time in self.curves[kernel]:
            best.append(min(best[-1], time))
        return best

    def table(self):
        """The result as a `rich` table."""
        title = f"{self.before * 1e3:.3f} → {self.after * 1e3:.3f} ms a step, {self.trials} trials"
        head, rows = ("kernel", "default µs", "tuned µs", "choice"), []
        for row in self.rows:
            choices = ", ".join(f"{name} {x}" for name, x in row.choice.items()) or "default"
            times = f"{row.default * 1e6:.1f}", f"{row.tuned * 1e6:.1f}"
            rows.append((row.kernel, *times, choices))
        return make_table(title + " (stopped)" * self.stopped, head, rows, ("choice",))
