"""A compiled program: its C, and the time each kernel takes."""

from ..core.shown import Shown
from ..engine.codegen.step import refusal
from ..engine.core.errors import teach
from ..engine.eager.device import NUMPY
from ..executors.timing import with_timers
from .chart import Bar, Panel, Picture, chart
from .markup import write_code
from .records import layer_name, layers_of
from .style import GREY, LOOKS
from .target import executable_of

MOST = 24
"""How many kernels, the slowest, have a bar."""


def source(target, kernel: str = "") -> "Source":
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
        whole = getattr(executable, "source", None)
        return Source(whole.own if whole is not None else executable.kernels.text)
    named = executable.kernels.texts
    chosen = {name: text for name, text in named.items() if kernel in name}
    if not chosen:
        known = ", ".join(named)
        raise KeyError(teach(f"no kernel {kernel!r}", expected=known))
    return Source("\n".join(chosen.values()))


class Source(Shown):
    """C as text; highlighted in a notebook."""

    def __init__(self, text: str):
        self.text = text

    def html(self) -> str:
        return write_code(self.text, "c")


# ---- times -----------------------------------------------------------------------------------


def kernels(target, runs: int = 20) -> Picture:
    """How long each kernel of a compiled program takes: a bar for each of the slowest.

    The program is compiled again with clocks in it and run on sample numbers, so its states stay
    as they are. Takes the same targets as `viz.source`, on the CPU.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static(backend="native")
    ... def f(x):
    ...     return paddle.tanh(x) * 2
    >>> y = f(paddle.ones([3]))
    >>> print(str(viz.kernels(f)).splitlines()[1].split()[-1])
    k0_multiply
    """
    twin = with_timers(executable_of(target))
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
    whole = spec.dtype.kind != "f"
    flat = NUMPY.zeros(spec.size) if whole else NUMPY.linspace(0.1, 0.9, spec.size)
    return flat.astype(spec.dtype).reshape(spec.shape)


def draw_bars(twin, times) -> Picture:
    shown, total = times[:MOST], sum(t for t, _ in times) or 1.0
    bars, names = [], [name_of(twin, r) for _, r in shown]
    for row, (t, r) in enumerate(shown):
        where = " / ".join(map(layer_name, layers_of(r.scope)))
        colour = LOOKS[r.op.kind if r.op.kind in LOOKS else "group"].fill
        label = f" {100 * t / total:.0f} %  {where}"
        bars.append(Bar.in_row(row, 0, t * 1e6, colour, label, "end", edgecolor=GREY))
    axes = {"xlabel": "µs a run", "xlim": (0, 1.35e6 * shown[0][0] + 1e-9)}
    lines = [f"{len(times)} kernels, {total * 1e6:.1f} µs a run"]
    lines += [f"{t * 1e6:10.1f} µs  {name}" for (t, _), name in zip(shown, names, strict=True)]
    panel = Panel(bars, lines[0], names, axes=axes)
    return chart((8, 1.0 + 0.24 * len(shown)), [panel], "\n".join(lines))


def name_of(twin, record) -> str:
    """The C function of a record; an operator that the host computes has none."""
    kernel = twin.kernels.of.get(record)
    return f"{record.op.name}, by the host: {refusal(record)}" if kernel is None else kernel.name
