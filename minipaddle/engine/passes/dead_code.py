"""Dead code: records and constants whose values nothing needs are left out, in regions too.

A record with an effect stays, and so does the first record to show a size that others refer to.
"""

from __future__ import annotations

from ..ir.cut import needed
from ..ir.edit import count_uses, in_regions, with_records
from ..ir.program import Program
from .folding import ConstantStorage
from .registry import program_pass


@program_pass("dead_code", looks_for=["unused values"])
def dead_code(program: Program) -> Program:
    """The program without the records that neither a result nor an effect needs."""
    whole = in_regions(program, dead_code)
    return without_constants(with_records(whole, needed(whole), {}))


def without_constants(program: Program) -> Program:
    """The program without unused constants. (Its other states belong to the caller.)"""
    constants = [s for s in program.states if isinstance(s.storage, ConstantStorage)]
    used = count_uses(program) if constants else {}
    unused = [s for s in constants if not used[s.record]]
    if not unused:
        return program
    states = [s for s in program.states if s not in unused]
    return Program(**vars(program) | {"states": states})
