"""Which converters have something to do: one walk over the tree finds out for all of them."""

from __future__ import annotations

import ast
from collections import defaultdict

from ..walking import walk

WANTED: dict[type, list[tuple]] = defaultdict(list)
"""Kind of node -> (converter, field, what that must hold) for the converters that look for it."""


def looks_for(*kinds: type, makes_work: bool = False, **fields):
    """Decorator: a converter that changes nothing where there is no such node.

    `fields` say what a field of it must hold: a text, a class, or True for anything at all; one
    of them suffices. With `makes_work`, a converter may make what others look for.
    """

    def register(converter):
        for kind in kinds:
            WANTED[kind] += [(converter.__name__, *each) for each in fields.items() or [("", None)]]
        converter.makes_work = makes_work
        return converter

    return register


def survey(tree: ast.AST) -> set[str]:
    """The names of the converters that do not find in the tree what they look for."""
    idle = {name for wanted in WANTED.values() for name, *_ in wanted}
    for node in walk(tree):
        for name, field, wanted in WANTED.get(type(node), ()):
            if name in idle and (not field or holds(getattr(node, field), wanted)):
                idle.remove(name)
    return idle


def holds(held, wanted) -> bool:
    """Whether a field holds what a converter looks for."""
    if wanted is True:
        return bool(held)
    return held == wanted if isinstance(wanted, str) else isinstance(held, wanted)
