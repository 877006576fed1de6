"""A scoreboard: one step compiled in several ways, and the cost of each."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import NamedTuple

from ..engine.core.errors import runtime_error
from ..engine.core.slots import plugged
from ..engine.eager.device import NUMPY
from ..engine.executors.native import Executable
from ..engine.ir.program import Program
from ..engine.passes.buffer_assignment import bytes_text
from ..engine.passes.manager import figures
from ..tuning.measure import clock
from ..viz.chart import Bar, Panel, Picture, chart

COLOURS = {"reference": "#9d9d9d", "yours": "#009e73", "naive": "#d55e00"}
OTHERS = "#56b4e9"


class Score(NamedTuple):
    """The cost of one way to compile a step. `traffic` are the bytes that its kernels read and
    write, each operand and each result of a kernel once; `arena` is the memory of a run; `right`:
    are its results those of the reference?
    """

    kernels: int
    traffic: int
    arena: int
    seconds: float
    right: bool


def scoreboard(step, *, rounds: int = 15, **contenders) -> "Scoreboard":
    """Kernels, bytes, memory and time of a step that is compiled in several ways.

    `step` is a function of `to_static(backend="native")` that was called once; what it was called
    with is what all are run on, in turns. A contender is a dict of what is different: slots with
    what is plugged into them (`{"passes.cse": mine}`) and options of the strategy
    (`{"fusion": False}`); or the name of a chapter, which means every exercise that the reader has
    solved, as in `learn.mine`. The engine as it is takes part as `reference`. Seconds are medians.
    Raises RuntimeError if the step has no native program.

    >>> from minipaddle import learn
    >>> @paddle.jit.to_static(backend="native")
    ... def step(x):
    ...     return (x * 2.0).tanh() + x
    >>> y = step(paddle.ones([64, 64]))
    >>> found = learn.scoreboard(step, naive={"fusion": False}).scores
    >>> {name: (score.kernels, score.traffic) for name, score in found.items()}
    {'naive': (3, 114688), 'reference': (1, 32768)}
    """
    program, strategy, arrays = last_call(step)
    executables = {}
    for name, different in {**contenders, "reference": {}}.items():
        with apply_changes(different) as options:
            executables[name] = Executable(program, {**strategy, **options})
    calls = {
        name: partial(executable, program, [a.copy() for a in arrays])
        for name, executable in executables.items()
    }
    first = {name: [a.copy() for a in call()] for name, call in calls.items()}
    seconds = measure_in_turn(calls, rounds)
    scores = {}
    for name, executable in executables.items():
        right = all(map(close, first[name], first["reference"]))
        _, kernels, traffic, _ = figures(executable.program)
        scores[name] = Score(kernels, traffic, executable.plan.size, seconds[name], right)
    return Scoreboard(scores)


def last_call(step) -> tuple[Program, dict, list]:
    """The program of a step before the passes, its strategy, and the arrays of its last call."""
    native = [e for e in getattr(step, "executables", ()) if isinstance(e, Executable)]
    if not native or native[-1].last is None:
        hint = 'call it once, with backend="native"'
        raise runtime_error("this step has no native program", hint=hint)
    executable = native[-1]
    program = executable.snapshots[0].before
    strategy = getattr(step.build_strategy, "chosen", step.build_strategy) or {}
    return program, strategy, executable.last.used[: len(program.given)]


@contextmanager
def apply_changes(different: dict | str):
    """Run the block with the slots of a contender; yields its options."""
    with ExitStack() as stack:
        if isinstance(different, str):
            from .report import mine

            stack.enter_context(mine(different))
            different = {}
        stack.enter_context(plugged({k: v for k, v in different.items() if "." in k}))
        yield {k: v for k, v in different.items() if "." not in k}


def close(a, b) -> bool:
    """Whether two results are the same but for the order of sums."""
    a, b = (x.astype("float64") if x.dtype.kind in "fV" else x for x in (a, b))
    return bool(NUMPY.allclose(a, b, rtol=2e-3, atol=1e-4, equal_nan=True))


def measure_in_turn(calls: dict, rounds: int) -> dict[str, float]:
    """Median seconds of each; they take turns, so that a busy moment hits all alike."""
    times: dict[str, list] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = clock()
            call()
            times[name].append(clock() - began)
    return {name: median(t) if t else 0.0 for name, t in times.items()}


class Scoreboard(Picture):
    """`scores` by contender; in a notebook bars, elsewhere a table."""

    def __init__(self, scores: dict[str, Score]):
        self.scores = scores
        size, text = (10, 0.9 + 0.34 * len(scores)), format_table(scores)
        super().__init__(chart(size, draw_charts(scores), text, columns=4).page, text)


def format_table(scores: dict[str, Score]) -> str:
    """A line for each contender."""
    least = scores["reference"].seconds or 1.0
    rows = [f"{'':<12} {'kernels':>8} {'bytes':>11} {'arena':>11} {'time':>11}"]
    for name, s in scores.items():
        time_text = f"{s.seconds * 1e3:.3f} ms ({s.seconds / least:.2f} ×)"
        wrong = "" if s.right else "  wrong results"
        moved, arena = bytes_text(s.traffic), bytes_text(s.arena)
        rows.append(f"{name:<12} {s.kernels:>8} {moved:>11} {arena:>11}  {time_text}{wrong}")
    return "\n".join(rows)


CHARTS = {
    "kernels": lambda s: (s.kernels, str(s.kernels)),
    "bytes read and written": lambda s: (s.traffic, bytes_text(s.traffic)),
    "arena": lambda s: (s.arena, bytes_text(s.arena)),
    "time": lambda s: (s.seconds, f"{s.seconds * 1e3:.2f} ms"),
}


def draw_charts(scores: dict[str, Score]) -> Iterator[Panel]:
    """Four charts side by side, a bar for each contender; hatched if its results are wrong."""
    names = [n if s.right else f"{n} (wrong)" for n, s in scores.items()]
    for title, of in CHARTS.items():
        bars = []
        for row, (name, score) in enumerate(scores.items()):
            value, label = of(score)
            look = {} if score.right else {"hatch": "//", "edgecolor": "white"}
            colour = COLOURS.get(name, OTHERS)
            bars.append(Bar.in_row(row, 0, value, colour, f" {label}", "end", **look))
        axes = {"xlim": (0, 1.6 * (max(bar.wide for bar in bars) or 1)), "xticks": []}
        yield Panel(bars, title, names, axes=axes)
        names = len(names) * [""]
