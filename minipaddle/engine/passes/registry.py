"""The registry of passes: the order in which they run, and the switches of each.

A pass is a function Program → Program. Its switches are its keyword parameters; a strategy sets
them by name, and leaves a whole pass out by the pass's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.op import Op
from ..core.slots import slot

PASSES = [
    "specialise", "dead_code", "decompose", "folding", "algebra", "cse", "dead_code", "fusion",
    "schedule", "async_collectives",
]  # fmt: skip
"""The passes in the order in which they run. `minipaddle.passes` adds further ones."""


class PassSwitch(NamedTuple):
    """A keyword parameter of a pass: its default, and what it does (empty: not for users)."""

    default: object
    doc: str = ""


SWITCHES: dict[str, dict[str, PassSwitch]] = {}
"""The switches of each function that takes some, by the name of its slot."""

DEFAULTS: dict[str, object] = {}
"""Switches that a program is compiled with unless its strategy says otherwise."""

LOOKS_FOR: dict[str, list] = {}
"""For a pass what it is about: operators, and facts about a program that `manager.survey` names.
A program in which there is nothing of it stays as it is."""


def switched(name: str, **switches: tuple):
    """Decorator: a slot called `name`, with switches given as (default, what it does)."""

    def register(function):
        SWITCHES[name] = {key: PassSwitch(*value) for key, value in switches.items()}
        defaults = {key: switch.default for key, switch in SWITCHES[name].items()}
        function.__kwdefaults__ = (function.__kwdefaults__ or {}) | defaults
        return slot(name)(function)

    return register


def program_pass(name: str, looks_for: Iterable[Op | str] = (), **switches: tuple):
    """Decorator: the function is the pass `name`, with switches as `switched` takes them.

    With `looks_for`, it runs only on programs that have some of that: see `LOOKS_FOR`.
    """
    if looks_for:
        LOOKS_FOR[name] = [*looks_for]
    return switched(f"passes.{name}", **switches)
