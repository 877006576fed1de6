"""The inputs of a region to which gradients flow back, found before any is computed.

A value that leads to none of the given results has no cotangent. A cotangent of zeros would not be
the same: zero times an infinite derivative is NaN.
"""

from __future__ import annotations

from . import control
from .program import ITEM, Program


def find_reached(region: Program, outputs) -> set[int]:
    """The inputs (their numbers) to which gradients of these outputs (theirs) flow back."""
    places = {region.outputs[k]: set() for k in outputs}  # record -> the places of its results
    for record in reversed(region.records):
        if record not in places:
            continue
        if record.op is ITEM:
            places.setdefault(record.inputs[0], set()).add(record.attrs["k"])
            continue
        for k in leading(record, places[record]):
            if record.saved >> k & 1:
                places.setdefault(record.inputs[k], set())
    return {k for k, record in enumerate(region.inputs) if record in places}


def leading(record, results: set[int]):
    """The inputs of a record on which these results of it may depend, in order."""
    if record.op is control.cond:
        sides = (find_reached(record.attrs[side], results) for side in ("true", "false"))
        return sorted(k + 1 for k in set().union(*sides))
    if record.op is control.while_loop:
        return sorted(around(record, results))
    return range(len(record.inputs))


def around(record, results) -> set[int]:
    """The inputs of a loop that lead to its results or stacks after any number of iterations."""
    n = record.attrs["carried"]
    reached = {k if k < n else k - n - 1 for k in results} - {-1}
    while True:
        more = find_reached(record.attrs["body"], {k for k in reached if k < n}) | reached
        if more == reached:
            return reached
        reached = more
