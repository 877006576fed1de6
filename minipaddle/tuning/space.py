"""The space of a kernel: every set of choices that its emitter asks for.

>>> from minipaddle.engine.codegen.kernel_schedule import pick
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

from collections.abc import Callable, Iterator

from ..engine.codegen.kernel_schedule import KernelSchedule, Knob, following


class Space:
    """All choices for `write()`, which asks `pick` for each of them and returns a kernel.

    A point of the space is a dict of the choices that were asked for. Some choices are asked only
    after others, so a point has just those that matter.
    """

    def __init__(self, write: Callable):
        self.write = write
        self.known: dict[tuple, tuple] = {}

    def run(self, answers=None) -> tuple[object, KernelSchedule]:
        """The kernel that is written with these answers, and the `KernelSchedule` of questions."""
        key = None if callable(answers) else key_of(answers or {})
        if key not in self.known or key is None:
            schedule = KernelSchedule(answers)
            with following(schedule):
                self.known[key] = self.write(), schedule
        return self.known[key]

    def point(self, answers=None) -> dict:
        """The choices that are asked for when these are given: defaults where none is."""
        return self.run(answers)[1].choices

    def knobs(self, point: dict) -> dict[str, Knob]:
        """The choices there are at a point: those with more than one option."""
        knobs = self.run(point)[1].knobs
        return {name: knob for name, knob in knobs.items() if len(knob.options) > 1}

    def kernel(self, point: dict):
        return self.run(point)[0]

    @property
    def default(self) -> dict:
        """The choices of the rules."""
        return self.point()

    def sample(self, rng) -> dict:
        """A random point: each question is answered at random when it is asked."""
        return self.point(lambda name, knob: knob.options[rng.integers(len(knob.options))])

    def __iter__(self, answers=None) -> Iterator[dict]:
        """All points, depth first."""
        answers = answers or {}
        point, schedule = self.point(answers), self.run(answers)[1]
        name = next((name for name in point if name not in answers), None)
        if name is None:
            yield point
            return
        for option in schedule.knobs[name].options:
            yield from self.__iter__({**answers, name: option})


def key_of(point: dict) -> tuple:
    """A point as a key, whatever the order of its choices."""
    return tuple(sorted(point.items()))
