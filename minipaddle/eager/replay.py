"""A program computed by the interpreter on top, operator by operator: so it gets a tape."""

from __future__ import annotations

from ..core.interpreter import current
from ..ir.interpreter import bound, resolved
from ..ir.program import ITEM, NUMBER, Program
from .tensor import Tensor, wrap


def replay(program: Program, inputs: list[Tensor]) -> list:
    """The results of a program for tensors as inputs (and states), on the tape of who asks.

    Gradients flow where they flowed when the program was traced, and nowhere else.
    """
    values = dict(zip(program.given, inputs, strict=True))
    sizes: dict[str, int] = {}
    tracing, known = current.top.tracing, set()
    for record, x in values.items():
        sizes |= {name: x.spec.shape[axis] for axis, name in bound(record.spec, known)}

    def value(record):
        return record.attrs["value"] if record.op is NUMBER else values[record]

    for record in program.records:
        attrs = record.attrs
        if not tracing:
            attrs = {k: resolved(v, sizes) for k, v in attrs.items()}
        if record.op is ITEM:
            y = value(record.inputs[0])[attrs["k"]]
        else:
            args = [flowing(value(r), record.saved >> k & 1) for k, r in enumerate(record.inputs)]
            y = current.top.apply(record.op, args, attrs)
        values[record] = y
        if record.dtype is not None:
            sizes |= {name: y.spec.shape[axis] for axis, name in bound(record.spec, known)}
    return [value(r) for r in program.results]


def flowing(x, flows: int):
    """x itself if a gradient may flow back to it, else its value alone."""
    if flows or not isinstance(x, Tensor) or x.stop_gradient:
        return x
    return wrap(x.array)
