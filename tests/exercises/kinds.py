"""Kinds of wrong solutions, for any exercise: right, but for what is forgotten.

A kind stands around a right function and damages its result, or refuses, where its author would
not have looked: in a large array, along a negative axis, in the second derivative. `kinds_of`
makes the texts; they import the kinds from here.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

import numpy as np

import minipaddle as paddle
from minipaddle.engine.distributed.process_group import ProcessGroup, Work
from minipaddle.learn.exercise import Exercise
from minipaddle.learn.stub import private
from tests.exercises.mutations import Mutant

MANY = 100
"""Elements: an array with more is large."""
LONG = 6
"""Things: a list with more is long."""


def leaves(value) -> Iterator:
    """All that a value holds, itself first: through lists, tuples and dicts."""
    yield value
    if isinstance(value, list | tuple):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))


def arrays(value) -> list[np.ndarray]:
    """Every array in a value."""
    return [x for x in leaves(value) if isinstance(x, np.ndarray)]


def values(value) -> list[np.ndarray]:
    """Every array in a value, and those of its tensors, where they are known."""
    tensors = [x for x in leaves(value) if isinstance(x, paddle.Tensor)]
    return arrays(value) + [x.numpy() for x in tensors if isinstance(x.array, np.ndarray)]


def each(change, value):
    """The value with `change` of each tensor, array and float in it."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each(change, one) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(each(change, one) for one in value)
    if isinstance(value, dict):
        return {key: each(change, one) for key, one in value.items()}
    return change(value) if is_number(value) else value


def is_number(x) -> bool:
    """Is it a tensor, an array or a float: has it values that may be wrong?"""
    return isinstance(x, paddle.Tensor | np.ndarray | float | np.floating)


def floating(x) -> bool:
    kind = str(getattr(x, "dtype", "float64")).rpartition(".")[2]
    return is_number(x) and kind in ("float32", "float64")


def computes(y) -> bool:
    """Is this the result of a function that computes, or writes where it is told?"""
    return y is None or any(map(is_number, leaves(y)))


class Forgotten(Exception):
    """What a kind raises where a wrong number cannot be made."""


def damaged(y):
    """A result of another value, or Forgotten."""
    if not any(map(is_number, leaves(y))):
        raise Forgotten
    return each(lambda x: ~x if "bool" in str(getattr(x, "dtype", "")) else x + 1, y)


met = False
"""Has a kind met what it is about: an array, a list, a derivative? Else it does not apply."""


def meets(condition) -> bool:
    global met
    met = met or bool(condition)
    return bool(condition)


# ---- kinds: each is given the right function and its arguments -----------------------------------


def on_some_arrays(odd, of=values):
    """A kind that is right but for arrays of which `odd` holds; `of` says which it looks at."""

    def kind(right, /, *args, **named):
        given = [a.view() for a in of([args, named])]
        y = right(*args, **named)
        return damaged(y) if meets(given and computes(y)) and any(map(odd, given)) else y

    return kind


def on_results(change, applies):
    """A kind whose results are changed, where `applies` holds of one."""

    def kind(right, /, *args, **named):
        y = right(*args, **named)
        meets(any(map(applies, leaves(y))))
        return each(lambda x: change(x) if applies(x) else x, y)

    return kind


def float_array(x) -> bool:
    return floating(x) and hasattr(x, "astype")


def differentiable(x) -> bool:
    return isinstance(x, paddle.Tensor) and not x.stop_gradient


def finite_only(right, /, *args, **named):
    given = [a for a in values([args, named]) if a.dtype.kind == "f"]
    infinite = any(np.isinf(a).any() for a in given)
    y = right(*args, **named)
    if not (meets(given and computes(y)) and infinite):
        return y
    if not any(map(floating, leaves(y))):
        raise Forgotten
    return each(lambda x: x * np.nan if floating(x) else x, y)


def full_arrays(right, /, *args, **named):
    given = values([args, named])
    y = right(*args, **named)
    if meets(given and computes(y)) and any(a.size == 0 for a in given):
        raise Forgotten
    return y


lengths: dict[tuple, set[int]] = {}
"""Of the lists that were met, by where they were. What has always one length, a pair, is none."""


def short_lists(right, /, *args, **named):
    given = list(lists(enumerate([*args, *named.values()])))
    for place, n in given:
        lengths.setdefault(place, set()).add(n)
    long = any(n > LONG for _, n in given)
    if meets(long or any(len(lengths[place]) > 1 for place, _ in given)) and long:
        raise Forgotten
    return right(*args, **named)


def lists(named, *place) -> Iterator[tuple[tuple, int]]:
    """(where it is, its length) of each list, tuple, dict and program among the values."""
    for name, x in named:
        x = getattr(x, "records", x)
        if isinstance(x, list | tuple | dict):
            yield (*place, name), len(x)
            inside = list(x.values()) if isinstance(x, dict) else x
            yield from lists(((..., one) for one in inside), *place, name)


