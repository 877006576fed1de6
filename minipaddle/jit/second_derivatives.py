"""Derivatives of derivatives through a converted function."""

from ..engine.core.grad import fit
from ..engine.eager.replay import derivative
from ..engine.eager.tensor import get_edge, wrap
from ..engine.jit.capture import TAPED


def pull_with_tape(captured, record, g, useful):
    """Pairs (input record, cotangent): the program runs again, with a tape."""
    operands, count = [*map(wrap, record.saved[2])], len(captured.program.inputs)
    if len(operands) == count:
        states = [wrap(cell.read()) for cell in captured.states]
        for storage in captured.walk.outer:
            x = storage.tensor
            states = [x if s.array is x.array else s for s in states]
        operands += states
    ends = [*captured.walk.inputs]
    if captured.rewrites:  # what the states held was saved, too
        held = [getattr(cell, "tensor", None) for cell in captured.states]
        ends += [count + next(k for k, t in enumerate(held) if t is storage.tensor)
                 for storage in captured.walk.outer]  # fmt: skip
    for k, edge in zip(ends, record.inputs, strict=False):
        if edge is not None:
            operands[k].record, operands[k].stop_gradient = edge, False
    wanted = [k for k, x in enumerate(operands) if not x.stop_gradient]
    cotangents: list = [None] * len(captured.program.outputs)
    for k, gk in g.items():
        cotangents[captured.places[captured.walk.of[k]]] = gk
    gradients = derivative(captured.program, operands, cotangents, wanted)
    for k, gx in zip(wanted, gradients, strict=True):
        edge = get_edge(operands[k])
        if edge in useful and edge in record.inputs:
            yield edge, fit(gx, edge, record, record.inputs.index(edge))


TAPED.append(pull_with_tape)
