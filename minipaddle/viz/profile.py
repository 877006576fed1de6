"""Where time is spent: every operator, timed as it is applied, by kind, phase and layer."""

from collections import defaultdict
from time import perf_counter_ns
from typing import NamedTuple

from ..core.shown import ShownTable
from ..eager.devices import synchronize
from ..engine.core.dispatch import Interpreter, current
from ..engine.core.record import Spec, owner
from ..engine.eager.device import current_place
from ..engine.eager.tensor import Tensor
from ..nn.layer.tree import path_of
from .flame import chrome_trace, flame
from .passthrough import PassThrough, forward
from .style import bytes_text
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
    allocated: int  # bytes of results that are no views of what was given

    @property
    def own(self) -> int:
        return self.end - self.start


class Profiler(PassThrough):
    """Passes everything on to the interpreter below, and times it."""

    def __init__(self, below: Interpreter):
        super().__init__(below)
        self.events: list[Event] = []
        self.inside = 0

    scope = forward("scope")

    def apply(self, op, inputs, attrs):
        record = self.passing
        phase = "backward" if record is not None else "forward" if self.recording else "no grad"
        scope = self.scope if record is None else record.scope
        self.inside = 0
        start = perf_counter_ns()
        y = self.below.apply(op, inputs, attrs)
        end = perf_counter_ns()
        given = {id(owner(x.array)) for x in inputs if isinstance(x, Tensor)}
        results = tensors_in(y)
        new = {id(owner(t.array)): t.array.nbytes for t in results}  # views of one count once
        specs = tuple(t.spec for t in results)
        size = sum(n for memory, n in new.items() if memory not in given)
        self.events.append(Event(op.name, phase, scope, start, end, self.inside, specs, size))
        return y

    def timed(self, run):
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


class Row(NamedTuple):
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


class profile(ShownTable):
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
        self.run = getattr(below, "quietly", None)
        if self.run is not None:
            below.quietly = self.profiler.timed(self.run)
        current.top = self.profiler
        self.start = perf_counter_ns()
        return self

    def __exit__(self, *exc):
        self.end = perf_counter_ns()
        below = current.top = self.profiler.below
        if self.run is not None:
            below.quietly = self.run

    @property
    def events(self) -> list[Event]:
        return self.profiler.events

    @property
    def wall(self) -> float:
        """Milliseconds from the block's beginning to its end."""
        return (self.end - self.start) / 1e6

    @property
    def busy(self) -> float:
        """Milliseconds in operators."""
        return sum(e.own for e in self.events) / 1e6

    def rows(self, by: str = "operator") -> list[Row]:
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
        from rich.box import SIMPLE
        from rich.table import Table

        rows = self.rows(by)
        phases = [p for p in PHASES if any(p in row.phases for row in rows)]
        title = f"{self.busy:.2f} ms in operators, of {self.wall:.2f} ms"
        table = Table(title=title, box=SIMPLE, pad_edge=False)
        table.add_column(by, no_wrap=True)
        for head in (*COLUMNS, *phases, "output", "new"):
            table.add_column(head, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*cells(row, phases))
        return table

    def flame(self):
        """A flame chart: time to the right, layers in layers, operators at the tips."""
        return flame(self)

    def chrome_trace(self, path):
        """Write a trace that chrome://tracing and https://ui.perfetto.dev open; returns the path.

        Source: "Trace Event Format", the Chromium project.
        """
        return chrome_trace(self, path)


def row_of(name: str, events, busy: float) -> Row:
    phases = defaultdict(float)
    for e in events:
        phases[e.phase] += e.own / 1e6
    own, inside = sum(phases.values()), sum(e.inside for e in events) / 1e6
    outputs = sum(s.nbytes for e in events for s in e.outputs)
    allocated, share = sum(e.allocated for e in events), own / busy
    return Row(name, len(events), own, share, inside, own - inside, phases, outputs, allocated)


def cells(row: Row, phases) -> list[str]:
    """A row as text."""
    numbers = [format(value, how) for value, how in zip(row[1:], COLUMNS.values())]
    times = [f"{row.phases[p]:.3f}" if p in row.phases else "" for p in phases]
    return [row.name, *numbers, *times, bytes_text(row.outputs), bytes_text(row.allocated)]
