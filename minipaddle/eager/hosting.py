"""Methods that need numbers: a traced program leaves them to Python, after each run."""

from __future__ import annotations

from functools import partial, wraps
from typing import NamedTuple

from ..engine.core.dispatch import current
from ..engine.eager.tensor import Tensor, wrap
from ..engine.eager.tracer import Tracer, unsupported_error
from ..engine.ops import creation


def run_on_host(method):
    """Decorator: a method that needs numbers runs in Python, after each run of a traced program."""

    @wraps(method)
    def call(self, *args, **kwargs):
        if current.top.tracing:
            return current.top.host(method, (self, *args), kwargs)
        return method(self, *args, **kwargs)

    return call


class HostCall(NamedTuple):
    """A call in Python after a run; outputs take the places of some positional arguments."""

    function: object
    args: tuple
    kwargs: dict
    places: list
    outputs: tuple

    def leave(self, inputs, *arrays) -> None:
        args = list(self.args)
        for k, array in zip(self.places, arrays, strict=True):
            args[k] = wrap(array)
        self.function(*args, **self.kwargs)


def host(tracer, function, args, kwargs) -> None:
    """Call `function` in Python after each run, with the present values of its arguments."""
    if tracer.builder is not tracer.root:
        raise unsupported_error(
            f"{function.__qualname__} inside a branch or a loop that depends on a tensor: "
            "it runs in Python, after the program",
            hint="call it outside",
        )
    places = [k for k, x in enumerate(args) if isinstance(x, Tensor)]
    copies = [creation.assign(args[k]) for k in places]
    tracer.calls.append((copies, partial(HostCall, function, args, kwargs, places)))


Tracer.host = host
