"""The programs of the ranks of a captured step on tensors in pieces: how values lie, what moves.

`ExecutableCache.parts` has the programs of the ranks that called the function. How a value in the
middle of it lies is no part of the program; so the partitioner runs once more, and is asked.
"""

from itertools import islice, product
from typing import NamedTuple

from ...engine.core.record import Record
from ...engine.ir.program import Program
from ...engine.passes.manager import optimized, run_pass, survey, switches_of
from ...engine.passes.partition import Partitioner
from ...engine.sharding.pieces import MeshView
from ..program import count_received, is_collective, letter

MOST = 16
"""Ranks of a mesh of which a page has the programs, if they did not call the function."""


class RankProgram(NamedTuple):
    """The program of a rank, how it sees the mesh, and the placements of its values."""

    rank: int
    program: Program
    view: MeshView
    placements: dict[Record, str]

    def rows(self) -> list[tuple]:
        """(record, placements, collective, bytes that the rank receives) of each record."""
        rows = []
        for record in self.program.records:
            received = axis = ""
            if is_collective(record):
                k = self.view.groups.index(record.attrs["group"])
                axis = f"{record.op.name} along mesh dimension {self.view.mesh.dim_names[k]}"
                received = count_received(record, self.view.shape[k])
            rows.append((record, self.placements.get(record, ""), axis, received or 0))
        return rows


def rank_programs(captured) -> list[RankProgram]:
    """The programs of the ranks of a mesh, as the last placements of arrays wanted them. Where each
    rank made its own function, the others' programs are those that it would have made for them.
    """
    last = {}
    for (program, view, *placements), (part, _) in captured.executables.parts.items():
        last[view.place] = program, view, placements, part
    program, view, placements, _ = next(iter(last.values()))
    for place in islice(product(*map(range, view.shape)), MOST):
        last.setdefault(place, (program, view._replace(place=place), placements, None))
    return [describe(captured, *each) for _, each in sorted(last.items())]


def describe(captured, program, view: MeshView, placements, part: Program | None) -> RankProgram:
    """One rank's program with the placements of its values; None: it is written now."""
    chosen = switches_of(captured.executables.strategy)
    lowered = optimized(program, chosen, until="decompose").program
    lowered = run_pass("cse", lowered, chosen, survey(lowered, {}))
    again = Partitioner(lowered, view)
    twin, _ = again.run(placements, captured.terms)
    part = part or twin
    lies = {}
    for pieces in again.pieces.values():
        for piece in pieces if type(pieces) is tuple else (pieces,):
            for placed, local in piece.copies.items():
                lies[again.value(local.array)] = ", ".join(map(letter, placed))
    twins = zip(twin.records, part.records, strict=True)
    known = {record: lies[other] for other, record in twins if other in lies}
    known |= {r: ", ".join(map(letter, p)) for r, p in zip(part.given, placements)}
    return RankProgram(int(view.mesh.mesh[view.place]), part, view, known)
