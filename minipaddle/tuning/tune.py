"""`paddle.tune`: measure other ways to write a program's kernels, and keep the faster ones."""

from contextlib import contextmanager

from numpy.random import default_rng

from ..executors.native.trials import Trial
from .proof import keep, prove
from .result import Tuned, TunedKernel
from .search import Search, TuningTask
from .target import targets_of


def tune(function, *inputs, trials: int = 64, seed: int = 0, progress: bool = True) -> Tuned:
    """Search for faster ways to write the kernels of a compiled function, for about `trials`
    measurements; what is faster is used from now on, in later processes too.

    `function` is one that `to_static(backend="native")` made, or a plain one, which it then becomes
    (`.function` of the result); `inputs` are arguments for it. They may be left out if it was
    called before. A backward that the tape will call is tuned too; within `paddle.no_grad()` it is
    what runs at inference, with weights that are prepared before. Nothing is changed: parameters,
    buffers and random numbers stay as they are.
    Each kernel is measured on the values it meets, must compute what the default computes, and is
    taken only if the whole program, run in turn with and without it, is faster. Interrupting
    (Ctrl-C) ends the search early and keeps what was found. MINIPADDLE_TUNED=0, or a strategy
    {"tuned": False}, compiles without it. Raises ValueError if there is no native program.
    Source: Chen and others, Learning to Optimize Tensor Programs (2018).

    >>> f = paddle.jit.to_static(lambda x: (x @ x).sum(), backend="native")
    >>> found = paddle.tune(f, paddle.ones([64, 64]), trials=2, progress=False)
    >>> found.trials
    2
    """
    targets = targets_of(function, inputs)
    search, stopped = Search(targets, default_rng(seed)), False
    try:
        with bar(trials if progress else 0) as advance:
            search.run(trials, advance)
    except KeyboardInterrupt:
        stopped = True
    best = {t.signature: t.best for t in search.tasks if t.best}
    kept, before, after = prove(targets, search.defaults, best)
    keep(kept, [t.signature for t in search.tasks])
    for target in targets:
        target.renew()
    rows = [row_of(task, kept.get(task.signature)) for task in search.tasks]
    return Tuned(targets[0].function, rows, before, after, search.spent, search.curves, stopped)


@contextmanager
def bar(total: int):
    """A progress bar: a function to call with the number of new trials and a text."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console()
    seen = bool(total) and (console.is_terminal or console.is_jupyter)
    ends = TextColumn("tuning"), TextColumn("{task.description}")
    columns = ends[0], BarColumn(30), MofNCompleteColumn(), ends[1]
    with Progress(*columns, console=console, disable=not seen) as progress:
        task = progress.add_task("", total=total)
        yield lambda count, text: progress.update(task, advance=count, description=text)


def row_of(task: TuningTask, trial: Trial | None) -> TunedKernel:
    """The row of a kernel in the result, changed or not."""
    if trial is None:
        return TunedKernel(task.name, task.seconds, task.seconds, {})
    default = task.space.default
    differs = {n: x for n, x in trial.choices.items() if default.get(n, ...) != x}
    return TunedKernel(task.name, trial.default, trial.seconds, differs)
