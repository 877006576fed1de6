"""A list, a dict or a dataclass that a condition on a tensor picks out of two, one of which is
outside: after the run the name has that very object, or the new one.

While a function is traced, a third object stands for both, which holds what the right one holds.
What is written to it is written to the right one. The condition must be one of the function itself,
not one inside another condition or a loop: there the third object stays.
"""

from dataclasses import dataclass

from ..engine.core.dispatch import Interpreter, current
from ..engine.eager.tensor import Tensor
from ..engine.jit.branching import CHOICES
from ..engine.jit.journal import Contents
from ..engine.jit.tree import parts
from .numbers import NumberChoice


@dataclass(eq=False)
class Picked:
    """The `value` is `left` if `test` is true, else `right`."""

    value: object
    test: Tensor
    left: object
    right: object
    changed: bool = False

    def choose_in_run(self, new: list):
        """The right one in a run: of [its test, its left and right one, the third object]."""
        test, left, right, _ = new
        return left if test else right

    def all(self) -> list:
        """The objects that the value may be, also by earlier conditions."""
        pairs = [(x, find_pick(x)) for x in (self.left, self.right)]
        return [y for x, pick in pairs for y in (pick.all() if pick else [x])]

    def write(self, new: list) -> None:
        """Write to the right one all that was written to the third object."""
        right_one, third = self.choose_in_run(new), new[3]
        if right_one is third:
            return
        if isinstance(right_one, list | dict | set):
            Contents(right_one).set(third)
        else:
            vars(right_one).update(vars(third))


class PickingChoice(NumberChoice):
    """A choice that notes which of two containers a place has."""

    def merge(self, place, a, b, outs):
        value = super().merge(place, a, b, outs)
        if len(current.top.journals) == 1 and not (a.missing or b.missing):
            note(value, self.held, a.value, b.value)
        return value


def note(value, test, left, right) -> None:
    """Note that a value is `left` if `test` is true, else `right`; and so for all that it holds."""
    inside = parts(value)
    if inside is None or value is left or value is right:
        return
    if not isinstance(value, tuple):
        current.top.picked = current.top.picked or {}
        current.top.picked[id(value)] = Picked(value, test, left, right)
    pairs = [parts(left), parts(right)]
    if all(pairs):
        for x, a, b in zip(inside[1], pairs[0][1], pairs[1][1], strict=False):
            note(x, test, a, b)


def find_pick(value) -> Picked | None:
    """The note on a value that a condition picked."""
    return (current.top.picked or {}).get(id(value))


Interpreter.picked = None
"""The choices of conditions of the traced function, by the id of the third object."""

CHOICES.append(PickingChoice)
