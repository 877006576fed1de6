"""Settings of each rank, where several ranks are threads of one process.

A rank that is a process has its own generator, default dtype and names. A rank that is a thread
needs them too: such a setting is created with `per_rank`. Threads that are no ranks share one.
"""

from __future__ import annotations

import threading
from copy import copy


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

    >>> import minipaddle as paddle
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
