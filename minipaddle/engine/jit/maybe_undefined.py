"""A variable that may be undefined when the program runs: each use makes the program check it.

A loop on a tensor may run no iteration, and a side that jumps binds nothing. Whether a name that is
bound only there has a value is a boolean of the program, which accompanies the value.
"""

from __future__ import annotations

from weakref import WeakSet

from ..core.dispatch import current
from ..eager.tensor import Tensor
from .effects import check_held


class MaybeUndefined(Tensor):
    """A place of the user's: it has the value `known` if `held` is true, otherwise none."""

    def __init__(self, known, held, variable, reason: str):
        self.known, self.held, self.variable, self.reason = known, held, variable, reason
        self.checked: WeakSet = WeakSet()  # the regions that have checked it
        if isinstance(known, Tensor):
            self.record, self.stop_gradient = known.record, known.stop_gradient

    @property
    def array(self):
        """Its memory; reading that uses the variable."""
        return self.use().array

    @array.setter
    def array(self, array) -> None:
        self.known.array = array

    def use(self):
        """The value; the program raises Python's error if there is none."""
        kind, template = self.variable.unbound
        message = f"{template.format(self.variable.name)}: {self.reason}"
        if self.held is False:
            raise kind(message)
        builder = current.top.builder
        if self.held is not True and self.checked.isdisjoint(builder.enclosing()):
            self.checked.add(builder)
            check_held(self.held, message, kind)
        return self.known

    def like(self, known, held):
        """The same place with another value; the value itself if it is certain to have one."""
        return known if held is True else MaybeUndefined(known, held, self.variable, self.reason)
