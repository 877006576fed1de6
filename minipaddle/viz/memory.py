"""A memory plan as pictures: the lifetimes of values, and their places in the arena."""

from collections.abc import Iterator

from ..engine.ir.control import fused
from ..engine.passes.arena import bound, profile
from ..engine.passes.buffer_assignment import Allocation, MemoryPlan, bytes_text
from ..engine.passes.memory import plan as planned
from ..nn.layer.tree import layer_name, layers_of
from .chart import Bar, Panel, Picture, PolyLine, chart
from .target import last_executable, program_of

COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c6bb1",
    "#a6761d", "#66c2a5", "#1b3a5c", "#e78ac3",
)  # fmt: skip
"""Okabe and Ito's first; one for each layer."""
NOBODY, WORK = "#bbbbbb", "#555555"
"""The colours of values made outside of layers, and of workspaces."""
MOST = 40
"""How many allocations, the largest, have a line of their own in the chart of lifetimes."""


def memory(plan) -> Picture:
    """The memory of a program: the lifetimes of its largest values, and the arena as a map.

    Takes a plan, a program (which is planned then), an executable, or a function that `to_static`
    has converted and that was called: its executable, or else its program. Each rectangle
    is an allocation of the arena, coloured by the layer that made it; the line over the map is the
    live set at each time, the dashed one its highest point: the bound.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def step(x):
    ...     return paddle.matmul(paddle.tanh(x), x).sum()
    >>> y = step(paddle.ones([16, 16]))
    >>> print(str(viz.memory(step)).splitlines()[0])
    plan of step: 3 records
    """
    plan = plan_of(plan)
    colours, size = Colours(plan), bytes_text(plan.size)
    time = 0, len(plan.program.records) + 1
    bars = list(draw_lifetimes(plan, colours))
    unit, name = (2**20, "MiB") if plan.size >= 2**20 else (2**10, "KiB")
    above = {"xlim": time, "ylim": (len(bars), -1)}
    below = {"xlim": time, "ylim": (0, 1.12 * max(plan.size, 1) / unit)}
    below |= {"xlabel": "time, in records", "ylabel": f"offset in the arena, {name}"}
    title = f"arena {size}, bound {bytes_text(plan.live)} (dashed), "
    title += f"all values {bytes_text(plan.total)}"
    lines = list(draw_live_set(plan, time, unit))
    panels = [
        Panel(bars, f"lifetimes of the {len(bars)} largest values", (), axes=above),
        Panel(draw_arena(plan, colours, unit), title, None, lines, below),
    ]
    names = colours.of | {"no layer": NOBODY, "workspace": WORK}
    return chart((10, 9), panels, str(plan), colours=names, sharex=True)


def plan_of(x) -> MemoryPlan:
    """The plan of the object that `memory` was given."""
    if isinstance(x, MemoryPlan):
        return x
    return getattr(last_executable(x), "plan", None) or planned(program_of(x))


class Colours:
    """A colour for each layer, at the greatest depth whose layers can be told apart."""

    def __init__(self, plan: MemoryPlan):
        chains = {id(allocation): chain_of(allocation) for allocation in plan.allocations}
        self.names = {k: " / ".join(chain[:1]) for k, chain in chains.items()}
        for depth in range(2, 1 + max(map(len, chains.values()), default=0)):
            names = {k: " / ".join(chain[:depth]) for k, chain in chains.items()}
            if len(set(names.values())) > len(COLOURS):
                break
            self.names = names
        labels = sorted({n for n in self.names.values() if n})
        self.of = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(labels)}

    def __getitem__(self, allocation: Allocation) -> str:
        if not allocation.values:
            return WORK
        return self.of.get(self.names[id(allocation)], NOBODY)


def chain_of(allocation: Allocation) -> tuple[str, ...]:
    """The names of the layers that made an allocation, without the outermost, which is in all."""
    record = allocation.values[0][0] if allocation.values else allocation.work
    scopes = layers_of(record.scope) if record is not None else ()
    names = tuple(map(layer_name, scopes))
    return names[1:] or names


def draw_lifetimes(plan: MemoryPlan, colours: Colours) -> Iterator[Bar]:
    """A bar for each of the largest allocations, in the order of time."""
    allocations = sorted(plan.allocations, key=lambda p: -p.location.nbytes)[:MOST]
    allocations.sort(key=lambda p: (p.buffer.start, p.buffer.end))
    width = len(plan.program.records) + 1
    for row, allocation in enumerate(allocations):
        start, end, _ = allocation.buffer
        name = maker_of(*allocation.values[0]) if allocation.values else maker_of(allocation.work)
        label = f" {name}, {bytes_text(allocation.location.nbytes)} "
        long, right = end - start > 0.4 * width, width - end > start
        at = "start" if long else "end" if right else "before"
        yield Bar.in_row(row, start, end - start, colours[allocation], label, at, high=0.86)


def maker_of(record, k: int = 0) -> str:
    """The operator that makes result k of a record; in a group it is one of the group's."""
    if record is None:
        return "aside"
    return record.attrs["region"].outputs[k].op.name if record.op is fused else record.op.name


def draw_arena(plan: MemoryPlan, colours: Colours, unit: int) -> Iterator[Bar]:
    """Offset by time: a rectangle for each allocation."""
    for allocation in plan.allocations:
        start, end, nbytes = allocation.buffer
        box = start, allocation.location.offset / unit, end - start, nbytes / unit
        yield Bar(*box, colours[allocation], look={"edgecolor": "white", "linewidth": 0.3})


def draw_live_set(plan: MemoryPlan, time: tuple, unit: int) -> Iterator[PolyLine]:
    """The live set at each time, its highest point, and the size of the arena."""
    buffers = [allocation.buffer for allocation in plan.allocations]
    level = profile(buffers)
    live = [n / unit for n in level.values()]
    yield PolyLine([*level], live, "black", {"drawstyle": "steps-post", "linewidth": 0.9})
    for size, colour, style in ((bound(buffers), "black", "--"), (plan.size, "#d55e00", "-")):
        yield PolyLine(time, [size / unit] * 2, colour, {"linestyle": style, "linewidth": 0.8})
