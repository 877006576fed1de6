"""The arena of a library: what lies where in it, and how a run is told."""

from ..engine.core.slots import slot
from .weights import align


@slot("export.lay_out")
def lay_out(pointers: int, sizes: list[int], work: int) -> tuple[list[int], int, int]:
    """(where each of some arrays lies, where the values of the memory plan begin, the bytes of the
    arena), all in bytes.

    First come 64 bytes and the table of pointers, then the arrays, whose sizes these are, in their
    order, then `work` bytes of the plan; each begins at a multiple of 64.
    """
    places, at = [], align(64 + 8 * pointers)
    for size in sizes:
        places.append(at)
        at += align(size)
    return places, at, align(at + work)


@slot("export.bind_state")
def bind_state(k: int, at: int, nbytes: int, place: int | None, updated: bool) -> list[str]:
    """Statements of C that set pointer k to a state, which begins at byte `at` of the file.

    `place` is where it lies in the arena; None: a run reads it where it lies in the file. One that
    a run updates begins with the values of the file.
    """
    if place is None:
        return [f"own->all[{k}] = file + {at};"]
    copied = [f"memcpy(here + {place}, file + {at}, {nbytes});"] if updated else []
    return [*copied, f"own->all[{k}] = here + {place};"]
