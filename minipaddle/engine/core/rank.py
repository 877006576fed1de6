"""Settings of each rank, where several ranks are threads of one process.

A rank that is a process has its own generator, default dtype and names. A rank that is a thread
needs them too: such a setting is created with `per_rank`. Threads that are no ranks share one.
"""

from __future__ import annotations

import threading
from copy import copy
from hashlib import blake2b


class PerRank(threading.local):
    """A setting; `now` is its value on this thread."""

    def __init__(self, shared: list):  # called again in each thread, with the same list
        self.box = shared

    @property
    def now(self):
        return self.box[0]

    @now.setter
    def now(self, value) -> None:
        self.box[0] = value


SETTINGS: list[PerRank] = []
NAMED: dict[str, PerRank] = {}


def per_rank(value, name: str = "") -> PerRank:
    """A setting that begins as `value`; one that users set has a name."""
    SETTINGS.append(PerRank([value]))
    if name:
        NAMED[name] = SETTINGS[-1]
    return SETTINGS[-1]


def own_settings() -> None:
    """Make this thread a rank: from now on no other thread sees its settings.

    >>> import threading
    >>> from minipaddle.engine.core.rank import own_settings
    >>> def rank():
    ...     own_settings()
    ...     paddle.set_default_dtype("float64")
    >>> thread = threading.Thread(target=rank)
    >>> thread.start(); thread.join()
    >>> paddle.get_default_dtype()
    'float32'
    """
    for setting in SETTINGS:
        setting.box = [copy(setting.now)]


among = per_rank((0, 1))
"""(rank, number of ranks) of the code that runs."""


def hash_64(*things) -> int:
    """A 64-bit hash of some things; the same in all processes."""
    return int.from_bytes(blake2b(repr(things).encode(), digest_size=8).digest(), "little")


class Cause:
    """The operator that makes an array in pieces, or that the collectives in its `with` serve.

    `number` stands for it, for all on which it depends, and for the values of these: the same in
    all ranks. A collective of ranks with other numbers fails in all; its error has the text that
    `show(*given)` makes.
    """

    def __init__(self, number: int, show, *given):
        self.number, self.show, self.given = number, show, given

    def __enter__(self):
        self.before, cause.now = cause.now, self
        return self

    def __exit__(self, *exc):
        cause.now = self.before

    def __str__(self) -> str:
        return self.show(*self.given)


NO_CAUSE = Cause(0, str)
cause = per_rank(NO_CAUSE)
"""That of the collectives that a rank calls now."""
