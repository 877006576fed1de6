"""A program cut in two: a part that can run at once, and a part that needs the late inputs.

So the forward of a network is separated from its backward, which needs the cotangents. The values
that pass from one to the other are the *residuals*. A value that cheap operators compute from
residuals, or from nothing, is computed again rather than kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..core.record import Record
from ..core.slots import slot
from .edit import in_regions
from .program import NUMBER, Program, binders, regions

RECOMPUTED: list[Callable[[Record, set], list | None]] = []
"""Rules beyond `remade`: the records that compute a value again from what there is and from small
values, in order, or None.
"""


@slot("ir.cut")
def cut(program: Program, late_inputs, late_outputs) -> tuple[Program, Program]:
    """(early, late): `late` takes the residuals, which `early` gives after its own outputs, then
    `late_inputs`; its outputs are the `late_outputs` (numbers of outputs of the program).
    """
    waiting = depending(program, late_inputs)
    arriving, later = set(late_inputs), set(late_outputs)
    wanted = [program.outputs[k] for k in late_outputs]
    kept = [r for k, r in enumerate(program.outputs) if k not in later]
    late = [r for r in program.records if r in waiting]
    late, residuals = again(late, program, wanted, {*kept, *program.given})
    residuals = [r for r in residuals if r not in arriving]
    early = Program(
        program.name,
        [r for r in program.inputs if r not in arriving],
        program.states,
        [r for r in program.records if r not in waiting],
        [*kept, *residuals],
        program.guards,
    )
    back = Program(f"{program.name}_backward", [*residuals, *late_inputs], [], late, wanted)
    return pruned(early), back


@slot("ir.depending")
def depending(program: Program, inputs) -> set:
    """The records whose value depends on any of the inputs."""
    dependents = set(inputs)
    for record in program.records:
        if not dependents.isdisjoint(record.inputs):
            dependents.add(record)
    return dependents - set(inputs)


def again(late, program: Program, wanted, free) -> tuple[list, list]:
    """The late records with those that are cheaply made again, and the residuals that are left.

    A value of `free` is alive in any case: an input, a state, a result of the early part.
    """
    order = {r: k for k, r in enumerate(program.records)}
    needed = residuals_of(late, program, wanted)
    while more := next_made(needed, order, free):
        late = [*more, *late]
        needed = residuals_of(late, program, wanted)
    return sorted(set(late), key=order.get), needed


def next_made(needed: list, order: dict, free: set) -> list:
    """The records that make residuals again that can be made from others, the last one first."""
    have, late = {*needed, *free}, []
    for record in reversed([r for r in needed if r in order and r not in free]):
        have.remove(record)
        records = [record] if is_view(record) else remade(record, have, 3)
        rules = iter(RECOMPUTED if records is None else ())
        records = next(filter(None, (rule(record, have) for rule in rules)), records)
        if records is None:
            have.add(record)
        else:
            late += records
    return late


@slot("ir.remade")
def remade(record, have: set, depth: int) -> list | None:
    """The cheap records that make a value from what there is; None if it takes others."""
    if record in have or record.op is NUMBER:
        return []
    cheap = record.op.kind in ("elementwise", "movement") or not record.inputs  # zeros, say
    if not cheap or record.op.effect or depth == 0:
        return None
    records = [record]
    for source in record.inputs:
        more = remade(source, have, depth - 1)
        if more is None:
            return None
        records = [*more, *records]
    return records


def is_view(record) -> bool:
    """Whether a record is a view of a value of the same size: keeping that value costs the same."""
    whole = record.op.view and record.dtype is not None
    return whole and record.inputs[0].spec.size == record.spec.size


@slot("ir.residuals_of")
def residuals_of(late, program: Program, wanted) -> list:
    """The values that late records and outputs use but do not compute, in program order."""
    used = ({r for record in late for r in record.inputs} | set(wanted)) - set(late)
    return [r for r in [*program.given, *program.records] if r in used]


@slot("ir.has_effect")
def has_effect(record) -> bool:
    """Whether a record, or one in its regions, has a side effect."""
    if record.op.effect or record.op.kind != "control":
        return record.op.effect
    return any(has_effect(r) for region in regions(record).values() for r in region.records)


def pruned(program: Program) -> Program:
    """The program without unneeded records."""
    program.records = needed(program)
    return program


@slot("ir.needed")
def needed(program: Program) -> list[Record]:
    """The records that a result or an effect needs, and those that are the first to show a size:
    others refer to it by name. A collective that may start early has no effect but its result.
    """
    wanted = set(program.results) | binders(program)
    records = []
    for record in reversed(program.records):
        if record in wanted or (has_effect(record) and record.attrs.get("early") is None):
            wanted.update(record.inputs)
            records.append(record)
    return records[::-1]


def silent(program: Program) -> Program:
    """The program without records that only have an effect: a derivative computes it again."""
    used = {r for record in program.records for r in record.inputs} | set(program.results)
    records = [r for r in program.records if not r.op.effect or r in used]
    return in_regions(replace(program, records=records), silent)
