"""A compiled program: its C, the time each kernel takes, and how the first step spent its time."""

from itertools import groupby
from typing import NamedTuple

from ..core.display import Display, TableDisplay, make_table
from ..engine.codegen.step import refusal
from ..engine.core.errors import teach
from ..engine.eager.device import NUMPY
from ..executors.native.timing import add_timers
from ..nn.layer.tree import layer_name, layers_of
from .chart import Bar, Panel, Picture, chart
from .markup import write_code
from .records import name_lines, short
from .style import GREY, LOOKS, count
from .target import executable_of, forward_of

MOST = 24
"""How many kernels, the slowest, have a bar."""


def source(target, kernel: str = "") -> "GeneratedCode":
    """The C (or CUDA) of a program, highlighted in a notebook.

    `target` is an executable, or a function that `to_static` compiled (`backend="native"`) when it
    was called. `kernel` picks the functions whose names contain it. Raises TypeError if nothing was
    compiled, KeyError if no kernel is called so.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static(backend="native")
    ... def f(x):
    ...     return paddle.tanh(x) * 2
    >>> y = f(paddle.ones([3]))
    >>> "tanhf(" in str(viz.source(f))
    True
    """
    executable = executable_of(target)
    if not kernel:
        generated = getattr(executable, "source", None)
        return GeneratedCode(generated.own if generated is not None else executable.kernels.text)
    named = executable.kernels.texts
    chosen = {name: text for name, text in named.items() if kernel in name}
    if not chosen:
        known = ", ".join(named)
        raise KeyError(teach(f"no kernel {kernel!r}", expected=known))
    return GeneratedCode("\n".join(chosen.values()))


class GeneratedCode(Display):
    """C as text; highlighted in a notebook."""

    def __init__(self, text: str):
        self.text = text

    def html(self) -> str:
        return write_code(self.text, "c")


# ---- times -----------------------------------------------------------------------------------


def kernels(target, runs: int = 20) -> Picture:
    """How long each kernel of a compiled program takes, and the user's lines that are in it: a bar
    for each of the slowest.

    The program is compiled again with clocks in it and run on sample numbers, so its states stay
    as they are. Takes the same targets as `viz.source`, on the CPU.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static(backend="native")
    ... def f(x):
    ...     return paddle.tanh(x) * 2
    >>> y = f(paddle.ones([3]))
    >>> print(str(viz.kernels(f)).splitlines()[1].partition("µs")[2].strip())
    k0_multiply  <doctest minipaddle.viz.compiled.kernels[1]>:3
    """
    twin = add_timers(executable_of(target))
    inputs = twin.program.given[: len(twin.program.given) - len(twin.weights.arrays)]
    arrays = [sample_input(r.spec) for r in inputs]
    twin(twin.program, arrays)
    warm = [seconds for seconds, _ in twin.times()]
    for _ in range(runs):
        twin(twin.program, arrays)
    times = [((t - w) / runs, r) for (t, r), w in zip(twin.times(), warm, strict=True)]
    return draw_bars(twin, sorted(times, key=lambda each: -each[0]))


def sample_input(spec):
    """Numbers from 0 to 1; whole ones are 0, which is an index everywhere."""
    integral = spec.dtype.kind != "f"
    flat = NUMPY.zeros(spec.size) if integral else NUMPY.linspace(0.1, 0.9, spec.size)
    return flat.astype(spec.dtype).reshape(spec.shape)


def draw_bars(twin, times) -> Picture:
    shown, total = times[:MOST], sum(t for t, _ in times) or 1.0
    bars, names = [], [name_of(twin, r) for _, r in shown]
    for row, (t, r) in enumerate(shown):
        where = " / ".join(map(layer_name, layers_of(r.scope)))
        colour = LOOKS[r.op.kind if r.op.kind in LOOKS else "group"].fill
        parts = f"{100 * t / total:.0f} %", where, short(name_lines(r))
        label = " " + "  ".join(filter(None, parts))
        bars.append(Bar.in_row(row, 0, t * 1e6, colour, label, "end", edgecolor=GREY))
    axes = {"xlabel": "µs a run", "xlim": (0, 1.35e6 * shown[0][0] + 1e-9)}
    lines = [f"{len(times)} kernels, {total * 1e6:.1f} µs a run"]
    for (t, r), name in zip(shown, names, strict=True):
        lines.append(f"{t * 1e6:10.1f} µs  {name}  {name_lines(r)}".rstrip())
    panel = Panel(bars, lines[0], names, axes=axes)
    return chart((8, 1.0 + 0.24 * len(shown)), [panel], "\n".join(lines))


