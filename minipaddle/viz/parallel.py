"""Many workers as pictures: buckets in a program, timelines of devices and stages, a collective."""

from itertools import zip_longest

from ..distributed.collectives.operators import finish_all_reduce, start_all_reduce
from ..distributed.simulator import Phases, Timeline, carry_out
from ..engine.core.record import Record
from ..engine.eager.device import NUMPY
from ..engine.ir.program import ITEM, Program
from .chart import Bar, Panel, Picture, chart
from .gradient_norms import blend
from .memory import COLOURS
from .style import bytes_text, count
from .target import last_executable, program_of

REST, EDGE = "#c8c8c8", "#999999"
KINDS = {"compute": "#0072b2", "communication": "#e69f00", "idle": "#f2f2f2"}


def buckets(target) -> Picture:
    """A program's records from left to right, and above them the buckets of gradients that travel.

    Records that lead to the gradients of one bucket alone have its colour, and so have records that
    need its averages. Takes a program after the data-parallel pass, an executable, or a function
    that `to_static` has compiled.

    >>> from minipaddle import viz
    >>> from minipaddle.ir.parser import parse
    >>> from minipaddle.engine.passes.async_collectives import async_collectives
    >>> program = parse('''program p(x: float32[2]) {
    ...   v1 = all_reduce(x, op='avg', group=0, early=((0,), 8, 25,)) : float32[2]
    ...   v2 = exp(x) : float32[2]
    ...   v3 = add(v1, v2) : float32[2]
    ...   return v3
    ... }''')
    >>> print(viz.buckets(async_collectives(program)))
    p: 5 records, 1 bucket
      bucket 0: 8 B, 1 gradient, travels while 1 record is computed
    """
    program = program_of(last_executable(target))  # as it runs
    trips = journeys(program)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(trips))]
    owner = enumerate(owners(program, trips))
    bars = [Bar(t, 0, 1.0, 0.9, REST if k is None else colours[k]) for t, k in owner]
    for k, (start, finish, record) in enumerate(trips):
        label = f"bucket {k}, {bytes_text(sum(r.spec.nbytes for r in record.inputs))}  "
        box = start, 1.05 + 0.5 * k, finish - start, 0.4
        bars.append(Bar(*box, colours[k], label, "before"))
    axes = {"xlim": (0, len(program.records)), "xlabel": "records, in the order they run"}
    title = f"{program.name}: buckets of gradients on their way"
    panel = Panel(bars, title, (), axes=axes)
    return chart((10, 1.6 + 0.32 * len(trips)), [panel], describe(program, trips))


def journeys(program: Program) -> list[tuple[int, int, Record]]:
    """(when it starts, when it is fetched, the record that starts it) for each bucket."""
    when = {record: t for t, record in enumerate(program.records)}
    ends = [r for r in program.records if r.op is finish_all_reduce]
    transfers = [(when[r.inputs[0]], when[r], r.inputs[0]) for r in ends]
    return sorted(transfers, key=lambda journey: journey[0])


def owners(program: Program, trips) -> list[int | None]:
    """For each record the bucket it belongs to: the only one it leads to, or the last it needs."""
    bucket = {record: k for k, (_, _, record) in enumerate(trips)}
    leads: dict[Record, set] = {}
    for record in reversed(program.records):
        own = {bucket[record]} if record in bucket else leads.get(record, set())
        for r in record.inputs if record.op is not finish_all_reduce else ():
            leads.setdefault(r, set()).update(own or {None})
    needs: dict[Record, int] = {}
    for record in program.records:
        if record.op is finish_all_reduce:
            needs[record] = bucket[record.inputs[0]]
        elif before := [needs[r] for r in record.inputs if r in needs]:
            needs[record] = max(before)
    only = {r: next(iter(s)) for r, s in leads.items() if len(s) == 1}
    return [bucket.get(r, needs.get(r, only.get(r))) for r in program.records]


def describe(program: Program, trips) -> str:
    """The journeys in words."""
    records, buckets = count(len(program.records), "record"), count(len(trips), "bucket")
    lines = [f"{program.name}: {records}, {buckets}"]
    apart = (start_all_reduce, finish_all_reduce, ITEM)
    for k, (start, finish, record) in enumerate(trips):
        beside = sum(r.op not in apart for r in program.records[start + 1 : finish])
        size = bytes_text(sum(r.spec.nbytes for r in record.inputs))
        meanwhile = f"{count(beside, 'record')} {'is' if beside == 1 else 'are'} computed"
        gradients = count(len(record.inputs), "gradient")
        lines.append(f"  bucket {k}: {size}, {gradients}, travels while {meanwhile}")
    return "\n".join(lines)


def timeline(*found: Timeline, titles=()) -> Picture:
    """The timeline of each device: computing, communication beside it, and waiting.

    Several timelines stand one below the other on one scale.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.simulator import PCIE, Cluster, TimelinePiece, simulate
    >>> backward = TimelinePiece("backward", 0.1, starts=(0,))
    >>> step = [backward, TimelinePiece("update", 0.01, waits=(0,))]
    >>> print(viz.timeline(simulate(step, [100e6], Cluster(1, 2, PCIE))))
    120.0 ms on 2 devices: compute 110.0 ms, communication 10.0 ms, idle 10.0 ms
    """
    return stack_timelines(found, titles, draw_span, totals, KINDS, ylabel="device", xlabel="ms")


def draw_span(span, _) -> Bar:
    """Communication is below the computation at the same time."""
    below, high = (0.28, 0.26) if span.kind == "communication" else (-0.16, 0.56)
    edge = EDGE if span.kind == "idle" else KINDS[span.kind]
    box = span.device + below, 1e3 * span.start, 1e3 * (span.end - span.start)
    return Bar.in_row(*box, KINDS[span.kind], high=high, edgecolor=edge)