def positive_axes(right, /, *args, **named):
    axes = [named[k] for k in AXES if k in named]
    if meets(axes) and any(isinstance(x, int) and x < 0 for x in leaves(axes)):
        raise Forgotten
    return right(*args, **named)


def writes_arrays(right, /, *args, **named):
    y = each(lambda x: x + 0, right(*args, **named))
    for x in leaves([args, named]):
        if isinstance(x, paddle.Tensor) and meets(floating(x)):
            with paddle.no_grad():
                x.set_value(x + 1)
        elif isinstance(x, np.ndarray) and x.flags.writeable and meets(x.dtype.kind == "f"):
            x += 1
    return y


def groups_in(value) -> list[ProcessGroup]:
    """The groups of several ranks in a value."""
    return [x for x in leaves(value) if isinstance(x, ProcessGroup) and x.size > 1]


class Unwaited:
    """A work whose end nobody waits for: `wait()` returns at once."""

    def wait(self, timeout=None):
        meets(True)


def without_waiting(right, /, *args, **named):
    """The works that its group gives the right function are not waited for."""

    def hasty(begin):
        def call(*args, **named):
            y = begin(*args, **named)
            own = sys._getframe(1).f_code.co_filename == right.__code__.co_filename
            return Unwaited() if own and isinstance(y, Work) else y

        return call

    groups = groups_in([args, named])
    before = [dict(vars(group)) for group in groups]
    for group in groups:
        for name, method in inspect.getmembers(group, inspect.ismethod):
            if "wait" in inspect.signature(method).parameters:
                setattr(group, name, hasty(method))
    try:
        return right(*args, **named)
    finally:
        for group, had in zip(groups, before):
            for name in vars(group).keys() - had.keys():
                delattr(group, name)


def even_parts(right, /, *args, **named):
    """Every size divides by the number of ranks, or by the stride."""
    given = [args, named]
    parts = [group.size for group in groups_in(given)]
    parts += [n for k in PARTS for n in leaves(named.get(k)) if isinstance(n, int) and n > 1]
    sizes = [n for x in values(given) for n in x.shape]
    sizes += [n for k in SIZES for n in leaves(named.get(k)) if isinstance(n, int)]
    uneven = meets(parts and sizes) and any(n % k for n in sizes for k in parts)
    y = right(*args, **named)
    return damaged(y) if uneven else y


AXES = ("axis", "axes", "perm", "dim")
PARTS = ("stride", "parts")
SIZES = ("size",)
KINDS = {
    "right only for small arrays": on_some_arrays(lambda a: a.size > MANY),
    "right only for arrays that are not empty": full_arrays,
    "right only for arrays in one piece": on_some_arrays(lambda a: not a.flags.forc, arrays),
    "right only for strides above 0": on_some_arrays(
        lambda a: any(s < 0 for s in a.strides), arrays
    ),
    "right only for finite numbers": finite_only,
    "right only for positive axes": positive_axes,
    "right only for short lists": short_lists,
    "always float64": on_results(lambda x: x.astype("float64"), float_array),
    "always float32": on_results(lambda x: x.astype("float32"), float_array),
    "as exact as float32": on_results(lambda x: x * (1 + 1e-6), floating),
    "inexact where numbers are small": on_results(lambda x: x + 1e-9, floating),
    "without a second derivative": on_results(lambda x: x.detach(), differentiable),
    "writing into what is given": writes_arrays,
    "a needed wait() left out": without_waiting,
    "right only for even parts": even_parts,
}


def kinds_of(exercise: Exercise) -> list[Mutant]:
    """The solution with each kind around each of its public functions."""
    public = [n for n in ast.parse(exercise.solution).body if isinstance(n, ast.FunctionDef)]
    return [
        Mutant(around(exercise.solution, node, kind), f"{node.name}: {kind}")
        for node in public
        if not private(node)
        for kind in KINDS
    ]


def around(solution: str, node: ast.FunctionDef, kind: str) -> str:
    """The text of a solution with a kind around one of its functions, of the same signature."""
    a = node.args
    placed = a.posonlyargs + (a.args if a.vararg else [])  # kinds look for names: axis, stride
    given = [ast.Name(p.arg) for p in placed]
    given += [ast.Starred(ast.Name(a.vararg.arg))] if a.vararg else []
    by_name = [p for p in (*a.args, *a.kwonlyargs) if p not in placed]
    named = [ast.keyword(p.arg, ast.Name(p.arg)) for p in by_name]
    named += [ast.keyword(None, ast.Name(a.kwarg.arg))] if a.kwarg else []
    call = ast.unparse(ast.Call(ast.Name("_kind"), [ast.Name("_right"), *given], named))
    return (
        f"{solution}\n\nfrom tests.exercises.kinds import KINDS as _KINDS\n"
        f"_kind, _right = _KINDS[{kind!r}], {node.name}\n\n"
        f"def {node.name}({ast.unparse(a)}):\n    return {call}\n"
    )
