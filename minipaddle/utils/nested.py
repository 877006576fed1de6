"""Lists, tuples and dicts inside one another. Source: Paddle API `paddle.utils.flatten`, ….

A dict's values come in the order of its sorted keys, so that two equal dicts agree.
"""

from collections.abc import Iterator, Sequence

from ..engine.core.errors import type_error, value_error

__all__ = ["flatten", "is_sequence", "map_structure", "pack_sequence_as"]


def is_sequence(seq) -> bool:
    """Is it a list, a tuple, a dict or another sequence, and no string?"""
    return isinstance(seq, dict | Sequence) and not isinstance(seq, str)


def flatten(nest) -> list:
    """The leaves of nested containers, in order.

    >>> paddle.utils.flatten([1, (2, {"b": 4, "a": 3})])
    [1, 2, 3, 4]
    """
    if not is_sequence(nest):
        return [nest]
    values = [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else nest
    return [leaf for value in values for leaf in flatten(value)]


def pack_sequence_as(structure, flat_sequence):
    """`structure` with its leaves replaced by the items of a list; the inverse of `flatten`.

    Raises ValueError if their numbers differ.

    >>> paddle.utils.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])
    {'b': 3, 'a': [1, 2]}
    """
    if not is_sequence(flat_sequence):
        raise type_error(f"pack_sequence_as was given {flat_sequence!r}", "a list")
    count = len(flatten(structure))
    if len(flat_sequence) != count:
        raise value_error(
            f"pack_sequence_as was given {len(flat_sequence)} items for a structure of {count}"
        )
    return fill(structure, iter(flat_sequence))


def fill(structure, leaves: Iterator):
    """`structure` with the next leaves in it."""
    if not is_sequence(structure):
        return next(leaves)
    if isinstance(structure, dict):
        values = {key: fill(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, values[key]) for key in structure)
    values = [fill(value, leaves) for value in structure]
    return type(structure)(*values) if hasattr(structure, "_fields") else type(structure)(values)


def map_structure(func, *structure):
    """`func` of each leaf of a structure, in a structure of the same form; with several structures,
    of the leaves at the same place. Raises ValueError if their numbers differ.

    >>> paddle.utils.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    results = [func(*leaves) for leaves in zip(*map(flatten, structure), strict=True)]
    return pack_sequence_as(structure[0], results)
