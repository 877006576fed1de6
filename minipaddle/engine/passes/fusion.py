"""Fusion: records that one loop nest can compute become one group, a `fused` record with a region.

The cost of a kernel is its memory traffic: a value that stays inside a group is never stored.
`fusion_groups` joins groups, then `sink_into_consumer` moves values from one group to another.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.record import Record
from ..ir.edit import in_branches, substitute, with_records
from ..ir.program import ITEM, Program, open_sizes
from ..ops.movement import WHOLE, slice_, split, unstack
from .fusion_groups import Fusion
from .registry import program_pass
from .sink_into_consumer import sink_into_consumer

SEPARATE: dict[str, Callable[[Record, Record], bool]] = {}
"""For a switch of the pass, which values and users no group may hold together while it is off."""


def slice_pieces(program: Program) -> Program:
    """The program with slices instead of each `split` and `unstack`."""
    new: dict[Record, Record] = {}
    records = []
    for r in program.records:
        if r.op is ITEM and r.inputs[0].op in (split, unstack):
            whole, axis, k = r.inputs[0], r.inputs[0].attrs["axis"], r.attrs["k"]
            start = sum(whole.attrs["sizes"][:k]) if whole.op is split else 0
            piece = (start, start + r.shape[axis], 1) if whole.op is split else k
            index = (*WHOLE[:axis], piece)
            x = new.get(whole.inputs[0], whole.inputs[0])
            new[r] = r.derive(slice_, [x], {"index": index}, r.spec, r.saved)
            records.append(new[r])
        elif r.op not in (split, unstack):
            records.append(substitute(r, new))
    return with_records(program, records, new)


def build_groups(program: Program, apart=()) -> Program:
    """The program, its branches and loops too, with groups. No group holds a value and its user
    if a rule of `apart` is true of them.
    """
    program = in_branches(program, lambda region: build_groups(region, apart))
    fusion = Fusion(slice_pieces(program), apart)
    fusion.join_all()
    sink_into_consumer(fusion)
    return fusion.program_of_groups()


@program_pass(
    "fusion",
    looks_for=["linked records"],
    enable_auto_fusion=(True, "off, each record is a loop of its own"),
)
def fuse(program: Program, *, enable_auto_fusion: bool, **switches: bool) -> Program:
    """The program with groups of records that one loop nest computes."""
    if not enable_auto_fusion or open_sizes(program):  # loops are of numbers
        return program
    return build_groups(
        program, [rule for name, rule in SEPARATE.items() if not switches.get(name, True)]
    )
