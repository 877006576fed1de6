"""Values taken from Python once, while a function is traced: random numbers of Python and NumPy,
and items of the iterators among its arguments.

- A seed acts in each call: a run leaves the generator as the trace left it. What is drawn after it
  is the same in each call, in eager mode too.
- Other draws are taken while tracing, as real Paddle takes them; a warning names the line.
- An iterator is advanced by the trace, so a program that used one serves that one call.

In a branch or a loop on a tensor all of this is refused: only a run knows whether it happens.
"""

import random
import warnings
from functools import wraps
from types import MappingProxyType
from typing import NamedTuple

import numpy

from ..engine.core.dispatch import current
from ..engine.core.errors import caller, line_number, teach
from ..engine.eager.tracer import Tracer
from ..engine.jit.aliasing import reachable
from ..engine.jit.calling import SPECIAL, TABLE
from ..engine.jit.refusal import refusal
from .guards import Guards
from .objects import CHANCE, iterator, sources, state
from .outside import whole
from .snapshot import DRAW, put_back

Tracer.given = ()
"""The leaves of the arguments of the function that is traced."""
Tracer.start = None
"""The objects that the function can reach, as a Snapshot from the start of the trace."""
Tracer.spent = ()
"""A guard, if the trace has advanced an iterator."""
Tracer.seeded = MappingProxyType({})
"""The generators that the trace has seeded, by id."""


def took(tracer, changes) -> bool:
    """Whether the trace advanced an iterator that it was given. Then its program serves one call,
    and the trace changed each object as that call should; otherwise warn of numbers that it drew.
    """
    steps = reachable([x for x in tracer.given if iterator(x)], sources)
    if any(id(x) in steps for x, _ in changes):
        tracer.spent = [Spent()]
        return True
    for x, _ in changes:
        if isinstance(x, CHANCE) and id(x) not in tracer.seeded:
            warn(tracer, x)
    return False


def note_seed(tracer, generator) -> None:
    """From now on the generator gives the same numbers in each call."""
    if id(generator) in tracer.seeded:
        return
    if tracer.start.has_changed(generator):
        warn(tracer, generator)
    tracer.seeded = {**tracer.seeded, id(generator): generator}
    tracer.calls.append(([], lambda outputs: Seed(generator, state(generator), outputs)))


def warn(tracer, generator) -> None:
    """Warn of numbers that the trace drew."""
    name = tracer.start.name(generator)
    at = whole.where(tracer.start.objects, name) or caller()
    text = teach(
        f"{name} is drawn from while the function is traced: each call of the program uses the "
        "numbers of this draw",
        hint=DRAW,
        where=at,
    )
    warnings.warn_explicit(text, UserWarning, at[0].co_filename, line_number(at))


class Seed(NamedTuple):
    """The side effect of a run on a generator that the function seeds: it ends where it ended in
    the trace, in this state.
    """

    generator: object
    state: tuple
    outputs: tuple

    def leave(self, inputs, *arrays) -> None:
        put_back(self.generator, self.state)


class Spent(Guards):
    """The guard of a program whose trace advanced iterators: it serves no second call."""

    def __init__(self):
        super().__init__([], [], [])

    def holds(self, captured) -> bool:
        return False

    def find_broken(self) -> str:
        return "an iterator among the arguments was advanced: its items are part of the program"


def seeding(function):
    """The callee in place of a function that seeds a generator."""

    @wraps(function)
    def seed(*args, **kwargs):
        bound, top = bool(args) and isinstance(args[0], CHANCE), current.top
        seeds = [*args[bound:], *kwargs.values()]
        if top.tracing and top.builder is not top.root:
            raise refusal(
                f"{function.__name__}() of a generator of random numbers in a branch or a loop "
                "that depends on a tensor",
                hint="seed it outside",
            )
        if top.tracing and top.start is not None and any(x is not None for x in seeds):
            note_seed(top, args[0] if bound else GLOBAL)
        return function(*args, **kwargs)

    return seed


GLOBAL = numpy.random.mtrand._rand
CYTHON = numpy.random.seed, numpy.random.RandomState.seed, numpy.random.RandomState.set_state
SEEDS = {function: seeding(function) for function in CYTHON}

SPECIAL[type(numpy.random.seed)] = lambda function: SEEDS.get(function, function)
TABLE |= {function: seeding(function) for function in (random.Random.seed, random.Random.setstate)}
