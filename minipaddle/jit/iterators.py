"""Python's iterators where a tensor says when a loop over them ends.

The loop is unrolled: the trace takes all items, a run of the program uses only some of them.
"""

from __future__ import annotations

import gc
import sys
from inspect import CO_OPTIMIZED
from operator import length_hint

from ..engine.core.errors import inside, user_frame
from ..engine.eager.tracer import trace
from ..engine.jit.refusal import refusal
from .snapshot import Snapshot, named, names_in

ENDLESS, UNSIZED = 10_000, 256
"""So many items are taken of an iterator that says how many it has, and of one that does not."""


def bounded(steps):
    """The items of an iterator; refuse one that does not end, or that somebody else uses too."""
    limit = ENDLESS if sized(steps) else UNSIZED
    for k, item in enumerate(steps):
        if not k and (used := shared(steps)):
            raise refusal(
                f"a loop that a tensor may end, over {used}: how many items it takes from that, "
                "only a run knows",
                hint="loop over a list of its items: for x in list(it)",
            )
        if k == limit:
            raise refusal(
                f"a loop over a Python iterator ({type(steps).__name__}) did not end in {limit} "
                "rounds, and only a tensor can end it",
                hint="loop over range(n) or a list, or write `while`",
            )
        yield item


def sources(steps) -> list:
    """The iterators from which an iterator takes its items."""
    inside = gc.get_referents(steps)
    inside += [y for x in inside if type(x) in (tuple, list) for y in gc.get_referents(x)]
    return [x for x in inside if hasattr(type(x), "__next__")]


def sized(steps) -> bool:
    """Does an iterator know how many items it has, or one that ends when it does?"""
    if length_hint(steps, -1) >= 0:
        return True
    return type(steps) in (zip, enumerate, map, filter) and any(map(sized, sources(steps)))


def shared(steps) -> str:
    """The name of what a loop takes its items from, if a variable of the user's holds it."""
    family, frame, variables = [steps], user_frame(), {}
    for each in family:
        family += [x for x in sources(each) if not any(x is y for y in family)]
    while frame is not None and frame.f_code is not trace.__code__:
        if not inside(frame):
            names = names_in(frame.f_code)
            variables |= dict(named(names, frame.f_globals, [frame.f_globals])) | local(frame)
        frame = frame.f_back
    around = Snapshot([*variables.values()])
    called = {id(x): f"`{name}`" for name, x in variables.items()}
    return next((called.get(id(x)) or around.name(x) for x in family if around.knows(x)), "")


def local(frame) -> dict:
    """The variables of a frame. Python 3.11 and 3.12 keep the dict: emptied, it holds no object."""
    kept = frame.f_locals
    found = dict(kept)
    of_function = frame.f_code.co_flags & CO_OPTIMIZED and type(kept) is dict
    if of_function and sys.getrefcount(kept) <= ALONE:  # the user has not called `locals()`
        kept.clear()
    return found


ALONE = 3
"""References to that dict: the frame, a variable, an argument."""
