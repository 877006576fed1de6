"""A schedule: the choices an emitter makes that change how fast a kernel is, and not what it does.

Where several texts compute the same, an emitter asks `pick(name, default, options)`. The default
is what its own rule says. A schedule may answer otherwise: so tile sizes, the width of vectors, the
axis that threads share and the algorithm of a convolution are tuned. What was asked on the way is
the space: it is written nowhere else, and knobs that an answer makes meaningless are never asked.
Source: AutoTVM's templates, Chen and others, Learning to Optimize Tensor Programs (2018).

    >>> from minipaddle.engine.codegen.schedule import Schedule, following, pick
    >>> with following(Schedule({"tile": 4})) as schedule:
    ...     pick("tile", 8, (2, 4, 8)), pick("unroll", 1, (1, 2))
    (4, 1)
    >>> schedule.choices
    {'tile': 4, 'unroll': 1}
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Knob(NamedTuple):
    """One choice: what the rule says, and all that may stand there."""

    default: object
    options: tuple


class Schedule:
    """Answers for one kernel: those given by name, or those of a function of (name, knob); the
    default for all others, and for an answer that is not among the options.

    `knobs` are the questions so far, `choices` the answers.
    """

    def __init__(self, answers: dict | Callable | None = None):
        given = answers or {}
        self.answer = given if callable(given) else lambda name, knob: given.get(name, knob.default)
        self.knobs: dict[str, Knob] = {}
        self.choices: dict[str, object] = {}

    def pick(self, name: str, default, options):
        """The answer to a question; to one that was asked before, the same answer."""
        if name not in self.choices:
            knob = Knob(default, tuple(dict.fromkeys([*options, default])))
            answer = self.answer(name, knob)
            known = any(answer == o and type(answer) is type(o) for o in knob.options)
            self.knobs[name], self.choices[name] = knob, answer if known else default
        return self.choices[name]


_now: ContextVar[Schedule | None] = ContextVar("schedule", default=None)


@contextmanager
def following(schedule: Schedule | None):
    """Within the block, kernels are written by this schedule; None: by the rules alone."""
    token = _now.set(schedule)
    try:
        yield schedule
    finally:
        _now.reset(token)


def pick(name: str, default, options):
    """What the schedule of the kernel that is being written says; without one, the default."""
    schedule = _now.get()
    return default if schedule is None else schedule.pick(name, default, options)
