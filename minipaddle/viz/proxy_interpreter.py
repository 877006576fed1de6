"""An interpreter on top of another one, which hands everything on to it."""

from ..engine.core.dispatch import Interpreter


def forward(name: str) -> property:
    """A property that is an attribute of the interpreter below."""
    return property(
        lambda self: getattr(self.below, name),
        lambda self, value: setattr(self.below, name, value),
    )


class ProxyInterpreter(Interpreter):
    """Does what the interpreter below does; a subclass observes or changes its calls."""

    def __init__(self, below: Interpreter):
        self.below = self.hands_on_to = below

    recording, apply, read, full = map(forward, ("recording", "apply", "read", "full"))
    constant, draw, fetch_array = map(forward, ("constant", "draw", "fetch_array"))
    passing, after_backward, policy = map(forward, ("passing", "after_backward", "policy"))
    lines, quietly = map(forward, ("lines", "quietly"))
