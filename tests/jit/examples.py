"""Small functions with example arguments: run plain, transpiled, and traced, they give the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import isfunction
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


EXAMPLES: list[Example] = []


def example(*calls: tuple, refused: str = ""):
    """Decorator: register a function, to be called with each of these tuples of arguments."""

    def register(function):
        EXAMPLES.append(Example(function, calls, refused))
        return function

    return register


def examples() -> list[Example]:
    """All of them."""
    for path in sorted(Path(__file__).parent.glob("functions_*.py")):
        importlib.import_module(f"tests.jit.{path.stem}")
    return EXAMPLES


def given(call: tuple) -> list:
    """Fresh arguments."""
    return [x.tensor() if isinstance(x, T) else x() if isfunction(x) else x for x in call]
