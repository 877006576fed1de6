"""Python's containers as trees of leaves: lists, tuples, named tuples, dicts, dataclasses.

`flatten` takes a value apart and `unflatten` builds it again with other leaves. Everything that is
no such container is a leaf.
"""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import NamedTuple

from ..core.dim import at
from ..core.dispatch import describe as shown
from ..eager.tensor import Parameter, Tensor


class Container(NamedTuple):
    """A container without its items; `keys` name the places inside, `like` is the original."""

    kind: type
    keys: tuple
    children: tuple
    like: object

    def __eq__(self, other):
        return isinstance(other, Container) and self[:3] == other[:3]

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self[:3])


LEAF = "*"


def flatten(value, kept=frozenset()) -> tuple[list, object]:
    """The leaves of a value, and its structure; containers whose id is in `kept` are leaves.

    >>> from minipaddle.engine.jit.tree import flatten
    >>> flatten({"a": 1, "b": [2, 3]})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, structure(value, leaves, kept)


PLAIN = {Tensor, Parameter, int, float, bool, str, type(None)}
"""Types that are always leaves."""


def flatten_call(args: tuple, kwargs: dict) -> tuple[list, object]:
    """The leaves and the structure of (args, kwargs); most calls have plain arguments alone."""
    if kwargs or not PLAIN.issuperset(map(type, args)):
        return flatten((args, kwargs))
    return [*args], structure_of_plain(len(args))


@cache
def structure_of_plain(n: int):
    """The structure of a call of `n` plain arguments."""
    return flatten(((None,) * n, {}))[1]


def structure(value, leaves: list, kept):
    inside = None if type(value) in PLAIN or id(value) in kept else parts(value)
    if inside is None:
        leaves.append(value)
        return LEAF
    keys, values = inside
    children = tuple([structure(v, leaves, kept) for v in values])
    return Container(type(value), tuple(keys), children, value)


def parts(value):
    """The keys and values inside a container; None for a leaf."""
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        return getattr(kind, "_fields", None) or range(len(value)), list(value)
    if issubclass(kind, dict):
        return value.keys(), value.values()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if hasattr(value, f.name)]
        return names, [getattr(value, name) for name in names]
    return None


def containers(value) -> list:
    """The containers in a value that can be changed."""
    inside = parts(value)
    if inside is None:
        return []
    below = [x for each in inside[1] for x in containers(each)]
    return below if isinstance(value, tuple) else [value, *below]


SPLICED: dict = {}
"""By the type of an item of a list: a function that gives the items it represents."""


FINISHED: dict = {}
"""By the type of a container: a function that gives the value that a built one represents."""


def reachable(roots, contents) -> dict[int, object]:
    """The objects that code can get at from `roots`, by id; `contents(x)` is what x holds."""
    reached, waiting = {}, [*roots]
    for x in waiting:
        if id(x) not in reached:
            reached[id(x)] = x
            waiting += contents(x)
    return reached


def splice(values) -> list:
    """The items of a list."""
    if SPLICED.keys().isdisjoint(map(type, values)):
        return values
    return [item for x in values for item in SPLICED.get(type(x), lambda x: [x])(x)]


def unflatten(structure, leaves):
    """The value of a structure with these leaves."""
    return build(structure, iter(leaves))


def create_restore(structure, leaves):
    """A function that builds the results again from tensors, sizes and constants."""

    def restore(results, sizes):
        pairs = zip(leaves, results, strict=False)
        return unflatten(structure, [constant(x, sizes) if y is None else y for x, y in pairs])

    return alone if structure is LEAF and leaves[0] is None else restore


def constant(x, sizes):
    """A result that is no tensor; of an array a copy, since the caller may write to it."""
    return x.copy() if hasattr(x, "strides") else at(x, sizes)


def alone(results, sizes):
    """The result of a function that returns one tensor."""
    return results[0]


def build(structure, leaves):
    if structure is LEAF:
        return next(leaves)
    kind, keys, children, like = structure
    values = [build(child, leaves) for child in children]
    if kind in (list, tuple):
        return kind(splice(values))
    if issubclass(kind, tuple):
        return kind(*values) if hasattr(kind, "_fields") else kind(values)
    new = copy.copy(like)
    if issubclass(kind, list):
        new[:] = values
    elif issubclass(kind, dict):
        new.clear()
        new.update(zip(keys, values))
    else:
        for name, value in zip(keys, values):
            object.__setattr__(new, name, value)
    return FINISHED[kind](new) if kind in FINISHED else new


def paths(structure, prefix: str = "") -> list[str]:
    """The path of each leaf: `["h"][0].size`."""
    if structure is LEAF:
        return [prefix]
    names = []
    for key, child in zip(structure.keys, structure.children):
        attribute = hasattr(structure.kind, "_fields") or dataclasses.is_dataclass(structure.kind)
        names += paths(child, f"{prefix}.{key}" if attribute else f"{prefix}[{shown(key)}]")
    return names


def describe(structure, signs=None) -> str:
    """`[*, (*, *)]`, `{'h': *}`, `Point(x=*)`: a structure in a line; `signs` are for the leaves,
    an iterator.
    """
    if structure is LEAF:
        return LEAF if signs is None else next(signs)
    inside = [describe(child, signs) for child in structure.children]
    if structure.kind is list:
        return f"[{', '.join(inside)}]"
    if structure.kind is tuple:
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    if issubclass(structure.kind, dict):
        return "{" + ", ".join(f"{shown(k)}: {v}" for k, v in zip(structure.keys, inside)) + "}"
    fields = ", ".join(f"{k}={v}" for k, v in zip(structure.keys, inside))
    return f"{structure.kind.__name__}({fields})"
