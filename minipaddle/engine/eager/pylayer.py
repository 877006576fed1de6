"""`PyLayer`: a function with a derivative the user writes. One application is one record.

Source: Paddle API `paddle.autograd.PyLayer`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dispatch import Recording, current
from ..core.dtype import FLOATS
from ..core.errors import runtime_error, value_error
from ..core.grad import fill_zeros, fit
from ..core.record import Record, last_write, tick
from ..core.slots import slot
from ..core.spec import leaves
from ..ir.program import item_of
from .tape import get_leaf
from .tensor import Tensor, wrap


class SavedResult(NamedTuple):
    """A saved tensor that is result `k` itself. It has no edge, which would be a cycle."""

    k: int
    array: object


class PyLayerContext:
    """Passes data from `forward` to `backward`: tensors by `save_for_backward`, the rest as
    attributes.

    >>> ctx = paddle.autograd.PyLayerContext()
    >>> ctx.save_for_backward(paddle.ones([2]))
    >>> [x.shape for x in ctx.saved_tensor()]
    [[2]]
    """

    def __init__(self):
        self.entries = ()
        self.constants = ()
        self.record = None

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors for `backward`; they may be inputs, results, or anything else."""
        self.entries, self.time = tensors, tick()

    def saved_tensor(self) -> tuple:
        """The tensors given to `save_for_backward`."""
        return tuple(map(self.revive, self.entries))

    def revive(self, entry):
        """A saved tensor, with its past; raises RuntimeError if it was overwritten since."""
        if not isinstance(entry, Tensor | SavedResult):
            return entry
        if last_write(entry.array) > self.time:
            raise runtime_error(
                "backward of a PyLayer: a saved tensor was overwritten in place afterwards",
                hint="use the out-of-place form, or save a clone()",
            )
        return (
            attach(wrap(entry.array), self.record, entry.k) if type(entry) is SavedResult else entry
        )

    def mark_non_differentiable(self, *tensors) -> None:
        """No gradient flows through these results."""
        self.constants = tensors


class PyLayer:
    """A function with its own derivative: subclass it and call `apply`.

    `forward(ctx, *args)` computes, off the tape; `backward(ctx, *grads)` takes one gradient per
    result and returns one per tensor argument, or None. It is written in tensors, so with
    `create_graph` it can be differentiated again.

    >>> class Cube(paddle.autograd.PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensor()
    ...         return g * 3 * x * x
    >>> x = paddle.to_tensor([2.0], stop_gradient=False)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a PyLayer needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args, **kwargs):
        """The results of `forward`, on the tape with `backward` as their derivative."""
        return apply(cls, args, kwargs)


@slot("pylayer.apply")
def apply(layer, args, kwargs):
    """The results of `layer.forward`, computed off the tape and put on the tape as one record.

    Every application has its own context. If no gradient is wanted, the results are
    returned as they are.
    """
    ctx = PyLayerContext()
    inputs = tensors_in(args, kwargs)
    with Recording(False):
        results = layer.forward(ctx, *args, **kwargs)
    if not current.top.recording or all(x.stop_gradient for x in inputs):
        return results
    if current.top.tracing:
        return current.top.apply_layer(layer, ctx, inputs, results)
    return put_on_tape(layer, ctx, inputs, results)


@slot("pylayer.gradients")
def gradients(layer, ctx, grads, count: int) -> tuple:
    """The `count` gradients that `layer.backward` returns for those of the results, as a tuple.

    That many tensors went into `forward`; None is the gradient of one that gets none. Raises
    ValueError if `backward` returns another number, or something that is no tensor.
    """
    results = tuple(leaves(layer.backward(ctx, *grads)))
    wrong = [g for g in results if g is not None and not isinstance(g, Tensor)]
    if len(results) != count or wrong:
        what = f"{wrong[0]!r:.40}" if wrong else f"{len(results)} gradients"
        raise value_error(
            f"{layer.__name__}.backward returned {what}",
            expected=f"a tensor or None for each of the {count} tensors that forward was given",
        )
    return results


def tensors_in(args, kwargs) -> list:
    """The tensors among arguments, those in lists too, in order."""
    return [x for x in leaves([*args, *kwargs.values()]) if isinstance(x, Tensor)]


def put_on_tape(layer, ctx, inputs, results):
    """The results with their past: one record for all, and an `item` of it for each."""
    is_sequence = type(results) in (tuple, list)
    ys = list(results) if is_sequence else [results]
    edges = [None if x.stop_gradient else x.record or get_leaf(x) for x in inputs]
    places = [k for k, y in enumerate(ys) if isinstance(y, Tensor)]
    specs = tuple(ys[k].spec for k in places)
    record = Record(UserOp(layer), edges, {}, specs, None, ctx, current.top.scope)
    outs, saved = list(ys), {}
    for i, k in enumerate(places):
        saved[id(ys[k])] = SavedResult(i, ys[k].array)
        outs[k] = wrap(ys[k].array)
        if specs[i].dtype in FLOATS and not any(ys[k] is y for y in ctx.constants):
            attach(outs[k], record, i)
    ctx.entries = [saved.get(id(x), x) for x in ctx.entries]
    return type(results)(outs) if is_sequence else outs[0]


def attach(out: Tensor, record, k: int) -> Tensor:
    """Make `out` result `k` of the record."""
    out.record, out.stop_gradient = item_of(record, k, None), False
    return out


class UserOp:
    """A PyLayer as the operator of a record: its `backward` is the rule for every input."""

    kind, inputs, variadic, attrs = "opaque", ["tensors"], True, {}

    def __init__(self, layer):
        self.layer, self.name, self.doc = layer, layer.__name__, layer.__doc__ or ""

    def pull(self, record, g, useful):
        """Pairs (input record, cotangent) of the inputs that are useful."""
        ctx = record.saved
        ctx.record = record
        cotangents = gradients(self.layer, ctx, fill_zeros(record, g), len(record.inputs))
        ctx.record = None
        for k, (edge, gx) in enumerate(zip(record.inputs, cotangents, strict=True)):
            if gx is not None and edge is not None and edge in useful:
                yield edge, fit(gx, edge, record, k)
