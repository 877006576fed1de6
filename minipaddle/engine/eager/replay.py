"""A program applied operator by operator to tensors: so the eager tape, or a trace, records it."""

from __future__ import annotations

from ..core.dispatch import Recording, current
from ..ir.control import changes_sizes, while_loop
from ..ir.cut import silent
from ..ir.edit import with_size
from ..ir.program import ITEM, NUMBER, Program, new_sizes
from ..ops import creation, movement
from .backward import grad
from .tensor import Tensor, wrap


def replay(program: Program, inputs: list[Tensor], sizes: dict | None = None) -> list:
    """The results of a program for these inputs and states, recorded by the interpreter on top.

    Gradients flow where they flowed when the program was traced, and nowhere else. The unknown
    sizes are added to `sizes` by name.
    """
    values = dict(zip(program.given, inputs, strict=True))
    sizes = {} if sizes is None else sizes
    known: set[str] = set()
    for record, x in values.items():
        sizes |= {name: x.spec.shape[axis] for axis, name in new_sizes(record.spec, known)}

    def value(record):
        return with_size(record.attrs["value"], sizes) if record.op is NUMBER else values[record]

    for record in program.records:
        if record.op is ITEM:
            y = value(record.inputs[0])[record.attrs["k"]]
        else:
            args = [
                detach_unless(value(r), record.saved >> k & 1) for k, r in enumerate(record.inputs)
            ]
            attrs = {k: with_size(v, sizes) for k, v in record.attrs.items()}
            if record.op is while_loop:
                keeps = any_differentiable(args) and not changes_sizes(attrs["body"])
                attrs["keep"] = attrs["keep"] or keeps
            try:
                y = current.top.apply(record.op, args, attrs)
            except Exception as error:
                error.record = getattr(error, "record", record)  # the one that the error is about
                raise
        values[record] = y
        for hook in (record.hooks or ()) if isinstance(y, Tensor) and not y.stop_gradient else ():
            y.register_hook(hook)
        if record.dtype is not None:
            sizes |= {name: y.spec.shape[axis] for axis, name in new_sizes(record.spec, known)}
    return [value(r) for r in program.results]


def detach_unless(x, flows: int):
    """x itself if a gradient may flow back to it, else its value alone."""
    if flows or not isinstance(x, Tensor) or x.stop_gradient:
        return x
    return wrap(x.array)


def any_differentiable(args) -> bool:
    """Whether a backward may walk through a loop, which must save its iterations then."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    return current.top.recording and not all(x.stop_gradient for x in tensors)


def derivative(region, operands: list, cotangents: list, wanted: list[int]) -> list[Tensor]:
    """Cotangents of the wanted operands of a region, given the cotangents of its outputs."""
    again = current.top.recording  # whether this will be differentiated too
    args = list(operands)
    with Recording(True):
        for k in wanted:
            tied = again and not args[k].stop_gradient
            args[k] = creation.assign(args[k]) if tied else wrap(args[k].array)
            args[k].stop_gradient = False
        outs = replay(silent(region), args)
        pairs = [
            (y, cotangent(g, y))
            for y, g in zip(outs, cotangents, strict=False)
            if g is not None and not y.stop_gradient
        ]
    if not pairs:
        return [zeros_like(args[k]) for k in wanted]
    ys, gs = zip(*pairs, strict=True)
    gradients = grad(
        list(ys), [args[k] for k in wanted], list(gs), create_graph=again, allow_unused=True
    )
    return [cotangent(g, args[k]) for g, k in zip(gradients, wanted, strict=True)]


def cotangent(g, x: Tensor) -> Tensor:
    """The cotangent of x in the shape of x: in a region alone 3 may be known to be `n`."""
    if g is None:
        return zeros_like(x)
    known = [*map(str, g.spec.shape)] == [*map(str, x.spec.shape)]
    return g if known else movement.reshape(g, shape=x.spec.shape)


def zeros_like(x: Tensor) -> Tensor:
    return current.top.full(x.spec, 0, x)
