"""Every public function that takes a tensor first is a method of Var too."""

from __future__ import annotations

import inspect

from . import (
    attribute,
    creation,
    decompositions,
    einsum,
    inplace,
    linalg,
    logic,
    manipulation,
    math,
    matrices,
    norms,
    random,
    reduce,
    search,
    stat,
)

MODULES = (
    attribute, creation, decompositions, einsum, inplace, linalg, logic, manipulation, math,
    matrices, norms, random, reduce, search, stat,
)  # fmt: skip
FIRST = ("x", "input", "arr", "condition", "sorted_sequence")


def methods(*modules) -> dict:
    """The functions of `modules` whose first parameter is a tensor, by name."""
    found = {}
    for module in modules:
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and takes_tensor(function):
                found[name] = function
    return found


def takes_tensor(function) -> bool:
    first = next(iter(inspect.signature(function).parameters), None)
    return first in FIRST


Methods = type(
    "Methods", (attribute.Attributes,), {"__doc__": "Var with methods.", **methods(*MODULES)}
)
