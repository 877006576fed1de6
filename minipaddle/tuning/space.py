"""The space of a kernel: every set of choices its emitter asks for, found by asking it.

>>> from minipaddle.engine.codegen.schedule import pick
>>> from minipaddle.tuning.space import Space
>>> def write():
...     how = pick("how", "rows", ("rows", "dots"))
...     return how, pick("tile", 8, (4, 8)) if how == "rows" else 0
>>> space = Space(write)
>>> space.default
{'how': 'rows', 'tile': 8}
>>> [*space]
[{'how': 'rows', 'tile': 4}, {'how': 'rows', 'tile': 8}, {'how': 'dots'}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..engine.codegen.schedule import Knob, Schedule, following


class Space:
    """What `write()` may be told: it asks `pick` for its choices, and returns a kernel.

    A point of the space is a dict of the choices that were asked for: the meaning of some depends
    on others, so a point has just those that count.
    """

    def __init__(self, write: Callable):
        self.write = write
        self.known: dict[tuple, tuple] = {}

    def told(self, answers=None) -> tuple[object, Schedule]:
        """What is written when it is told these answers (see `Schedule`), and what it asked."""
        key = None if callable(answers) else key_of(answers or {})
        if key not in self.known or key is None:
            schedule = Schedule(answers)
            with following(schedule):
                self.known[key] = self.write(), schedule
        return self.known[key]

    def point(self, answers=None) -> dict:
        """The choices that are asked for when these are given: defaults where none is."""
        return self.told(answers)[1].choices

    def knobs(self, point: dict) -> dict[str, Knob]:
        """The choices there are at a point: those with more than one option."""
        knobs = self.told(point)[1].knobs
        return {name: knob for name, knob in knobs.items() if len(knob.options) > 1}

    def kernel(self, point: dict):
        return self.told(point)[0]

    @property
    def default(self) -> dict:
        """What the rules choose."""
        return self.point()

    def sample(self, rng) -> dict:
        """A point at random: each question is answered by chance when it is asked."""
        return self.point(lambda name, knob: knob.options[rng.integers(len(knob.options))])

    def __iter__(self, given=None) -> Iterator[dict]:
        """All points, depth first."""
        given = given or {}
        point, schedule = self.point(given), self.told(given)[1]
        name = next((name for name in point if name not in given), None)
        if name is None:
            yield point
            return
        for option in schedule.knobs[name].options:
            yield from self.__iter__({**given, name: option})


def key_of(point: dict) -> tuple:
    """A point as a key: the order of choices does not count."""
    return tuple(sorted(point.items()))
