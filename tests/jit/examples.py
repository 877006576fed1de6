"""Small functions with example arguments: run plain, transpiled, and traced, they give the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from inspect import isfunction, signature
from pathlib import Path

import minipaddle as paddle


@dataclass(frozen=True)
class T:
    """A tensor among the example arguments, made afresh for every call."""

    data: object
    dtype: str = "float32"

    def tensor(self):
        x = paddle.to_tensor(self.data, dtype=self.dtype)
        x.stop_gradient = not self.dtype.startswith("float")
        return x


I = partial(T, dtype="int64")
B = partial(T, dtype="bool")


@dataclass
class Example:
    """A function, several tuples of arguments, and what its conversion refuses (a pattern)."""

    function: Callable
    calls: tuple
    refused: str = ""

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    def mistakes(self) -> Iterator[str]:
        """What is wrong with the way it is registered."""
        if not self.calls:
            yield f"{self.name}: @example() has no arguments; write one tuple for each call"
        for call in self.calls:
            if not isinstance(call, tuple):
                yield f"{self.name}: {call!r} is not a tuple; one argument is written (x,)"
                continue
            try:
                signature(self.function).bind(*call)
            except TypeError as error:
                yield f"{self.name}{call!r}: {error}"


EXAMPLES: list[Example] = []


def example(*calls: tuple, refused: str = ""):
    """Decorator: register a function, to be called with each of these tuples of arguments."""

    def register(function):
        EXAMPLES.append(Example(function, calls, refused))
        return function

    return register


@cache
def collect(package: str = "tests.jit") -> tuple[list[Example], list[str]]:
    """Import the functions_*.py of a package: the examples that can run, and all mistakes.

    A mistake leaves out one example, or one file that does not import; the others still run.
    """
    mistakes = []
    for folder in importlib.import_module(package).__path__:
        for path in sorted(Path(folder).glob("functions_*.py")):
            try:
                importlib.import_module(f"{package}.{path.stem}")
            except Exception as error:
                mistakes.append(f"{path.name} does not import: {error!r}")
    good = {}
    for e in EXAMPLES:
        if not e.function.__module__.startswith(f"{package}.functions_"):
            continue
        wrong = [*e.mistakes(), *[f"{e.name} is registered twice"] * (e.name in good)]
        mistakes += wrong
        if not wrong:
            good[e.name] = e
    return [*good.values()], mistakes


def examples() -> list[Example]:
    """All that can run."""
    return collect()[0]


def told(error: BaseException) -> str:
    """What an error says, with its notes: the report of the user's lines among them."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def given(call: tuple) -> list:
    """Fresh arguments."""
    return [x.tensor() if isinstance(x, T) else x() if isfunction(x) else x for x in call]
