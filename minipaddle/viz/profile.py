"""Where time is spent: every operator, timed as it is applied, by kind, phase and layer."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from ..core.display import TableDisplay, make_table
from ..eager.devices import synchronize
from ..engine.core.dispatch import Interpreter, current
from ..engine.core.record import Spec, owner
from ..engine.eager.device import current_place
from ..engine.eager.tensor import Tensor
from ..nn.layer.tree import layer_name, layers_of, path_of
from .chart import Bar, Panel, chart
from .proxy_interpreter import ProxyInterpreter, forward
from .style import LOOKS, bytes_text
from .tape import tensors_in

PHASES = ("forward", "backward", "no grad")
"""The purpose of a call; `no grad` is evaluation, and an optimizer's step."""


class Event(NamedTuple):
    """One application of an operator. Times in nanoseconds."""

    name: str
    phase: str
    scope: tuple | None  # the layer call, as records keep it
    start: int
    end: int
    inside: int  # of it, in the array library: the operator's body
    outputs: tuple[Spec, ...]
    allocated: int  # bytes of results that are no views of inputs

    @property
    def own(self) -> int:
        return self.end - self.start


class Profiler(ProxyInterpreter):
    """Passes everything on to the interpreter below, and times it."""

    def __init__(self, below: Interpreter):
        super().__init__(below)
        self.events: list[Event] = []
        self.inside = 0

    scope = forward("scope")

    def apply(self, op, inputs, attrs):
        y, event = self.time_call(op.name, self.below.apply, op, inputs, attrs)
        inputs_memory = {id(owner(x.array)) for x in inputs if isinstance(x, Tensor)}
        results = tensors_in(y)
        new = {id(owner(t.array)): t.array.nbytes for t in results}  # views of one count once
        specs = tuple(t.spec for t in results)
        size = sum(n for memory, n in new.items() if memory not in inputs_memory)
        self.events.append(event(specs, size))
        return y

    def quietly(self, run, program, *arguments):
        """A program runs: one event, as if it were an operator; `viz.kernels` has its kernels."""
        results, event = self.time_call(program.name, self.below.quietly, run, program, *arguments)
        arrays = results[0][: len(program.outputs)]
        specs = tuple(Spec(array.shape, array.dtype) for array in arrays)
        self.events.append(event(specs, sum(array.nbytes for array in arrays)))
        return results

    def time_call(self, name: str, call, *arguments):
        """The result of a call, and an Event that lacks the sizes of the results."""
        record = self.passing
        phase = "backward" if record is not None else "forward" if self.recording else "no grad"
        scope = self.scope if record is None else record.scope
        self.inside = 0
        start = perf_counter_ns()
        y = call(*arguments)
        end = perf_counter_ns()
        return y, partial(Event, name, phase, scope, start, end, self.inside)

    def time_run(self, run):
        """`run` (which executes a body), with its time added to `inside`."""

        def call(function, *args, **kwargs):
            start = perf_counter_ns()
            try:
                result = run(function, *args, **kwargs)
                if current_place().kind != "cpu":
                    synchronize()
                return result
            finally:
                self.inside += perf_counter_ns() - start

        return call


COLUMNS = {"calls": ",", "self ms": ".3f", "share": ".1%", "inside": ".3f", "overhead": ".3f"}
"""The heads of the first columns, and how their numbers are written."""


class ProfileRow(NamedTuple):
    """One line of the table; times in milliseconds."""

    name: str
    calls: int
    own: float
    share: float  # of the time in all operators
    inside: float
    overhead: float
    phases: dict[str, float]
    outputs: int
    allocated: int


