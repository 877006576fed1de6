"""When a row of a table is let in: rare features take no memory and learn nothing."""

from ...engine.core.errors import type_error, value_error
from ...ops.random import stream


class CountFilterEntry:
    """An entry that lets a row in after `count_filter` sights of its id in training batches.
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
    """An entry that lets a row in with this probability at each sight of its id in training.

    Seed, row and the number of sights determine the draw: a run can be repeated.

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
    """Whether a row is let in after `before` earlier sights, with `seen` now."""
    entry_kind, number = config["entry"]
    if entry_kind == "count":
        return seen >= number
    of_row = stream(config["base"], row)
    return any(fraction(stream(of_row, k)) < number for k in range(before, seen))


def fraction(bits: int) -> float:
    """A number of [0, 1) from 64 bits."""
    return (bits % 2**64 >> 11) / 2**53
