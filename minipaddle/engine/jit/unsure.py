"""A variable that may be undefined when the program runs: who uses it lets the program check that.

A loop on a tensor may run no round, a side that jumps binds nothing: whether a name that is bound
only there has a value is a boolean of the program, and goes with the value.
"""

from __future__ import annotations

from weakref import WeakSet, WeakValueDictionary

from ..core.dispatch import current
from ..eager.tensor import Tensor
from .effects import check_held
from .journal import Variable
from .tree import parts

DOUBTED: WeakValueDictionary = WeakValueDictionary()
"""Values of variables that may be undefined (`Unsure`), by id, where they are containers:
each holds its own, and is no stranger."""


class Unsure(Tensor):
    """`known`, the value of the variable `name` if `held`; else the variable has none."""

    def __init__(self, known, held, name: str, reason: str):
        self.known, self.held, self.variable, self.reason = known, held, name, reason
        self.checked: WeakSet = WeakSet()  # the regions that have checked it
        if parts(known) is not None:
            DOUBTED[id(self)] = self
        if isinstance(known, Tensor):
            self.record, self.stop_gradient = known.record, known.stop_gradient

    @property
    def array(self):
        """Its memory: to ask for that is to use the variable."""
        return self.use().array

    @array.setter
    def array(self, array) -> None:
        self.known.array = array

    def use(self):
        """The value; the program raises UnboundLocalError if there is none."""
        said = f"cannot access local variable {self.variable!r} where it is not associated with a "
        said += f"value: {self.reason}"
        if self.held is False:
            raise UnboundLocalError(said)
        builder = current.top.builder
        if self.held is not True and not any(b in self.checked for b in around(builder)):
            self.checked.add(builder)
            check_held(self.held, said, UnboundLocalError)
        return self.known

    def like(self, known, held):
        """The same variable with another value; the value itself where it has one for certain."""
        return known if held is True else Unsure(known, held, self.variable, self.reason)


def around(builder):
    """A region, and those around it."""
    while builder is not None:
        yield builder
        builder = builder.parent


def doubtful(place) -> bool:
    """Is it a variable of the user's?"""
    return isinstance(place, Variable) and not place.name.startswith("_jst_")
