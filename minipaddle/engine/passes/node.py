"""A value of a loop nest, and the values it is computed from."""

from __future__ import annotations

from collections.abc import Callable

from ..core.slots import slot


class Node:
    """A value at an index of the loops. `kind`: load, number, place, apply, reduce, select."""

    __slots__ = ("args", "depth", "dtype", "guard", "index", "kind", "loops", "of", "stage")

    def __init__(self, kind, of, args=(), index=None, dtype=None, guard=()):
        self.kind, self.of, self.args, self.index, self.dtype = kind, of, args, index, dtype
        self.guard = guard  # conditions (index, low, high) under which the load is allowed
        loops = [a.loops for a in args] + [i.loops for i, *_ in guard]
        self.loops = frozenset().union(*loops, index.loops if index is not None else ())
        self.stage = stage_of(kind, args)
        self.depth = 1 + max((a.depth for a in args), default=0)  # values one inside the other


@slot("nest.stage_of")
def stage_of(kind: str, args) -> int:
    """The number of reductions of the row that must be finished before a value is known."""
    return max((a.stage for a in args), default=0) + (kind == "reduce")


def reached(roots, within: Callable[[Node], bool] = lambda node: True) -> dict[Node, None]:
    """The roots and all values they are computed from, each once. The search does not go beyond
    a value that is not `within`.
    """
    found, todo = {}, list(roots)
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += node.args if within(node) else ()
    return found
