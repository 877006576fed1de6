"""Buckets: the few batches that are compiled, and the rows that fill the rest of one."""

from collections.abc import Sequence

from ..engine.core.slots import slot


@slot("inference.bucket_for")
def bucket_for(rows: int, buckets: Sequence[int]) -> int:
    """The batch that serves `rows` rows: the smallest bucket that holds them, or a batch of their
    own if none does. `buckets` may have any order.
    """
    return min([n for n in buckets if n >= rows], default=rows)


@slot("inference.fill")
def fill(memory, arrays: Sequence) -> list[slice]:
    """Put the rows of some arrays one after the other into `memory`, and give the position of each.

    The last row is repeated to the end of the memory: it is valid data, which no operator refuses.
    Without any row the memory keeps its content.
    """
    places, at = [], 0
    for array in arrays:
        places.append(slice(at, at + len(array)))
        memory[places[-1]] = array
        at += len(array)
    if 0 < at < len(memory):
        memory[at:] = memory[at - 1]
    return places