def name_of(twin, record) -> str:
    """The C function of a record; an operator that the host computes has none."""
    kernel = twin.kernels.of.get(record)
    return f"{record.op.name}, by the host: {refusal(record)}" if kernel is None else kernel.name


# ---- the first step ----------------------------------------------------------------------------

LEAST = 0.02
"""The share of the total from which on a pass has a line of its own."""

NAMES = 4
"""How many kernels of a part are named."""


class FirstStepStage(NamedTuple):
    """A line: `inside` are the seconds of a part of the stage above it."""

    name: str
    seconds: float | None
    inside: float | None = None
    note: str = ""

    def cells(self, total: float) -> tuple:
        if self.seconds is None:
            ms = "" if self.inside is None else f"{self.inside * 1e3:.1f}"
            return f"  {self.name}", ms, "", self.note
        share = f"{100 * self.seconds / total:.0f}"
        return self.name, f"{self.seconds * 1e3:.1f}", share, self.note


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
    last = getattr(forward_of(target), "concrete_program", None)
    return FirstStep(executable_of(target), last.miss.seconds if last else None)


class FirstStep(TableDisplay):
    """The stages of a first step as a table."""

    def __init__(self, executable, trace: float | None):
        known = {"trace": trace} if trace is not None else {}
        seconds = known | executable.seconds
        self.total = sum(seconds.values())
        inside = {"passes": self.passes(executable), "compilation": list_files(executable.source)}
        self.stages: list[FirstStepStage] = []
        for name, spent in seconds.items():
            self.stages.append(FirstStepStage(name, spent, note=note_on(name, executable)))
            self.stages += inside.get(name, [])

    def passes(self, executable) -> list[FirstStepStage]:
        """The passes that took long, and the time of the others with the checks between them."""
        named = sorted(executable.snapshots, key=lambda s: s.name)
        spent = {k: sum(s.seconds for s in g) for k, g in groupby(named, lambda s: s.name)}
        slow = {k: s for k, s in spent.items() if s > LEAST * self.total}
        rest = executable.seconds["passes"] - sum(spent.values())
        few = sum(spent.values()) - sum(slow.values())
        rows = sorted(slow.items(), key=lambda pair: -pair[1])
        others = f"{len(spent) - len(slow)} other passes"
        rows += [(others, few), ("checks of programs", rest)]
        return [FirstStepStage(name, None, seconds) for name, seconds in rows]

    def table(self):
        rows = (stage.cells(self.total) for stage in self.stages)
        title = f"first step: {self.total * 1e3:.0f} ms"
        return make_table(title, ("stage", "ms", "%", ""), rows, words=("",))


def note_on(name: str, executable) -> str:
    """Further facts of a stage."""
    source = executable.source
    if name == "kernels":
        return f"{count(len(source.kernels.texts), 'kernel')}"
    if name == "C file":
        return f"{count(len(source.text.splitlines()), 'line')}"
    if name != "compilation":
        return ""
    files = sum(not part.cached for part in source.parts)
    return count(files, "file") if source.parts else "the library was in the cache"


def list_files(source) -> list[FirstStepStage]:
    """The files of a program that was compiled in parts, with the names of their kernels."""
    written = [part for part in source.parts if part.seconds is not None or part.cached]
    names = {True: "from the cache", False: "file"}
    return [FirstStepStage(names[p.cached], None, p.seconds, name_kernels(p)) for p in written]


def name_kernels(part) -> str:
    names, more = part.names[:NAMES], len(part.names) - NAMES
    return ", ".join([*names, f"{more} more"] if more > 0 else names)
