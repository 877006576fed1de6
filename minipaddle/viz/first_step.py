"""Where the time of a compiled program's first step goes."""

from itertools import groupby
from typing import NamedTuple

from ..core.shown import ShownTable
from .style import count
from .target import executable_of, forward_of

LEAST = 0.02
"""The share of the total from which on a pass has a line of its own."""

NAMES = 4
"""How many kernels of a part are named."""


class Stage(NamedTuple):
    """A line: `inside` are the seconds of a part of the stage above it."""

    name: str
    seconds: float | None
    inside: float | None = None
    note: str = ""


def first_step(target) -> "FirstStep":
    """Where the time of the first step went: the trace, passes, C, its compilation, the first run.

    Passes that took less than 2 % are added up. The parts of a C file are compiled at the same
    time: their seconds may be more than those of the compilation. Units that an earlier program
    has compiled were only linked. Takes the same targets as `viz.source`, on the CPU; an executable
    by itself does not know its trace.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static(backend="native")
    ... def f(x):
    ...     return paddle.tanh(x) * 2
    >>> y = f(paddle.ones([3]))
    >>> [stage.name for stage in viz.first_step(f).stages if stage.inside is None]
    ['trace', 'passes', 'kernels', 'plan', 'C file', 'compilation', 'load', 'first run']
    """
    return FirstStep(executable_of(target), traced(forward_of(target)))


def traced(target) -> float | None:
    """The seconds that it took to write the last program of a static function."""
    last = getattr(target, "concrete_program", None)
    return last.miss.seconds if last else None


class FirstStep(ShownTable):
    """The stages of a first step as a table."""

    def __init__(self, executable, trace: float | None):
        known = {"trace": trace} if trace is not None else {}
        seconds = known | executable.seconds
        self.total = sum(seconds.values())
        inside = {"passes": self.passes(executable), "compilation": parts(executable.source)}
        self.stages: list[Stage] = []
        for name, spent in seconds.items():
            self.stages.append(Stage(name, spent, note=note(name, executable)))
            self.stages += inside.get(name, [])

    def passes(self, executable) -> list[Stage]:
        """The passes that took long, and what the others took with the checks between them."""
        named = sorted(executable.snapshots, key=lambda s: s.name)
        spent = {k: sum(s.seconds for s in g) for k, g in groupby(named, lambda s: s.name)}
        slow = {k: s for k, s in spent.items() if s > LEAST * self.total}
        rest = executable.seconds["passes"] - sum(spent.values())
        few = sum(spent.values()) - sum(slow.values())
        rows = sorted(slow.items(), key=lambda pair: -pair[1])
        others = f"{len(spent) - len(slow)} other passes"
        rows += [(others, few), ("checks of programs", rest)]
        return [Stage(name, None, seconds) for name, seconds in rows]

    def table(self):
        from rich.table import Table

        table = Table("stage", title=f"first step: {self.total * 1e3:.0f} ms", title_justify="left")
        for name in ("ms", "%", ""):
            table.add_column(name, justify="right" if name else "left")
        for name, seconds, inside, note in self.stages:
            if seconds is None:
                ms = "" if inside is None else f"{inside * 1e3:.1f}"
                table.add_row(f"  {name}", ms, "", note)
            else:
                share = f"{100 * seconds / self.total:.0f}"
                table.add_row(name, f"{seconds * 1e3:.1f}", share, note)
        return table


def note(name: str, executable) -> str:
    """What else there is to say of a stage."""
    source = executable.source
    if name == "kernels":
        return f"{count(len(source.kernels.texts), 'kernel')}"
    if name == "C file":
        return f"{count(len(source.text.splitlines()), 'line')}"
    if name != "compilation":
        return ""
    files = sum(not part.cached for part in source.parts)
    return count(files, "file") if source.parts else "the library was in the cache"


def parts(source) -> list[Stage]:
    """The files of a program that was compiled in parts, with the names of their kernels."""
    made = [part for part in source.parts if part.seconds is not None or part.cached]
    return [
        Stage("from the cache" if p.cached else "file", None, p.seconds, named(p)) for p in made
    ]


def named(part) -> str:
    names, more = part.names[:NAMES], len(part.names) - NAMES
    return ", ".join([*names, f"{more} more"] if more > 0 else names)
