"""Slots: functions of the engine that a reader's own code can replace.

`with plugged("ops.tanh.vjp", mine): ...` runs the real engine on `mine`. An operator keeps its
identity, only its rule changes. Every change moves `epoch`, which belongs in every cache key.
"""

from __future__ import annotations

import difflib
from contextlib import ExitStack, contextmanager
from functools import WRAPPER_ASSIGNMENTS
from types import FunctionType

OPS: dict[str, object] = {}
"""Every operator by name. `Op` puts them in; it stands on `spec`, which has slots too."""

SLOTS: dict[str, Slot] = {}
"""Functions that can be replaced, by name; operators' rules are slots too (see `find`)."""

PLUGGED: dict[str, object] = {}
"""The reader's code that is plugged in now, by the name of its slot."""

epoch = 0


def redirect(*args, _plugged, **kwargs):
    return _plugged(*args, **kwargs)


class Slot:
    """A function, or a method, that can be replaced.

    Its code is replaced by a call of the reader's function, so all who hold the function, under any
    name or in a table, call the reader's. Where nothing is plugged in a call costs nothing extra.
    `reference` is always the engine's own function.
    """

    def __init__(self, name: str, function: FunctionType):
        self.function, self.reference = function, copy_function(function)
        self.redirect = redirect.__code__.replace(co_name=name, co_qualname=name)
        self.now = function.reference = self.reference
        SLOTS[name] = self

    def get(self):
        return self.now

    def set(self, value) -> None:
        own, function = self.reference, self.function
        if value is function or value is own:
            function.__code__, function.__defaults__ = own.__code__, own.__defaults__
            function.__kwdefaults__, self.now = own.__kwdefaults__, own
        else:
            function.__code__, function.__defaults__ = self.redirect, None
            function.__kwdefaults__, self.now = {"_plugged": value}, value


def copy_function(f: FunctionType) -> FunctionType:
    """A copy of a function."""
    copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    copy.__dict__ = f.__dict__
    for name in (*WRAPPER_ASSIGNMENTS, "__kwdefaults__"):
        setattr(copy, name, getattr(f, name))
    return copy


class RuleSlot:
    """One rule of an operator: `ops.tanh.vjp`, `ops.multiply.vjp.y`, `ops.relu.body`,
    `ops.flip.source` (a movement's index map).
    """

    def __init__(self, op, part: str, k: int = 0):
        self.op, self.part, self.k = op, part, k

    def get(self):
        return self.op.rules.get(self.k) if self.part == "vjp" else getattr(self.op, self.part)

    def set(self, value) -> None:
        if self.part == "vjp":
            self.op.set_rule(self.k, value)
        else:
            setattr(self.op, self.part, value)


def slot(name: str):
    """Decorator: make a function, or a method of a class, a slot called `name`."""

    def register(function):
        Slot(name, function)
        return function

    return register


def find(name: str) -> Slot | RuleSlot:
    """The slot called `name`; raises KeyError that points to the nearest name."""
    if name in SLOTS:
        return SLOTS[name]
    parts = name.split(".")
    op = OPS.get(parts[1]) if parts[0] == "ops" and len(parts) in (3, 4) else None
    if op is not None and (parts[2] in ("vjp", "body", "infer") or has_map(op, parts[2])):
        if len(parts) == 3:
            return RuleSlot(op, parts[2])
        if parts[3] in op.inputs:
            return RuleSlot(op, "vjp", op.inputs.index(parts[3]))
    near = difflib.get_close_matches(name, names(), 1)
    raise KeyError(f"no slot {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def has_map(op, part: str) -> bool:
    return part == "source" and getattr(op, "source", None) is not None


def names() -> list[str]:
    """Every slot's name."""
    rules = [
        f"ops.{op.name}.vjp" + (f".{op.inputs[k]}" if len(op.inputs) > 1 else "")
        for op in OPS.values()
        for k in sorted(op.rules)
    ]
    maps = [f"ops.{op.name}.source" for op in OPS.values() if has_map(op, "source")]
    return sorted([*SLOTS, *rules, *maps, *(f"ops.{name}.body" for name in OPS)])


def yours() -> dict[str, object]:
    """The code that is plugged in now, by slot name."""
    return dict(PLUGGED)


@contextmanager
def plugged(name: str | dict, value=None):
    """Run the block with `value` in the slot `name` (or with a dict of several).

    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> with paddle.plugged("ops.tanh.vjp", lambda g: g * 0):
    ...     paddle.tanh(x).sum().backward()
    >>> x.grad.item()
    0.0
    """
    wanted = name if isinstance(name, dict) else {name: value}
    with ExitStack() as undo:
        for key, new in wanted.items():
            _swap(key, new, undo)
        yield


def _swap(name: str, new, undo: ExitStack) -> None:
    place = find(name)
    undo.callback(_set, name, place, place.get(), PLUGGED.get(name, NOBODYS))
    _set(name, place, new, new)


NOBODYS = object()


def _set(name: str, place, value, mark) -> None:
    global epoch
    place.set(value)
    epoch += 1
    if mark is NOBODYS:
        PLUGGED.pop(name, None)
    else:
        PLUGGED[name] = mark
