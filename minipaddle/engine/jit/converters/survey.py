"""Which converters have something to do: one walk over the tree finds out for all of them.

It happens once control flow is in its simple form; no converter after that makes what another
one looks for.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable

from ..walking import walk

WANTED: dict[type, list[tuple[str, Callable]]] = defaultdict(list)
"""Kind of node -> the converters that look for such nodes, and for which of them."""


def looks_for(*kinds: type, when: Callable = lambda node: True):
    """Decorator: a converter that changes nothing where there is no such node."""

    def register(converter):
        for kind in kinds:
            WANTED[kind].append((converter.__name__, when))
        converter.looks_for = kinds
        return converter

    return register


def survey(tree: ast.AST) -> set[str]:
    """The names of the converters that do not find in the tree what they look for."""
    idle = {name for wanted in WANTED.values() for name, _ in wanted}
    for node in walk(tree):
        for name, when in WANTED.get(type(node), ()):
            if name in idle and when(node):
                idle.remove(name)
    return idle
