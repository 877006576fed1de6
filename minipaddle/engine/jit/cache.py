"""The programs of one function, and what each depends on."""

from __future__ import annotations

import math
from collections import deque
from itertools import count
from numbers import Real
from types import FunctionType
from typing import NamedTuple

from ..core import dtype as dt
from ..core import slots
from ..core.dim import COMPARE, at, symbols
from ..core.dispatch import current, describe
from ..core.slots import slot
from ..eager.backward import AVERAGING
from ..eager.device import Place
from ..sharding.placements import Placement, ProcessMesh

VALUES = (Place, Placement, ProcessMesh)
"""Classes whose equal objects no function can distinguish."""


class Key(NamedTuple):
    """The facts that must be equal for a program to serve again."""

    structure: object  # how the arguments are nested
    places: tuple  # which of them are tensors
    specs: tuple  # of the tensors: (shape, dtype, stop_gradient)
    values: tuple  # the other arguments: see `constant`
    settings: tuple  # see `settings`


@slot("jit.cache_key")
def cache_key(leaves: list, structure, places: list, specs: list) -> Key:
    """The key of a call: `leaves` are its arguments, nested as `structure` says; those at `places`
    are tensors, with `specs`.
    """
    values = [constant(x) for k, x in enumerate(leaves) if k not in places]
    return Key(structure, tuple(places), tuple(specs), tuple(values), settings())


@slot("jit.cache_constant")
def constant(x) -> tuple:
    """The part of the key for an argument that is no tensor: equal for values that no function
    can distinguish. 0.0 differs from -0.0; an object without a hash equals only itself, and so does
    one whose class says in Python what is equal: it may be equal and another.
    """
    if isinstance(x, Real) and not isinstance(x, int):
        value = math.nan if x != x else x  # one object, since nan is not equal to nan
        return type(x), value, math.copysign(1.0, value)
    if type(type(x).__eq__) is FunctionType and not isinstance(x, VALUES):
        return type(x), Itself(x)
    try:
        hash(x)
    except TypeError:
        return type(x), Itself(x)
    return type(x), x


class Itself:
    """Equal to nothing but the same object."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other) -> bool:
        return isinstance(other, Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return describe(self.value)


@slot("jit.cache_settings")
def settings() -> tuple:
    """The settings a program depends on, as they are now."""
    return current.top.recording, dt.DEFAULT.now, slots.epoch, AVERAGING.now, current.top.policy


class Miss(NamedTuple):
    """A call that found no program: why, its number, and how long tracing took."""

    reason: str
    call: int
    seconds: float


REASONS = [lambda cache, key, names: "another kind of call"]
"""The last one says why a cache has no program for a key, whose arguments have these names."""

MOST = 128
"""How many programs of one function are kept; the least recently used one is dropped first."""


class ProgramCache:
    """The programs of one function, by key; `misses` says why each was made."""

    def __init__(self):
        self.entries: dict[Key, list] = {}  # the captured functions, the last one first
        self.misses: deque[Miss] = deque(maxlen=100)
        self.added = 0  # the programs, also those that were evicted since
        self.clock, self.evicted = count(), 0  # the hits of evicted programs

    def find(self, key: Key, sizes: dict):
        """A program that serves for this key and these sizes, or None."""
        for captured in self.entries.get(key, ()):
            if captured.fits() and (not sizes or allowed(captured.program.guards, sizes)):
                captured.hits[:] = captured.hits[0] + 1, next(self.clock)
                return captured
        return None

    def add(self, key: Key, captured, names, seconds: float = 0.0) -> None:
        """Keep a program, and note why no earlier one was valid."""
        reason = REASONS[-1](self, key, names) if self.entries else "the first call"
        captured.miss = Miss(reason, self.calls + 1, seconds)
        self.misses.append(captured.miss)
        if len(self) == MOST:
            self.evict()
        self.added += 1
        captured.hits[:] = 0, next(self.clock)
        self.entries.setdefault(key, []).insert(0, captured)

    def evict(self) -> None:
        """Forget the least recently used program."""
        oldest = min((e for row in self.entries.values() for e in row), key=lambda e: e.hits[1])
        key = next(key for key, row in self.entries.items() if oldest in row)
        self.entries[key].remove(oldest)
        self.evicted += oldest.hits[0]
        if not self.entries[key]:
            del self.entries[key]

    @property
    def calls(self) -> int:
        """The number of calls: each program was missed once, and hit later."""
        hits = sum(e.hits[0] for entries in self.entries.values() for e in entries)
        return self.added + self.evicted + hits

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))


@slot("jit.allowed")
def allowed(guards, sizes: dict) -> bool:
    """Whether the decisions of the trace hold for these sizes."""
    for left, sign, right, answer in guards:
        known = symbols(left) | symbols(right) <= sizes.keys()
        if known and COMPARE[sign](at(left, sizes), at(right, sizes)) is not answer:
            return False
    return True
