"""Derivatives of the user's (a `PyLayer`, a hook) in a program: the way back is traced too.

A region's derivative is found by computing the region again, operator by operator; so an operator
with a derivative of its own must be one, whose way back is a region.
"""

from __future__ import annotations

from ..core.dispatch import OUT, Recording, current, note_refusal
from ..core.errors import not_supported
from ..core.grad import filled, fit
from ..core.record import Spec
from ..ir import control
from .control_flow import edges_of, emitted, zeros_like
from .replay import replay
from .tensor import Tensor, wrap


def with_derivative(results: list[Tensor], inputs: list[Tensor], back) -> list[Tensor]:
    """The results, their derivative being `back(results, cotangents)`: for each of the inputs a
    tensor, or None.
    """
    tracer, specs = current.top, [y.spec for y in results]
    with tracer.region("backward") as builder, Recording(True):
        outs, cotangents = ([given(builder, spec) for spec in specs] for _ in range(2))
        found = [
            zeros_like(x) if g is None else g
            for x, g in zip(inputs, back(outs, cotangents), strict=True)
        ]
        builder.program.outputs = [builder.value(tracer.borrow(g)) for g in found]
        tapes = dict(tracer.tapes)
    if builder.changed():
        what = "a backward of a PyLayer, or a hook, that writes to a tensor outside, in place"
        raise note_refusal(not_supported(what))
    used = list(builder.captured)
    arrays = [*map(tracer.borrow, [*results, *inputs]), *used]
    tapes = [*[None] * len(results), *inputs, *map(tapes.get, used)]
    edges = edges_of(tracer, zip(arrays, tapes, strict=True))
    attrs = {"backward": builder.program, "results": len(results)}
    return emitted(tracer, control.custom, arrays, edges, attrs)


def on_the_past_of(x: Tensor, value: Tensor) -> Tensor:
    """The value, with the past of x: what x is once it was written where nothing is recorded."""
    with Recording(True):
        return with_derivative([value], [x], lambda outs, cotangents: cotangents)[0]


def given(builder, spec: Spec) -> Tensor:
    """An input of the region."""
    x = wrap(builder.promise(builder.input(spec), builder.place))
    x.stop_gradient = False
    return x


def pull(record, g, useful):
    """The derivative: the region, with the results, their cotangents, and what else it uses."""
    n, region = record.attrs["results"], record.attrs["backward"]
    count = len(region.outputs)
    used = [current.top.read(record, k) for k in range(n + count, len(record.inputs))]
    found = replay(region, [*current.top.read(record, OUT), *filled(record, g), *used])
    for k, gx in enumerate(found, n):
        edge = record.inputs[k]
        if edge is not None and edge in useful:
            yield edge, fit(gx, edge, record, k)


control.custom.pull = pull
