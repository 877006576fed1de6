"""The records behind each line of a kernel's C.

A kernel is written again while the slot `codegen.statements` notes, for each statement, the records
whose values stand in it. Lines that a template has by hand belong to the record it is for.
"""

import re

from ...engine.codegen.kernel import EMITTERS, group_emitter
from ...engine.codegen.scalar import C_NAMES, ScalarText, bare
from ...engine.core.record import Record
from ...engine.core.slots import SLOTS
from ...engine.ir.control import fused

BRACES = re.compile(r"[{}\s]*$|#pragma|/\*|//")
"""Lines that compute nothing."""


def owners_of_lines(record: Record, source: str, write) -> dict[int, list[Record]]:
    """For lines of a kernel's text, counted from 0, the records that they compute; nothing if
    `write()`, which writes the kernel of the record again, writes another text.
    """
    slot, notes = SLOTS["codegen.statements"], []
    before = slot.get()

    def noting(roots, fresh, apart=False):
        lines, values = slot.reference(roots, fresh, apart)
        notes.extend(own_statements(roots, lines, values))
        return lines, values

    slot.set(noting)
    try:
        kernel = write()
    finally:
        slot.set(before)
    if kernel is None or kernel.source != source:
        return {}
    return spread_notes(source.split("\n"), notes, find_by_hand(record))


def own_statements(roots, lines, values) -> list[tuple[str, list[Record]]]:
    """(end of a line of C, records): of each statement, then of the store of each root.

    The walk is the one that `statements` does: a value whose statement comes next has its name.
    """
    owner, known, notes, stores = owners_of_values(roots), {}, [], []
    left = iter([*lines, ""])
    following = next(left)

    def write(x: ScalarText) -> tuple[str, dict]:
        nonlocal following
        if id(x) in known:
            return known[id(x)]
        parts = [write(a) for a in x.args]
        text = x.template.format(*[text for text, _ in parts]) if parts else x.template
        mine = {r: None for _, records in parts for r in records} | {owner.get(id(x)): None}
        head, equals, value = following.partition(" = ")
        if equals and value == f"{bare(text)};" and head.startswith(f"const {C_NAMES[x.dtype]} "):
            notes.append((following, [r for r in mine if r is not None]))
            text, mine, following = head.split()[-1], {}, next(left)
        known[id(x)] = text, mine
        return known[id(x)]

    for root, value in zip(roots, values, strict=True):
        mine = write(root)[1] or {owner.get(id(root)): None}
        stores.append((bare(value), [r for r in mine if r is not None]))
    return notes + stores


def owners_of_values(roots) -> dict[int, Record]:
    """The record that each part of the expressions is computed for: the one whose formula it is."""
    owner, todo = {}, [(root, None) for root in roots]
    while todo:
        x, around = todo.pop()
        mine = x.of or around or next((a.of for a in x.args if a.of), None)
        if id(x) not in owner or x.of:
            owner[id(x)] = mine
        todo += [(a, mine) for a in x.args if id(a) not in owner]
    return owner


def spread_notes(lines: list[str], notes, by_hand: list[Record]) -> dict[int, list[Record]]:
    """Notes, which are in the order of the text, on the lines that they were written to."""
    owners, at = {}, 0
    for text, records in filter(lambda note: note[0] and note[1], notes):
        for k in range(at, len(lines)):
            line = lines[k].strip()
            if line == text or line.endswith((f"= {text};", f"({text});")):
                owners[k], at = records, k + 1
                break
    if by_hand:
        rest = (k for k, line in enumerate(lines) if k not in owners and not BRACES.match(line))
        owners |= dict.fromkeys(rest, by_hand)
    return owners


def find_by_hand(record: Record) -> list[Record]:
    """The records that a kernel's own emitter computes, beside the statements of a loop nest."""
    if record.op is not fused:
        return [record] if record.op.name in EMITTERS else []
    if group_emitter(record) is None:
        return []
    region = record.attrs["region"].records
    return [r for r in region if r.op.kind not in ("elementwise", "movement")] or region