class profile(TableDisplay):
    """Time every operator that this thread applies in the block, by name, phase and layer.

    `p.table()` is a table (`p.table("layer")` by layer), `p.flame()` a flame chart,
    `p.chrome_trace(path)` a file for chrome://tracing and Perfetto. `inside` is time in the array
    library, `overhead` what MiniPaddle adds. Outside the block nothing is slower.

    >>> from minipaddle import viz
    >>> x = paddle.ones([2, 2])
    >>> with viz.profile() as p:
    ...     y = paddle.tanh(x) + paddle.tanh(x)
    >>> [(row.name, row.calls) for row in sorted(p.rows())]
    [('add', 1), ('tanh', 2)]
    """

    def __init__(self):
        self.profiler = None
        self.start = self.end = 0

    def __enter__(self):
        below = current.top
        self.profiler = Profiler(below)
        self.events = self.profiler.events
        self.run = getattr(below, "quietly", None)
        if self.run is not None:
            below.quietly = self.profiler.time_run(self.run)
        current.top = self.profiler
        self.start = perf_counter_ns()
        return self

    def __exit__(self, *exc):
        self.end = perf_counter_ns()
        below = current.top = self.profiler.below
        if self.run is not None:
            below.quietly = self.run

    @property
    def wall(self) -> float:
        """Milliseconds from the block's beginning to its end."""
        return (self.end - self.start) / 1e6

    @property
    def busy(self) -> float:
        """Milliseconds in operators."""
        return sum(e.own for e in self.events) / 1e6

    def rows(self, by: str = "operator") -> list[ProfileRow]:
        """The lines of the table, the most expensive first; `by` is "operator" or "layer"."""
        if by not in ("operator", "layer"):
            raise ValueError(f'a profile is by "operator" or "layer", not by {by!r}')
        groups = defaultdict(list)
        for e in self.events:
            groups[e.name if by == "operator" else path_of(e.scope) or "(no layer)"].append(e)
        busy = self.busy or 1.0
        rows = [row_of(name, events, busy) for name, events in groups.items()]
        return sorted(rows, key=lambda row: -row.own)

    # ---- to look at --------------------------------------------------------------------------

    def table(self, by: str = "operator"):
        """The profile as a `rich` table: coloured in a terminal, HTML in a notebook."""
        rows = self.rows(by)
        phases = [p for p in PHASES if any(p in row.phases for row in rows)]
        title = f"{self.busy:.2f} ms in operators, of {self.wall:.2f} ms"
        head = (by, *COLUMNS, *phases, "output", "new")
        return make_table(title, head, (cells(row, phases) for row in rows))

    def flame(self):
        """A flame chart: time to the right, layers in layers, operators at the tips."""
        bars, spans = [], list_spans(self.events)
        levels = 1 + max((span.level for span in spans), default=0)
        for span in spans:
            start, wide = (span.start - self.start) / 1e6, (span.end - span.start) / 1e6
            text = fit_name(span.name, wide / self.wall)
            look = {"high": 0.94, "edgecolor": "white", "linewidth": 0.3}
            bars.append(Bar.in_row(span.level, start, wide, COLOURS[span.kind], text, **look))
        kinds = {span.kind for span in spans}
        shown = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
        axes = {"xlim": (0, self.wall), "xlabel": "milliseconds"}
        text = f"flame chart: {len(self.events):,} operators in {self.wall:.2f} ms"
        panel = Panel(bars, "", levels, axes=axes)
        return chart((10, 1.2 + 0.45 * levels), [panel], text, colours=shown)

    def chrome_trace(self, path):
        """Write a trace that chrome://tracing and https://ui.perfetto.dev open; returns the path.

        Complete ("X") events, times in microseconds. Source: "Trace Event Format", the Chromium
        project.
        """
        thread = {"pid": os.getpid(), "tid": 1}

        def complete(name, category, start, end, args):
            times = {"ts": (start - self.start) / 1e3, "dur": (end - start) / 1e3}
            return {"name": name, "cat": category, "args": args, "ph": "X"} | thread | times

        spans = (s for s in list_spans(self.events) if s.kind == "layer")
        layers = [complete(s.name, s.kind, s.start, s.end, {}) for s in spans]
        operators = [
            complete(e.name, e.phase, e.start, e.end, {
                "layer": path_of(e.scope),
                "output": ", ".join(map(str, e.outputs)),
                "inside_us": e.inside / 1e3,
                "allocated_bytes": e.allocated,
            })
            for e in self.events
        ]  # fmt: skip
        named = {"ph": "M", "ts": 0, "name": "thread_name", "args": {"name": "operators"}}
        trace = {"traceEvents": [named | thread, *layers, *operators], "displayTimeUnit": "ms"}
        path = Path(path)
        path.write_text(json.dumps(trace), encoding="utf-8")
        return path


def row_of(name: str, events, busy: float) -> ProfileRow:
    phases = defaultdict(float)
    for e in events:
        phases[e.phase] += e.own / 1e6
    own, inside = sum(phases.values()), sum(e.inside for e in events) / 1e6
    sizes = sum(s.nbytes for e in events for s in e.outputs), sum(e.allocated for e in events)
    return ProfileRow(name, len(events), own, own / busy, inside, own - inside, phases, *sizes)


def cells(row: ProfileRow, phases) -> list[str]:
    """A row as text."""
    numbers = [format(value, how) for value, how in zip(row[1:], COLUMNS.values())]
    times = [f"{row.phases[p]:.3f}" if p in row.phases else "" for p in phases]
    return [row.name, *numbers, *times, bytes_text(row.outputs), bytes_text(row.allocated)]


# ---- along time --------------------------------------------------------------------------------

COLOURS = {
    "layer": LOOKS["layer"].fill,
    "forward": LOOKS["input"].fill,
    "backward": LOOKS["parameter"].fill,
    "no grad": LOOKS["constant"].fill,
}


class FlameSpan(NamedTuple):
    """A stretch of time: an operator, or a layer at work. Times in nanoseconds."""

    name: str
    kind: str  # "layer", or the operator's phase
    level: int
    start: int
    end: int


def list_spans(events) -> list[FlameSpan]:
    """Every operator, and above it the layers: neighbours in one call of a layer are one span."""
    return list(nest_spans(sorted(events, key=lambda e: e.start), 0))


def nest_spans(events, level: int) -> Iterator[FlameSpan]:
    """The spans of events that share their layers above `level`."""

    def call(e):
        layers = layers_of(e.scope)
        return (id(layers[level]), e.phase) if len(layers) > level else None

    for key, group in groupby(events, call):
        inside = list(group)
        if key is None:
            yield from (FlameSpan(e.name, e.phase, level, e.start, e.end) for e in inside)
        else:
            first, end = inside[0], max(e.end for e in inside)
            name = layer_name(layers_of(first.scope)[level])
            yield FlameSpan(name, "layer", level, first.start, end)
            yield from nest_spans(inside, level + 1)


def fit_name(name: str, share: float) -> str:
    """The name in one line, or its words one below the other, if a bar of that share has room.

    Empty if it has not.
    """
    for text in (name, name.replace("_", "\n")):
        lines = text.split("\n")
        if max(map(len, lines)) * 0.0095 < share and len(lines) < 5:
            return text
    return ""
