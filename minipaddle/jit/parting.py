"""Containers that a condition or a loop on a tensor parts: on one way a name keeps its list or
dict, on the other it is bound to a new one, and afterwards it holds a third, chosen from both.

Who else holds the old one would see, on one of the two ways, what is written to the name's. Only a
run knows which, so such a write is refused.
"""

from __future__ import annotations

import sys

from ..engine.core.dispatch import current
from ..engine.jit.leaves import alive
from ..engine.jit.tree import occurrences, parts
from .dy2static.utils import refusal
from .places import CONTAINERS, PARTED, Contents, journals, note
from .snapshot import references


def part(old, new, ids: set) -> None:
    """Note that `new` stands where `old` stood, for the containers in them that are in `ids`."""
    inside, others = parts(old), parts(new)
    if old is new or inside is None or others is None:
        return
    if id(old) in ids:
        groups = PARTED.setdefault(current.top, {})
        group = groups.get(id(old)) or [old]
        group += [new]
        groups |= dict.fromkeys(map(id, group), group)
    for a, b in zip(inside[1], others[1], strict=False):
        part(a, b, ids)


def before_write(owner) -> None:
    """Something in an object is about to be written; refuse it if only a run knows in which."""
    group = PARTED.get(current.top, {}).get(id(owner), ())
    if any(held(other) for other in group if other is not owner):
        kind = type(owner).__name__
        copied = f"{kind}(z)" if type(owner) in CONTAINERS else "copy.copy(z)"
        raise refusal(
            f"a write to a {kind} that a condition or a loop on a tensor chose: it may be another "
            f"{kind} that is used, too; only a run knows",
            hint=f"copy it before: z = {copied}",
        )
    if journals.open and type(owner) in CONTAINERS:
        note(Contents(owner))


def held(container) -> bool:
    """Does anybody hold it but its group, and the regions around, which know it?"""
    noted = [pair for region in journals.open for pair in region.values()]
    known = sum(
        (place.owner is container) + (value is container) + occurrences(container, value)
        for place, value in noted
    )
    known += sum(state.holds(container) for state in alive.states) + references(container)
    return sys.getrefcount(container) > HERE + known


HERE = 4
"""References while `held` asks: its group, the loop over that, two arguments."""
