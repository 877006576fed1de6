"""Gathered weights: each is whole only around its uses.

A program in pieces gathers a weight that is stored in pieces (ZeRO's third stage) once: before its
first use, to be kept until the last one, in the backward. And nothing says when the gathering may
begin, for pieces are there from the start. This pass

- gathers a weight again for uses that lie apart: more other weights are used between them than may
  be on their way;
- makes groups of weights that are used one after the other, of a megabyte each: they travel in one
  message;
- lets a group start on its way when the one `gathers_ahead` before it is about to be used. So it
  travels while a rank computes with those before, and at most `gathers_ahead` + 1 groups are
  gathered at a time.

Ranks start collectives in the order of `early`, so a gather gets a place there: after all that is
computed before it may start. Weights are gathered in the order of their uses, as in every rank.

Sources: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020, section 7.2.2; Zhao et al., "PyTorch FSDP", 2023 (prefetching with a limit).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.ir.edit import substitute, users_of, with_records
from ..engine.ir.program import NUMBER, Program
from ..engine.ops.marks import after
from ..engine.passes.async_collectives import MB, TOGETHER, kind_of, place_of
from ..engine.passes.registry import program_pass
from .collective_order import FIRST, in_order, places_needed

SLACK = 2
"""A kernel may compute a gradient together with what needs the next weights. So sums of gradients
let as many gathers go first.
"""


class Gather(NamedTuple):
    """A weight that is gathered: from its state by movements, then into `views` that are used."""

    record: Record
    path: list[Record]  # the movements from the state
    state: Record
    views: list[Record]  # the movements of it, in order
    uses: list[int]  # the times at which others read it, or a view


class Stay(NamedTuple):
    """A time during which a weight is whole: the uses from `first` to `last`."""

    gather: Gather
    first: int
    last: int


@program_pass(
    "gathers",
    gathers_ahead=(2, "how many groups of weights stored in pieces may be on their way"),
    gathers_megabytes=(TOGETHER["all_gather"], "the most megabytes of a group; 0: one weight"),
    gathers_least=(1 << 14, "weights of fewer bytes are gathered once, and kept"),
)
def gathers(
    program: Program, *, gathers_ahead: int, gathers_megabytes: float, gathers_least: int
) -> Program:
    """The program in which a weight that is stored in pieces is whole around its uses."""
    all_gathers = gathers_of_states(program)
    if not all_gathers:
        return program
    stays = stays_of(all_gathers, gathers_ahead, gathers_least)
    groups = groups_of(stays, MB * gathers_megabytes)
    anchors = anchors_of(program, groups, all_gathers, gathers_ahead)
    places = places_of(program, all_gathers, anchors)
    written = write(program, all_gathers, groups, anchors, places, gathers_megabytes)
    return written if in_order(written) else program


# ---- what is gathered ----------------------------------------------------------------------------


def gathers_of_states(program: Program) -> list[Gather]:
    """The gathers of weights, in the order in which they stand."""
    states, users = {s.record for s in program.states}, users_of(program)
    time, results = {r: t for t, r in enumerate(program.records)}, set(program.results)
    all_gathers = []
    for record in program.records:
        if record.op.name != "all_gather" or not place_of(record):
            continue
        state, path = record.inputs[0], []
        while state not in states and is_view(state, time):
            path.insert(0, state)
            state = state.inputs[0]
        views, todo = {record: None}, [record]
        for view in todo:
            for user in users.get(view, ()):
                if user not in views and is_view(user, views):
                    views[user] = None
                    todo.append(user)
        times = {time[u] for view in views for u in users.get(view, ()) if u not in views}
        if state in states and times and results.isdisjoint(views):
            inside = sorted([*views][1:], key=time.get)
            all_gathers.append(Gather(record, path, state, inside, sorted(times)))
    return all_gathers


def is_view(record: Record, known) -> bool:
    """Whether a record only moves the elements of tensors that are `known`."""
    read = [x for x in record.inputs if x.op is not NUMBER]
    if record.op.kind != "movement" or not read:
        return False
    return record in known or all(x in known for x in read)


@slot("gathers.stays")
def stays_of(found: list[Gather], ahead: int, least: int) -> list[Stay]:
    """The times during which weights are whole, in the order in which they begin. Two uses are
    apart if more than `ahead` other weights are used from the one to the other.
    """
    stays = []
    for gather in found:
        first = last = gather.uses[0]
        for use in gather.uses[1:]:
            others = sum(
                any(last <= t <= use for t in other.uses) for other in found if other is not gather
            )
            if others > ahead and gather.record.spec.nbytes >= least:
                stays.append(Stay(gather, first, last))
                first = use
            last = use
        stays.append(Stay(gather, first, last))
    return sorted(stays, key=lambda stay: stay.first)


def groups_of(stays: list[Stay], most: float) -> list[list[Stay]]:
    """Stays that begin one after the other, as groups of weights of up to `most` bytes."""
    groups, total, kind = [], 0, None
    for stay in stays:
        record = stay.gather.record
        size, last, kind = record.attrs["early"][1], kind, kind_of(record)
        if groups and kind == last and total + size <= most:
            groups[-1].append(stay)
            total += size
        else:
            groups.append([stay])
            total = size
    return groups


def anchors_of(program: Program, groups, found: list[Gather], ahead: int) -> list[int]:
    """For each group the time of the record after which its gathers may start; -1: at once."""
    time = {r: t for t, r in enumerate(program.records)}
    ours = {r for gather in found for r in (gather.record, *gather.views, *gather.path)}
    anchors, latest = [], -1
    for k in range(len(groups)):
        if k >= ahead:
            read = program.records[groups[k - ahead][0].first].inputs
            known = [time[x] for x in read if x in time and x not in ours and x.dtype is not None]
            latest = max([latest, *known])
        anchors.append(latest)
    return anchors


def places_of(program: Program, found: list[Gather], anchors: list[int]) -> list[tuple]:
    """For each group the place of its gathers in the order of collectives: after those that its
    anchor needs, and those whose operands were computed until the anchor SLACK groups before. (A
    movement that makes an operand stands where it is sent, which may be late: what counts is what
    it moves, and the operands sent before.)
    """
    time, ours = {r: t for t, r in enumerate(program.records)}, {g.record for g in found}
    known, latest = [], -1
    others = [r for r in program.records if r not in ours and place_of(r)]
    for record in sorted(others, key=place_of):
        operand = record.inputs[0]
        while operand in time and is_view(operand, time):
            operand = operand.inputs[0]
        latest = max(latest, time.get(operand, -1))
        known.append((latest, place_of(record)))
    needed, places, latest = places_needed(program), [], FIRST
    for k, anchor in enumerate(anchors):
        before = anchors[k - SLACK] if k >= SLACK else -1
        must = FIRST if anchor < 0 else needed[program.records[anchor]]
        latest = max([latest, must, *(place for t, place in known if t <= before)])
        places.append((*latest, k))
    return places


# ---- the new program -----------------------------------------------------------------------------


def write(program: Program, found: list[Gather], groups, anchors, places, megabytes) -> Program:
    """The program with a gather for each stay, at the anchor of its group."""
    ours = {r for gather in found for r in (gather.record, *gather.views)}
    starting, beginning = defaultdict(list), defaultdict(list)
    stays = [(k, stay) for k, group in enumerate(groups) for stay in group]
    for number, (k, stay) in enumerate(stays):
        starting[anchors[k]].append(number)
        beginning[stay.first].append(number)
    records: list[Record] = []
    new: dict[Record, Record] = {}
    gathered: dict[int, Record] = {}

    def start(number: int, anchor: Record | None) -> None:
        k, (gather, *_) = stays[number]
        state = own = gather.state
        if anchor is not None:
            own = gather.record.derive(after, [state, new.get(anchor, anchor)], {}, state.spec, 1)
            records.append(own)
        copies = {state: own}
        for record in gather.path:
            records.append(record.copy([copies.get(x, x) for x in record.inputs]))
            copies[record] = records[-1]
        early = (*places[k], number), gather.record.attrs["early"][1], megabytes
        inputs = [copies.get(x, x) for x in gather.record.inputs]
        gathered[number] = gather.record.copy(inputs, gather.record.attrs | {"early": early})
        records.append(gathered[number])

    for number in starting[-1]:
        start(number, None)
    for t, record in enumerate(program.records):
        for number in beginning[t]:
            gather = stays[number][1].gather
            new[gather.record] = gathered[number]
            for view in gather.views:
                new[view] = view.copy([new.get(x, x) for x in view.inputs])
                records.append(new[view])
        if record not in ours:
            records.append(substitute(record, new))
        for number in starting[t]:
            start(number, record)
    return with_records(program, records, new)
