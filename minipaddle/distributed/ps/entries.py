"""When a row of a table is let in: rare features take no memory and learn nothing."""

from __future__ import annotations

from ...engine.core.errors import type_error, value_error
from ...ops.random import stream


class CountFilterEntry:
    """A row is let in when its id was seen `count_filter` times in batches that were trained on.
    Until then it is zero and gets no gradient.

    >>> paddle.distributed.CountFilterEntry(10)
    CountFilterEntry(10)
    """

    def __init__(self, count_filter: int):
        if type(count_filter) is not int or count_filter < 0:
            raise value_error(f"CountFilterEntry({count_filter!r})", expected="0, 1, 2, …")
        self.config = ["count", count_filter]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config[1]})"


class ProbabilityEntry(CountFilterEntry):
    """A row is let in with this probability each time its id is seen in a batch that is trained on.

    The draw follows from the seed, the row and how often it was seen: a run can be repeated.

    >>> paddle.distributed.ProbabilityEntry(0.1)
    ProbabilityEntry(0.1)
    """

    def __init__(self, probability: float):
        if type(probability) is not float or not 0 < probability < 1:
            raise value_error(
                f"ProbabilityEntry({probability!r})", expected="a float between 0 and 1"
            )
        self.config = ["probability", probability]


def entry_config(entry) -> list | None:
    """An entry as data."""
    if entry is not None and not isinstance(entry, CountFilterEntry):
        raise type_error(f"entry={entry!r}", expected="CountFilterEntry, ProbabilityEntry or None")
    return None if entry is None else entry.config


def admits(config: dict, row: int, before: int, seen: int) -> bool:
    """Whether a row is let in that was seen `before` times, and now is `seen` times."""
    kind, number = config["entry"]
    if kind == "count":
        return seen >= number
    of_row = stream(config["base"], row)
    return any(fraction(stream(of_row, k)) < number for k in range(before, seen))


def fraction(bits: int) -> float:
    """A number of [0, 1) from 64 bits."""
    return (bits % 2**64 >> 11) / 2**53
