"""The programs of one function: what each depends on, and why a call did not find one."""

from __future__ import annotations

import math
from collections import deque
from itertools import count
from numbers import Real
from typing import NamedTuple

from ..core import dtype as dt
from ..core import slots
from ..core.dim import COMPARE, at, symbols
from ..core.dispatch import current
from ..core.slots import slot
from ..eager.backward import AVERAGING
from ..eager.tensor import Tensor
from .tree import LEAF, describe

SETTINGS = (
    "gradient recording", "the default dtype", "the number of plug-ins", "averaging of gradients",
    "mixed precision",
)  # fmt: skip


class Key(NamedTuple):
    """What must be equal for a program to serve again."""

    structure: object  # how the arguments are nested
    places: tuple  # which of them are tensors
    specs: tuple  # of the tensors: (shape, dtype, stop_gradient)
    values: tuple  # the other arguments: see `constant`
    settings: tuple  # see SETTINGS

    @property
    def text(self) -> str:
        """How the arguments are nested: `*` is a tensor, `_` anything else."""
        signs = (LEAF if k in self.places else "_" for k in count())
        return describe(self.structure, signs)

    def differences(self, other: Key, names) -> list[str]:
        """How this key differs from another, in words; `names` are those of the arguments."""
        if (self.structure, self.places) != (other.structure, other.places):
            again = ", of another class of that name" * (self.text == other.text)
            return [f"the arguments are {self.text}{again}, were {other.text}"]
        found, tensors = [], [names[k] for k in self.places]
        for name, a, b in zip(tensors, self.specs, other.specs, strict=False):
            for what, x, y in zip(("shape", "dtype", "stop_gradient"), a, b, strict=True):
                if x != y:
                    x, y = (list(v) if what == "shape" else v for v in (x, y))
                    found.append(f"{name} has {what} {x}, had {y}")
        others = [name for k, name in enumerate(names) if k not in self.places]
        for name, x, y in zip(others, self.values, other.values, strict=False):
            if x != y:
                found.append(f"{name} is {x[1]!r}, was {y[1]!r}")
        for what, x, y in zip(SETTINGS, self.settings, other.settings, strict=False):
            if x != y:
                found.append(f"{what} is {x}, was {y}")
        return found


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
    can distinguish. 0.0 differs from -0.0; an object without a hash equals only itself.
    """
    if isinstance(x, Real) and not isinstance(x, int):
        value = math.nan if x != x else x  # one object, since nan is not equal to nan
        return type(x), value, math.copysign(1.0, value)
    if isinstance(x, Tensor):  # it has a hash, but == compares what is in it
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
        return repr(self.value)


@slot("jit.cache_settings")
def settings() -> tuple:
    """The settings a program depends on, as they are now."""
    return current.top.recording, dt.DEFAULT.now, slots.epoch, AVERAGING.now, current.top.policy


class Miss(NamedTuple):
    """A call that found no program: why, its number, and how long tracing took."""

    reason: str
    call: int
    seconds: float


class Entry(NamedTuple):
    """A program in the cache; `hits` are the number of its hits and the time of the last one."""

    captured: object
    hits: list
    miss: Miss


MOST = 128
"""How many programs of one function are kept; the least recently used one is dropped first."""


class Cache:
    """The programs of one function, by key; `misses` says why each was made."""

    def __init__(self):
        self.entries: dict[Key, list[Entry]] = {}
        self.misses: deque[Miss] = deque(maxlen=100)
        self.added = 0  # the programs, also those that were evicted since
        self.clock, self.evicted = count(), 0  # the hits of evicted programs

    def find(self, key: Key, sizes: dict):
        """A program that serves for this key and these sizes, or None."""
        for captured, hits, _ in self.entries.get(key, ()):
            if captured.fits() and (not sizes or allowed(captured.program.guards, sizes)):
                hits[:] = hits[0] + 1, next(self.clock)
                return captured
        return None

    def add(self, key: Key, captured, names, seconds: float = 0.0) -> None:
        """Keep a program, and note why no earlier one was valid."""
        miss = Miss(self.reason(key, names), self.calls + 1, seconds)
        self.misses.append(miss)
        if len(self) == MOST:
            self.evict()
        self.added += 1
        captured.hits[:] = 0, next(self.clock)
        self.entries.setdefault(key, []).insert(0, Entry(captured, captured.hits, miss))

    def evict(self) -> None:
        """Forget the least recently used program."""
        oldest = min((e for found in self.entries.values() for e in found), key=lambda e: e.hits[1])
        key = next(key for key, found in self.entries.items() if oldest in found)
        self.entries[key].remove(oldest)
        self.evicted += oldest.hits[0]
        if not self.entries[key]:
            del self.entries[key]

    def reason(self, key: Key, names) -> str:
        """Why no program is valid: how the nearest one differs."""
        if key in self.entries:
            return self.reason_beside_key(self.entries[key][0].captured)
        nearest = min((key.differences(k, names) for k in self.entries), key=len, default=None)
        return "the first call" if nearest is None else "; ".join(nearest)

    def reason_beside_key(self, captured) -> str:
        """What else has changed of all that a program depends on."""
        for layer, training in captured.layers:
            if layer.training is not training:
                now, was = ("training", "evaluation")[:: -1 if training else 1]
                return f"{type(layer).__name__} is in {now} mode, was in {was}"
        for was in captured.taken:
            if not was.holds():
                return str(was)
        x, condition = captured.violation() or (None, "")
        if condition in ("flows", "stops"):
            return f"{x.name}.stop_gradient is {x.stop_gradient}, was {not x.stop_gradient}"
        if condition:
            return "a gradient that waits in .grad differs"
        return "a decision about an open size differs"

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
