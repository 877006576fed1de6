"""Programs rewritten by hand, one record after the other; what does not change is shared.

A rewrite keeps a dict `new`: what stands for an old record. `substitute` applies a record to what
stands for its inputs, and `with_records` closes the rewrite: results and states follow the dict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import is_

from ..core import dim as dims
from ..core.record import Record, Spec
from .control import cond, while_loop
from .program import INPUT, NUMBER, Program, State, everywhere, regions


def with_inputs(record: Record, inputs: list[Record], attrs: dict | None = None) -> Record:
    """The record applied to other inputs of the same specs, and with other attributes, which leave
    its own spec as it is; the record itself if all are the same.
    """
    attrs = {k: v for k, v in attrs.items() if record.attrs[k] is not v} if attrs else {}
    if not attrs and all(map(is_, inputs, record.inputs)):
        return record
    return record.copy(inputs, record.attrs | attrs if attrs else None)


def substitute(record: Record, new: dict, attrs: dict | None = None) -> Record:
    """The record applied to its inputs as `new` replaces them; the result is added to `new`."""
    if not attrs and new.keys().isdisjoint(record.inputs):
        return record
    edited = with_inputs(record, [*map(new.get, record.inputs, record.inputs)], attrs)
    if edited is not record:
        new[record] = edited
    return edited


def map_regions(record: Record, change: Callable) -> dict:
    """The regions of a record as `change`, Program → Program, makes them, by attribute."""
    if record.op.kind != "control":
        return {}
    return {name: change(region) for name, region in regions(record).items()}


def map_records(program: Program, each: Callable, new: dict | None = None) -> Program:
    """The program, each record as `each(record, inputs)` makes it of its new inputs."""
    new, records = new or {}, []
    for record in program.records:
        edited = each(record, [*map(new.get, record.inputs, record.inputs)])
        if edited is not record:
            new[record] = edited
        records.append(edited)
    return with_records(program, records, new)


def with_records(program: Program, records: list[Record], new: dict) -> Program:
    """The program with other records; `new` maps each replaced record to its replacement."""
    return with_results(program, Program(program.name, records=records, guards=program.guards), new)


def with_results(old: Program, program: Program, new: dict) -> Program:
    """The program with the inputs, states and results of `old`, replaced as `new` says; the old
    program itself if the two are the same.
    """
    if not new and program.records == old.records:
        return old
    program.inputs, program.outputs = old.inputs, [new.get(r, r) for r in old.outputs]
    program.gradient_of = old.gradient_of
    now = {s: new.get(s.update, s.update) for s in old.states}
    program.states = [State(s.name, s.record, update, s.storage) for s, update in now.items()]
    return program


def outline(records: list[Record], outputs: list[Record]) -> tuple[list[Record], Program]:
    """Records as a region, and the values from outside that are its inputs."""
    inside = set(records)
    outside = dict.fromkeys(
        x for r in records for x in r.inputs if x not in inside and x.op is not NUMBER
    )
    new = {x: Record(INPUT, (), {"name": x.attrs.get("name", "")}, *x.spec) for x in outside}
    inputs, copies = [*new.values()], [substitute(r, new) for r in records]
    return [*outside], Program("group", inputs, [], copies, [new.get(r, r) for r in outputs])


def users_of(program: Program) -> dict[Record, list[Record]]:
    """The records that read each value, in order."""
    users: dict[Record, list[Record]] = {}
    for record in program.records:
        for x in dict.fromkeys(record.inputs):
            users.setdefault(x, []).append(record)
    return users


def count_uses(program: Program) -> Counter:
    """How often each value is used, as an input or as a result; in regions too."""
    uses = Counter(program.results)
    for record in everywhere(program):
        uses.update(record.inputs)
        for region in regions(record).values() if record.op.kind == "control" else ():
            uses.update(region.results)
    return uses


def in_regions(program: Program, change: Callable, ops: set | None = None) -> Program:
    """The program with `change`, Program → Program, made to the regions of these operators, or of
    all.
    """
    there = {record.op for record in program.records if record.op.kind == "control"}
    changed = there if ops is None else there & ops
    if not changed:
        return program

    def each(record, inputs):
        return with_inputs(record, inputs, record.op in changed and map_regions(record, change))

    return map_records(program, each)


def in_branches(program: Program, change: Callable) -> Program:
    """The program with `change`, Program → Program, made to its branches and loops."""
    return in_regions(program, change, {cond, while_loop})


def with_size(value, sizes: dict):
    """An attribute with these numbers for its sizes, also in regions."""
    if type(value) is tuple:
        return tuple([with_size(v, sizes) for v in value])
    if isinstance(value, Program):
        return with_sizes(value, sizes) if sizes else value
    return dims.rename(value, sizes)


def with_sizes(program: Program, sizes: dict) -> Program:
    """The program, or region, with these sizes in the place of its open ones, throughout."""
    new: dict[Record, Record] = {}

    def spec(r):
        if r.dtype is None:
            return tuple(Spec(with_size(s.shape, sizes), s.dtype) for s in r.shape), None
        return with_size(r.shape, sizes), r.dtype

    def copy(r):
        attrs = {k: with_size(v, sizes) for k, v in r.attrs.items()}
        return r.copy([*map(again, r.inputs)], attrs, spec(r))

    def again(r):
        return copy(r) if r.op is NUMBER else new[r]

    for r in program.given:  # a backward's are the records of the forward that made them
        new[r] = Record(INPUT, (), {"name": r.attrs.get("name", "")}, *spec(r))
    for r in program.records:
        new[r] = copy(r)
    inputs, records = ([new[r] for r in rs] for rs in (program.inputs, program.records))
    states = [
        State(s.name, new[s.record], s.update and again(s.update), s.storage)
        for s in program.states
    ]
    return Program(program.name, inputs, states, records, [*map(again, program.outputs)])