def stack_timelines(found, titles, draw_span, describe, colours, xlabel, ylabel) -> Picture:
    """Timelines one below the other on one scale; `describe(timeline, rows)` says what it shows,
    `draw_span(span, end of all)` makes a bar.
    """
    widest, panels = max(each.seconds for each in found), []
    for title, each in zip_longest(titles[: len(found)], found, fillvalue=""):
        rows = 1 + max((s.device for s in each.spans), default=0)
        text = f"{title}{': ' * bool(title)}{describe(each, rows)}"
        bars = [draw_span(span, widest) for span in each.spans]
        panels.append(Panel(bars, text, range(rows), axes={"ylabel": ylabel}))
    panels[-1].axes["xlabel"] = xlabel
    text, high = "\n".join(p.title for p in panels), [0.8 + 0.4 * len(p.rows) for p in panels]
    size = 10, 0.4 + sum(high)
    return chart(size, panels, text, colours=colours, sharex=True, height_ratios=high)


def totals(each: Timeline, devices: int) -> str:
    """The sums of the first device."""
    sums = [f"{kind} {1e3 * each.total(kind):.1f} ms" for kind in KINDS]
    return f"{1e3 * each.seconds:.1f} ms on {count(devices, 'device')}: {', '.join(sums)}"


def collective(schedule: Phases) -> Picture:
    """A collective round by round: each row is a rank, each column a part of the data.

    The number counts the ranks whose sum the part holds; parts that have just come are framed.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.simulator import ring
    >>> print(viz.collective(ring(2)))
    start    | 11 | 11
    round 1  | 12 | 21
    round 2  | 22 | 22
    """
    states = carry_out(schedule, [NUMPY.ones(schedule.parts, int) for _ in range(schedule.size)])
    came, panels, lines = [[], *schedule.rounds], [], []
    for k, state in enumerate(states):
        name = f"round {k}" if k else "start"
        values = [list(map(int, row)) for row in state]
        cells = [
            Bar(part, rank, 1, 1, blend(*SHADES, value / schedule.size), str(value), look=CELL)
            for rank, row in enumerate(values) for part, value in enumerate(row)
        ]  # fmt: skip
        cells += [Bar(m.first, m.target, m.last - m.first, 1, "none", look=CAME) for m in came[k]]
        axes = {"xticks": [], "xlim": (0, schedule.parts), "ylim": (schedule.size, 0)}
        panels.append(Panel(cells, name, (), axes=axes | {"aspect": "equal"}))
        lines.append(" | ".join([f"{name:<8}", *("".join(map(str, row)) for row in values)]))
    title = f"{schedule.name} of {schedule.size} ranks: rows are ranks, columns parts"
    size = min(12, 1.5 * len(states)), 2.0
    return chart(size, panels, "\n".join(lines), title=title, columns=len(panels))


SHADES = "#eaf3fb", "#4f9bd9"
"""Of a part that is summed over no rank, and over all."""
CELL = {"edgecolor": "white"}
CAME = {"edgecolor": "#d55e00", "linewidth": 1.6, "zorder": 2}


# ---- pipelines ---------------------------------------------------------------------------------

JOBS = {"F": "#56b4e9", "B": "#009e73", "I": "#8fd0a8", "W": "#e69f00"}
"""The colours of jobs, by their kind."""

NAMES = {"F": "forward", "B": "backward", "I": "gradients of inputs", "W": "gradients of weights"}


def pipeline(*found: Timeline, titles=()) -> Picture:
    """Stages from above to below, and their jobs from left to right; the number is that of the
    micro-batch, later chunks have darker edges. White is the bubble.

    Several timelines, of `pipeline.simulate` or of real ranks (`PipelineParallel.timeline`), stand
    one below the other on one scale.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> from minipaddle.distributed.pipeline.simulate import simulate
    >>> names = "1F1B", "ZBH1"
    >>> print(viz.pipeline(*(simulate(build_schedule(n, 4, 8)) for n in names), titles=names))
    1F1B: 4 stages, 33 s, bubble 27.3 %, at most 4 forwards kept
    ZBH1: 4 stages, 27 s, bubble 11.1 %, at most 4 forwards kept
    """
    used = {s.name[0] for each in found for s in each.spans}
    shown = {NAMES[kind]: colour for kind, colour in JOBS.items() if kind in used}
    return stack_timelines(found, titles, draw_job, describe_pipeline, shown, "seconds", "stage")


def draw_job(span, widest: float) -> Bar:
    """A box, with its micro-batch if there is room."""
    kind, (micro_batch, chunk) = span.name[0], span.name[1:].split(".")
    wide = span.end - span.start
    text = micro_batch if wide > 0.012 * widest else ""
    look = {"edgecolor": "white" if chunk == "0" else "black", "high": 0.85}
    return Bar.in_row(span.device, span.start, wide, JOBS[kind], text, **look)


def describe_pipeline(each: Timeline, stages: int) -> str:
    """The time of a step, its share of bubble, the memory of a stage."""
    held = max(most_kept(each, stage) for stage in range(stages))
    bubble = f"bubble {100 * (1 - each.efficiency):.1f} %"
    return f"{count(stages, 'stage')}, {each.seconds:.3g} s, {bubble}, at most {held} forwards kept"


def most_kept(each: Timeline, stage: int) -> int:
    """The peak number of micro-batches whose activations a stage keeps for their backward."""
    kept = most = 0
    for span in sorted((s for s in each.spans if s.device == stage), key=lambda s: s.start):
        kept += (span.name[0] == "F") - (span.name[0] in "BW")
        most = max(most, kept)
    return most
