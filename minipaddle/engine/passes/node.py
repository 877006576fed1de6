"""A value at a place of the loops of a nest, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable

from ..core.slots import slot


class Node:
    """A value at a place of the loops. `kind`: load, number, place, apply, fold, select."""

    __slots__ = ("args", "depth", "dtype", "guard", "index", "kind", "loops", "of", "stage")

    def __init__(self, kind, of, args=(), index=None, dtype=None, guard=()):
        self.kind, self.of, self.args, self.index, self.dtype = kind, of, args, index, dtype
        self.guard = guard  # conditions (index, low, high) without which there is nothing to load
        loops = [a.loops for a in args] + [i.loops for i, *_ in guard]
        self.loops = frozenset().union(*loops, index.loops if index is not None else ())
        self.stage = stage_of(kind, args)
        self.depth = 1 + max((a.depth for a in args), default=0)  # values one inside the other


@slot("nest.stage_of")
def stage_of(kind: str, args) -> int:
    """How many reductions of the row must be finished before a value: one more after a fold."""
    return max((a.stage for a in args), default=0) + (kind == "fold")


def reached(roots, within: Callable[[Node], bool] = lambda node: True) -> dict[Node, None]:
    """What roots are made of, and themselves, each value once. What is not `within` is found, but
    not what it is made of.
    """
    found, todo = {}, list(roots)
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += node.args if within(node) else ()
    return found
