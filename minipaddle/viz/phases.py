"""The phases of a training step: forward, backward, the update of each parameter."""

from ..engine.core.record import Record
from ..engine.ir.program import ITEM, Program
from .records import sources_of


def gradients_in(program: Program) -> dict[Record, Record]:
    """For what a backward has computed the record that it passed: of a tuple for all its items, of
    what passes have made by the record that it was made from.
    """
    passed = dict(program.gradient_of)
    passed |= {r.inputs[0]: x for r, x in passed.items() if r.op is ITEM}
    return {r: passed[first] for r in program.records if (first := find_first(r)) in passed}


def find_first(record: Record) -> Record:
    """The captured record that passes have made a record from; of an item its tuple."""
    *_, first = sources_of(record)
    return first


def phases_of(program: Program) -> dict[Record, tuple]:
    """The phase of each record of a training step: forward, backward, or the update of a state.

    The update are records outside of layers that follow from gradients, or that only states need;
    the backward's seed belongs to the backward.
    """
    gradient_of = gradients_in(program)
    if not gradient_of:
        return {}
    backward, update = set(gradient_of), set()
    changed = {s.update for s in program.states}
    for r in program.records:
        follows = r in changed or any(x in backward or x in update for x in r.inputs)
        if follows and r not in backward and r.scope is None:
            update.add(r)
    users: dict[Record, list[Record]] = {}
    for r in program.records:
        for x in r.inputs:
            users.setdefault(x, []).append(r)
    outputs = set(program.outputs)
    for r in reversed(program.records):  # what is computed for the backward or the update alone
        if r in update or r in backward or r.scope is not None or r in outputs:
            continue
        after = users.get(r)
        if after and all(u in update for u in after):
            update.add(r)
        elif after and all(u in backward for u in after):
            backward.add(r)
    phases = {}
    for group in split_into_components([r for r in program.records if r in update], program.states):
        names = [s.name for s in program.states if s.update in group]
        name = min(names, key=len) if names else "other"
        phases |= dict.fromkeys(group, ("update", name))
    for r in program.records:
        if r not in phases:
            phases[r] = ("backward",) if r in backward else ("forward",)
    return phases


def split_into_components(records, states) -> list[set]:
    """The records in groups without any flow between them, not even through a changing state."""
    moving = {s.record for s in states if s.update is not None}
    first = {e: r for r in reversed(records) for e in r.inputs if e in moving}
    group = {r: {r} for r in records}
    for r in records:
        for edge in r.inputs:
            edge = first.get(edge, edge)
            if edge in group and group[edge] is not group[r]:
                group[r] |= group[edge]
                for other in group[r]:
                    group[other] = group[r]
    return list({id(g): g for g in group.values()}.values())
