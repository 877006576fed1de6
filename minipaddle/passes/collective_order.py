"""The order in which ranks start collectives: what a pass must not turn round.

`partition` gives each collective a place, `early`, and ranks start them in the order of places,
which is not that of the program: the sum of a gradient stands where the optimizer reads it. A pass
that makes a record wait for another one must not let a collective wait for one with a later place.
"""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.ir.program import Program
from ..engine.passes.async_collectives import LATEST, place_of

FIRST = (float("-inf"),)
"""A place before all others."""


def places_needed(program: Program) -> dict[Record, tuple]:
    """For each record the latest place of the collectives that it is computed from, or is."""
    places: dict[Record, tuple] = {}
    for record in program.records:
        before = (places[x] for x in record.inputs if x in places)
        places[record] = max((place_of(record) or FIRST, *before))
    return places


def places_to_come(program: Program) -> list[tuple]:
    """For each time the first place of the collectives that stand there or later."""
    places = [LATEST]
    for record in reversed(program.records):
        places.append(min(places[-1], place_of(record) or LATEST))
    return places[::-1]


def find_sends(program: Program, users: dict) -> set[Record]:
    """The collectives, and the movements that lead to them alone. They stand late, and start early:
    nothing may hold them up.
    """
    sends: set[Record] = set()
    for record in reversed(program.records):
        moves = record.op.kind == "movement" and record in users
        if place_of(record) or (moves and sends.issuperset(users[record])):
            sends.add(record)
    return sends


def in_order(program: Program) -> bool:
    """Whether no collective has to start before one that it needs."""
    needed = places_needed(program)
    return all(needed[r] == place for r in program.records if (place := place_of(r)))
