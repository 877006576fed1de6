"""What of a record's inputs names places in others: looked at before anything is read there.

A place that is out of range is never read or written. In C the kernel counts it in the file's
`bad_index`: if that is not what it was, the host is asked to compute the record, and says what is
wrong; a run on another thread, of the same program, asks in vain. In CUDA a kernel of its own
(`look`) says that there is one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ..engine.codegen.kernel import C_TYPES
from ..engine.codegen.scalar import CannotWrite
from ..engine.ops.movement import reshape
from ..engine.ops.ordering import after
from .target import KERNELS, Target


class Places(NamedTuple):
    """Whole numbers that name places: input `k` of a record, below `size`. Negative ones may count
    from the end (`wraps`); one number may say that there is none (`ignored`).
    """

    k: int
    size: int
    wraps: bool = True
    ignored: int | None = None


class PlaceReader(Target):
    """Reads off a definition which places it goes by, and writes nothing."""

    types = C_TYPES

    def __init__(self, record):
        super().__init__(record, "")
        self.found: list[Places] = []

    def place(self, k, size, wraps=True, ignored=None, instead="", i="i") -> str:
        self.found.append(Places(k, size, wraps, ignored))
        return ""

    def clear_slice(self, to, count) -> str:
        return ""

    def scatter(self, slices, value, adds) -> None:
        self.place(1, slices.size)

    def windows(self, image):
        raise CannotWrite("windows lie at no places")


def places_of(record) -> list[Places]:
    """What of a record's inputs names places."""
    reader = PlaceReader(record)
    with suppress(CannotWrite):  # then the host computes it, and finds out
        KERNELS.get(record.op.name, lambda target: None)(reader)
    return reader.found


class Looked:
    """The places that were looked at so far: whoever is given the same numbers need not fear them.

    (The forward comes first, and the backward is as lenient.)
    """

    def __init__(self):
        self.at: dict = {}

    def add(self, index, places: Places) -> bool:
        """Must these be looked at? Numbers are the same at another time, in another shape."""
        while index.op in (after, reshape):
            index = index.inputs[0]
        before = self.at.setdefault(index, [])
        known = any(old.size == places.size and covers(old, places) for old in before)
        before += [] if known else [places]
        return not known


def covers(old: Places, new: Places) -> bool:
    """Is what the old ones allow allowed by the new ones, of the same size?"""
    return (new.wraps or not old.wraps) and old.ignored in (None, new.ignored)


def checked(records):
    """Those of the records whose places an earlier one has looked at."""
    looked = Looked()
    for record in records:
        new = [looked.add(record.inputs[p.k], p) for p in places_of(record)]
        if not any(new):
            yield record
