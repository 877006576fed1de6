"""Many workers as pictures: buckets in a program, a timeline of devices, a collective."""

from ..distributed.operators import finish_all_reduce, start_all_reduce
from ..distributed.simulator import Schedule, Timeline, carried_out
from ..engine.core.record import Record
from ..engine.eager.device import NUMPY
from ..engine.ir.program import ITEM, Program
from .memory import COLOURS
from .picture import Picture, figure, label_colours
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
    fig, axis = figure(10, 1.4 + 0.32 * len(trips))
    colour = {k: COLOURS[k % len(COLOURS)] for k in range(len(trips))}
    for t, k in enumerate(owners(program, trips)):
        axis.bar(t, 0.9, width=1.0, align="edge", color=colour.get(k, REST))
    for k, (start, finish, record) in enumerate(trips):
        y = 1.25 + 0.5 * k
        axis.barh(y, finish - start, left=start, height=0.4, color=colour[k])
        size = bytes_text(sum(r.spec.nbytes for r in record.inputs))
        axis.text(start, y, f"bucket {k}, {size}  ", ha="right", va="center", fontsize=7)
    axis.set(yticks=[], xlim=(0, len(program.records)), xlabel="records, in the order they run")
    axis.set_title(f"{program.name}: buckets of gradients on their way", fontsize=9, loc="left")
    axis.spines[["left", "right", "top"]].set_visible(False)
    return Picture(fig, describe(program, trips))


def journeys(program: Program) -> list[tuple[int, int, Record]]:
    """(when it starts, when it is fetched, the record that starts it) for each bucket."""
    when = {record: t for t, record in enumerate(program.records)}
    ends = [r for r in program.records if r.op is finish_all_reduce]
    found = [(when[r.inputs[0]], when[r], r.inputs[0]) for r in ends]
    return sorted(found, key=lambda journey: journey[0])


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
    >>> from minipaddle.distributed.simulator import PCIE, Cluster, Piece, simulate
    >>> step = [Piece("backward", 0.1, starts=(0,)), Piece("update", 0.01, waits=(0,))]
    >>> print(viz.timeline(simulate(step, [100e6], Cluster(1, 2, PCIE))))
    120.0 ms on 2 devices: compute 110.0 ms, communication 10.0 ms, idle 10.0 ms
    """
    rows = [1 + max((s.device for s in each.spans), default=0) for each in found]
    high = sum(0.5 + 0.45 * n for n in rows)
    fig, *axes = figure(10, high, len(found), sharex=True, height_ratios=rows)
    texts = []
    for k, (axis, each) in enumerate(zip(axes, found, strict=True)):
        for span in each.spans:
            below, height = (0.28, 0.26) if span.kind == "communication" else (-0.16, 0.56)
            edge = EDGE if span.kind == "idle" else KINDS[span.kind]
            look = {"color": KINDS[span.kind], "edgecolor": edge, "linewidth": 0.4}
            start, wide = 1e3 * span.start, 1e3 * (span.end - span.start)
            axis.barh(span.device + below, wide, left=start, height=height, **look)
        axis.set(yticks=range(rows[k]), ylim=(rows[k] - 0.4, -0.6), ylabel="device")
        axis.spines[["right", "top"]].set_visible(False)
        title = titles[k] if k < len(titles) else ""
        texts.append(f"{title}{': ' * bool(title)}{totals(each, rows[k])}")
        axis.set_title(texts[-1], fontsize=8, loc="left")
    axes[-1].set_xlabel("ms")
    label_colours(fig, KINDS, EDGE, loc="upper right", ncols=3)
    fig.subplots_adjust(hspace=0.5)
    return Picture(fig, "\n".join(texts))


def totals(each: Timeline, devices: int) -> str:
    """The sums of the first device."""
    sums = [f"{kind} {1e3 * each.total(kind):.1f} ms" for kind in KINDS]
    return f"{1e3 * each.seconds:.1f} ms on {count(devices, 'device')}: {', '.join(sums)}"


def collective(schedule: Schedule) -> Picture:
    """A collective round by round: each row is a rank, each column a part of the data.

    The number counts the ranks whose sum the part holds; parts that have just come are framed.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.simulator import ring
    >>> print(viz.collective(ring(2)))
    start    | 11 | 11
    round 1  | 12 | 21
    round 2  | 22 | 22
    """
    from matplotlib.patches import Rectangle

    states = carried_out(schedule, [NUMPY.ones(schedule.parts, int) for _ in range(schedule.size)])
    fig, *axes = figure(min(12, 1.5 * len(states)), 2.0, 1, len(states))
    came, lines = [[], *schedule.rounds], []
    for k, (axis, state) in enumerate(zip(axes, states, strict=True)):
        name = f"round {k}" if k else "start"
        values = [list(map(int, row)) for row in state]
        axis.imshow(values, cmap="Blues", vmin=0, vmax=schedule.size * 1.4)
        for rank, row in enumerate(values):
            for part, value in enumerate(row):
                axis.text(part, rank, value, ha="center", va="center", fontsize=7)
        for m in came[k]:
            frame = (m.first - 0.5, m.target - 0.5), m.last - m.first, 1
            axis.add_patch(Rectangle(*frame, fill=False, edgecolor="#d55e00", linewidth=1.6))
        axis.set_title(name, fontsize=8)
        axis.set(xticks=[], yticks=[])
        lines.append(" | ".join([f"{name:<8}", *("".join(map(str, row)) for row in values)]))
    title = f"{schedule.name} of {schedule.size} ranks: rows are ranks, columns parts"
    fig.suptitle(title, fontsize=9)
    return Picture(fig, "\n".join(lines))
