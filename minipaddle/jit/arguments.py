"""Python's data of the tensors that a converted function is given: their names, `persistable`, and
the attributes that users gave them.

A trace has other tensors in their place. Where code reads such an attribute, these get the value of
the call that is traced, and the program is for calls whose tensors have the same; what code writes,
each run writes to the tensors of its call. Functions that do neither have no part in this.
"""

from ..engine.core.dispatch import current
from ..engine.eager.tensor import Tensor
from ..engine.jit.journal import MISSING
from ..engine.jit.tree import flatten
from .guards import Given


class GivenTensors:
    """The tensors of a call in the trace: each has a number, and the tensor that it represents."""

    def __init__(self, reads, arguments):
        self.reads = reads
        self.known: dict[int, tuple] = {}
        for k, (x, real) in enumerate(zip(flatten(arguments)[0], reads.tracer.below.call)):
            if isinstance(x, Tensor) and isinstance(real, Tensor) and x is not real:
                self.known[id(x)] = k, real

    def place_of(self, x, name: str) -> Given | None:
        """The place of such data of a tensor of the trace; None for other tensors."""
        return Given(x, self.known[id(x)][0], name) if id(x) in self.known else None

    def give(self, x: Tensor, name: str) -> None:
        """Let a tensor of the trace have an attribute of that for which it stands, and note that it
        was read, unless code has written it before.
        """
        place = self.place_of(x, name)
        if place is None or any(place.key in noted for noted in current.top.journals):
            return
        value = getattr(self.known[id(x)][1], name, MISSING)
        if value is not MISSING and (name == "name" or getattr(x, name, MISSING) is not value):
            setattr(x, name, value)
        self.reads.note(place, value)
