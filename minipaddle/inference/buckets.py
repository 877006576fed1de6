"""Buckets: the few batches that are compiled, and the rows that fill the rest of one."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.core.slots import slot


@slot("inference.bucket_for")
def bucket_for(rows: int, buckets: Sequence[int]) -> int:
    """The batch that serves so many rows: the smallest bucket that holds them, or a batch of their
    own if none does. `buckets` may have any order.
    """
    return min((n for n in buckets if n >= rows), default=rows)


@slot("inference.fill")
def fill(memory, arrays: Sequence) -> list[slice]:
    """Put the rows of some arrays one after the other into `memory`, and say where each lies.

    What is left of the memory repeats the last of their rows: valid data, which no operator
    refuses. Without any row it stays as it is.
    """
    places, at = [], 0
    for array in arrays:
        places.append(slice(at, at + len(array)))
        memory[places[-1]] = array
        at += len(array)
    if 0 < at < len(memory):
        memory[at:] = memory[at - 1]
    return places
