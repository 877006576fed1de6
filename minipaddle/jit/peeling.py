"""Loops on a tensor whose names are None before the first iteration and tensors after it."""

from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.jit.branching import CHOICES, nothing
from ..engine.jit.looping import KINDS
from .raising import RaisingLoop


class PeelFirst(Exception):
    """A value is None before the first iteration and a tensor after it: trace the first apart."""


class PeelingLoop(RaisingLoop):
    """A loop that may trace its first iteration apart: after it the names hold tensors."""

    unless = (*RaisingLoop.unless, PeelFirst)

    def note_after(self, values: dict) -> None:
        super().note_after(values)
        if any(map(has_grown, self.before, self.after)):
            raise PeelFirst

    def end(self, error) -> None:
        if not isinstance(error, PeelFirst):
            return super().end(error)
        body, test, live_out, local = self.body, self.test, self.live_out, self.local
        loop_carried = [p for p in self.places if p not in live_out]

        def iterations():
            body()
            go = test()
            if is_static(go):
                type(self)(go, test, body, live_out, loop_carried, local).write()

        CHOICES[-1](self.go, iterations, nothing, live_out, [*loop_carried, *local]).write()


def has_grown(a, b) -> bool:
    """Whether a state has a tensor where the one before has None."""
    if a.structure != b.structure:
        return a.value is None and not a.missing and not b.missing
    return any(x is None and isinstance(y, Tensor) for x, y in zip(a.leaves, b.leaves, strict=True))


KINDS.append(PeelingLoop)
