"""The user's derivatives (a `PyLayer`, a hook) in a program: their backward is traced too.

The derivative of a region computes the region again, operator by operator. So a function with a
derivative of its own becomes one operator, `custom`, whose backward is a region.
"""

from __future__ import annotations

from ..engine.core.dispatch import OUT, Recording, current, note_refusal
from ..engine.core.dtype import FLOATS
from ..engine.core.errors import not_supported
from ..engine.core.grad import fill_zeros, fit
from ..engine.core.record import Spec
from ..engine.eager.control_flow import emit_with_regions, get_edges, zeros_like
from ..engine.eager.pylayer import gradients
from ..engine.eager.replay import replay
from ..engine.eager.tensor import Tensor, wrap
from ..engine.eager.tracer import Tracer
from ..engine.ir import control


def attach_derivative(tracer, results: list[Tensor], inputs: list[Tensor], back) -> list[Tensor]:
    """The results with the derivative `back(results, cotangents)`, which returns a tensor or None
    for each of the inputs.
    """
    specs = [y.spec for y in results]
    with tracer.region("backward") as builder, Recording(True):
        outs, cotangents = (
            [create_region_input(builder, spec) for spec in specs] for _ in range(2)
        )
        gradients = [
            zeros_like(x) if g is None else g
            for x, g in zip(inputs, back(outs, cotangents), strict=True)
        ]
        builder.program.outputs = [builder.value(tracer.lift(g)) for g in gradients]
        tapes = dict(tracer.tapes)
    if builder.find_written():
        what = "a backward of a PyLayer, or a hook, that writes to a tensor outside, in place"
        raise note_refusal(not_supported(what))
    used = list(builder.captured)
    arrays = [*map(tracer.lift, [*results, *inputs]), *used]
    tapes = [*[None] * len(results), *inputs, *map(tapes.get, used)]
    edges = get_edges(tracer, zip(arrays, tapes, strict=True))
    attrs = {"backward": builder.program, "results": len(results)}
    return emit_with_regions(tracer, control.custom, arrays, edges, attrs)


def apply_layer(tracer, layer, ctx, inputs, results):
    """The results of a PyLayer, with `backward` traced into the program as their derivative."""
    is_sequence = type(results) in (tuple, list)
    ys = list(results) if is_sequence else [results]
    own = [y for y in ys if isinstance(y, Tensor)]

    def back(outs, grads):
        inside = {id(y): out for y, out in zip(own, outs, strict=True)}
        ctx.entries = [inside.get(id(x), x) for x in ctx.entries]
        return gradients(layer, ctx, grads, len(inputs))

    outputs = dict(zip(map(id, own), tracer.attach_derivative(own, inputs, back), strict=True))
    constant = {id(y) for y in own if y.spec.dtype not in FLOATS} | {*map(id, ctx.constants)}
    outs = [y if id(y) in constant else outputs.get(id(y), y) for y in ys]
    return type(results)(outs) if is_sequence else outs[0]


def create_region_input(builder, spec: Spec) -> Tensor:
    """An input of the region."""
    x = wrap(builder.symbolic(builder.input(spec), builder.place))
    x.stop_gradient = False
    return x


def pull(record, g, useful):
    """The derivative: replay the region on the results, their cotangents and its other inputs."""
    n, region = record.attrs["results"], record.attrs["backward"]
    count = len(region.outputs)
    used = [current.top.read(record, k) for k in range(n + count, len(record.inputs))]
    gradients = replay(region, [*current.top.read(record, OUT), *fill_zeros(record, g), *used])
    for k, gx in enumerate(gradients, n):
        edge = record.inputs[k]
        if edge is not None and edge in useful:
            yield edge, fit(gx, edge, record, k)


control.custom.pull = pull
Tracer.attach_derivative, Tracer.apply_layer = attach_derivative, apply_layer
