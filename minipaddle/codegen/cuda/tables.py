"""Kernels that find the addresses of operands in memory.

So equal kernels for single numbers are one launch, and a captured graph reads inputs and writes
outputs that lie elsewhere in each call.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ...engine.core.record import Record
from ...engine.ir.control import fused
from ...engine.ir.edit import count_uses
from ...engine.ir.program import NUMBER, Program
from .calls import Launch, Operand
from .text import launch


def find_number_updates(program: Program) -> list[Record]:
    """The records that only update a state of one element, from itself and from single elements
    that no record updates in place. Nothing waits for them.
    """
    uses = count_uses(program)
    states = {s.update: s.record for s in program.states if s.update is not None}
    changing, small = {*states.values()}, []
    for record in program.records:
        own, read = states.get(record), {x for x in record.inputs if x.op is not NUMBER}
        if own not in read or uses[record] > 1 or any(x.spec.size != 1 for x in (record, *read)):
            continue
        if (record.op is fused or record.op.kind == "elementwise") and read & changing == {own}:
            small.append(record)
    return small


def move_last(program: Program, last: set[Record]) -> Program:
    """The program with these records at its end, where nothing else writes into the arena."""
    records = sorted(program.records, key=last.__contains__)
    return replace(program, records=records)


def join_launches(name: str, call: Launch, records: list[Record]) -> Launch:
    """The kernel of `call` at the operands of each of these records: row blockIdx.y of a table has
    their addresses.
    """
    parameters, body = split_kernel(call.source)
    lines = [f"    table += blockIdx.y * {len(parameters)};"]
    for k, parameter in enumerate(parameters):
        kind, _, variable = parameter.rpartition("*")
        lines.append(f"    {kind}*{variable} = ({kind}*)table[{k}];")
    lines.append(body)
    memory = [o._replace(of=record) for record in records for o in call.given]
    blocks = call.blocks[0], len(records)
    table, more = ["void *const *table"], (blocks, call.threads, memory, call.helpers)
    return launch(name, table, lines, *more)._replace(table=True)


def read_slots(name: str, call: Launch, slots: list[Operand | None]) -> Launch:
    """The kernel of `call`, which reads the addresses of those operands that have a slot there."""
    parameters, body = split_kernel(call.source)
    pairs, lines = [*zip(parameters, slots, strict=True)], []
    for k, (parameter, at) in enumerate(pairs):
        if at is not None:
            kind, _, variable = parameter.rpartition("*")
            parameters[k] = f"{kind}*const *{variable}__at"
            lines.append(f"    {kind}*{variable} = *{variable}__at;")
    memory = [at or operand for operand, at in zip(call.given, slots, strict=True)]
    more = call.blocks, call.threads, memory, call.helpers
    return launch(name, parameters, [*lines, body], *more)


def split_kernel(source: str) -> tuple[list[str], str]:
    """The parameters of a kernel, and its body."""
    head, _, body = source.partition("\n{\n")
    _, parameters = re.fullmatch(r"(.*) \w+\((.*)\)", head).groups()
    return parameters.split(", "), body.removesuffix("\n}\n")
