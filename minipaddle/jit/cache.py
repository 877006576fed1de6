"""The programs of one function: what each depends on, and why a call did not find one."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ..core import dtype as dt
from ..core import slots
from ..core.dim import COMPARE, at, symbols
from ..core.interpreter import current

SETTINGS = ("gradient recording", "the default dtype", "the number of plug-ins")


class Key(NamedTuple):
    """What must be equal for a program to serve again."""

    structure: str  # how the arguments are nested
    specs: tuple  # of the tensors: (shape, dtype, stop_gradient)
    values: tuple  # the other arguments: (type, value)
    settings: tuple  # see SETTINGS

    def differences(self, other: Key, names) -> list[str]:
        """In what this key differs from another, in words; `names` are those of the tensors."""
        if self.structure != other.structure:
            return [f"the arguments are {self.structure}, were {other.structure}"]
        found = []
        for name, a, b in zip(names, self.specs, other.specs, strict=False):
            for what, x, y in zip(("shape", "dtype", "stop_gradient"), a, b, strict=True):
                if x != y:
                    x, y = (list(v) if what == "shape" else v for v in (x, y))
                    found.append(f"{name} has {what} {x}, had {y}")
        for x, y in zip(self.values, other.values, strict=False):
            if x != y:
                found.append(f"an argument is {x[1]!r}, was {y[1]!r}")
        for what, x, y in zip(SETTINGS, self.settings, other.settings, strict=True):
            if x != y:
                found.append(f"{what} is {x}, was {y}")
        return found


def settings() -> tuple:
    """The settings a program depends on, as they are now."""
    return current.top.recording, dt.default(), slots.epoch


class Entry(NamedTuple):
    """A program in the cache; `hits` counts how often it served again."""

    captured: object
    hits: list


class Miss(NamedTuple):
    """A call that found no program: why, the how manieth call it was, and what tracing took."""

    reason: str
    call: int
    seconds: float


class Cache:
    """The programs of one function, by key; `misses` says why each was made."""

    def __init__(self):
        self.entries: dict[Key, list[Entry]] = {}
        self.misses: deque[Miss] = deque(maxlen=100)

    def find(self, key: Key, sizes: dict):
        """A program that serves for this key and these sizes, or None."""
        for captured, hits in self.entries.get(key, ()):
            if captured.fits() and (not sizes or allowed(captured.program, sizes)):
                hits[0] += 1
                return captured
        return None

    def add(self, key: Key, captured, names, seconds: float = 0.0) -> None:
        """Keep a program, and note why none of those before would do."""
        self.misses.append(Miss(self.reason(key, names), self.calls + 1, seconds))
        self.entries.setdefault(key, []).insert(0, Entry(captured, [0]))

    def reason(self, key: Key, names) -> str:
        """Why no program serves: in what the nearest one differs."""
        if key in self.entries:
            return self.beside_key(self.entries[key][0].captured)
        nearest = min((key.differences(k, names) for k in self.entries), key=len, default=None)
        return "the first call" if nearest is None else "; ".join(nearest)

    def beside_key(self, captured) -> str:
        """What else a program depends on and does not find as it was."""
        for layer, training in captured.layers:
            if layer.training is not training:
                now, was = ("training", "evaluation")[:: -1 if training else 1]
                return f"{type(layer).__name__} is in {now} mode, was in {was}"
        for was in captured.taken:
            if not was.holds():
                return str(was)
        if not captured.fits():
            return "a gradient that waits in .grad differs"
        return "a decision about an open size differs"

    @property
    def calls(self) -> int:
        """How often a program was asked for: each was missed once, then hit."""
        return len(self) + sum(e.hits[0] for entries in self.entries.values() for e in entries)

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))


def allowed(program, sizes: dict) -> bool:
    """Do the decisions a program was traced with hold for these sizes?"""
    for left, sign, right, answer in program.guards:
        known = symbols(left) | symbols(right) <= sizes.keys()
        if known and COMPARE[sign](at(left, sizes), at(right, sizes)) is not answer:
            return False
    return True
