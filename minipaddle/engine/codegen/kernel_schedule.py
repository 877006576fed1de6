"""A schedule: choices of an emitter that change the speed of a kernel, and not its results.

Where several texts compute the same, an emitter calls `pick(name, default, options)`. The default
is the emitter's own rule, and a schedule may give another answer. In this way tile sizes,
vector widths, the parallel axis and the algorithm of a convolution are tuned. The questions that
were asked define the search space; no other list of them exists, and a question that an answer
makes meaningless is never asked.
Source: AutoTVM's templates, Chen and others, Learning to Optimize Tensor Programs (2018).

    >>> from minipaddle.engine.codegen.kernel_schedule import KernelSchedule, following, pick
    >>> with following(KernelSchedule({"tile": 4})) as schedule:
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
    """One choice: the default and all options."""

    default: object
    options: tuple


class KernelSchedule:
    """The answers for one kernel: a dict by name, or a function of (name, knob). The default
    replaces a missing answer, and an answer that is not among the options.

    `knobs` are the questions so far, and `choices` their answers.
    """

    def __init__(self, answers: dict | Callable | None = None):
        table = answers or {}
        self.answer = table if callable(table) else lambda name, knob: table.get(name, knob.default)
        self.knobs: dict[str, Knob] = {}
        self.choices: dict[str, object] = {}

    def pick(self, name: str, default, options):
        """The answer to a question; always the same answer to the same question."""
        if name not in self.choices:
            knob = Knob(default, tuple(dict.fromkeys([*options, default])))
            answer = self.answer(name, knob)
            known = any(answer == o and type(answer) is type(o) for o in knob.options)
            self.knobs[name], self.choices[name] = knob, answer if known else default
        return self.choices[name]


_now: ContextVar[KernelSchedule | None] = ContextVar("schedule", default=None)


@contextmanager
def within(variable: ContextVar, value):
    """Within the block, the variable has this value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def following(schedule: KernelSchedule | None):
    """Within the block, emitters follow this schedule; with None, only their own rules."""
    return within(_now, schedule)


def pick(name: str, default, options):
    """The answer of the current schedule; without a schedule, the default."""
    schedule = _now.get()
    return default if schedule is None else schedule.pick(name, default, options)
