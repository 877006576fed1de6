"""`PyLayer`: a function with a derivative the user writes. One application is one record.

Source: Paddle API `paddle.autograd.PyLayer`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dtype import FLOATS
from ..core.errors import teach
from ..core.interpreter import Recording, current
from ..core.record import Record, tick, written_at
from ..tensor.creation import leaves
from .tape import item_of, leaf_of
from .tensor import Tensor, wrap


class Result(NamedTuple):
    """A saved tensor that is result `k` itself: its edge is made anew, or it would keep itself."""

    k: int
    array: object


class PyLayerContext:
    """What `forward` hands on to `backward`: tensors through `save_for_backward`, the rest as
    attributes.

    >>> import minipaddle as paddle
    >>> ctx = paddle.autograd.PyLayerContext()
    >>> ctx.save_for_backward(paddle.ones([2]))
    >>> [x.shape for x in ctx.saved_tensor()]
    [[2]]
    """

    def __init__(self):
        self.entries = ()
        self.constants = ()
        self.record = self.known = self.grads = None

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors for `backward`; they may be inputs, results, or anything else."""
        self.entries, self.time = tensors, tick()

    def saved_tensor(self) -> tuple:
        """What `save_for_backward` was given."""
        return tuple(map(self.revive, self.entries))

    def revive(self, entry):
        """A saved tensor, with its past; raises RuntimeError if it was overwritten since."""
        if not isinstance(entry, Tensor | Result):
            return entry
        if written_at(entry.array) > self.time:
            raise RuntimeError(
                teach(
                    "backward of a PyLayer: a saved tensor was overwritten in place afterwards",
                    hint="use the out-of-place form, or save a clone()",
                )
            )
        return attach(wrap(entry.array), self.record, entry.k) if type(entry) is Result else entry

    def mark_non_differentiable(self, *tensors) -> None:
        """No gradient flows through these results."""
        self.constants = tensors

    def mark_not_inplace(self, *tensors) -> None:
        """Nothing to do: a result never shares its past with an input here."""

    def set_materialize_grads(self, value: bool) -> None:
        """Missing gradients of results are zeros; asking for None instead is refused."""
        if not value:
            raise NotImplementedError("set_materialize_grads(False) is not supported: test g == 0")


class PyLayer:
    """A function with its own derivative: subclass it and call `apply`.

    `forward(ctx, *args)` computes, off the tape; `backward(ctx, *grads)` takes one gradient per
    result and returns one per tensor argument, or None. It is written in tensors, so with
    `create_graph` it can be differentiated again.

    >>> import minipaddle as paddle
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
        ctx = PyLayerContext()
        inputs = [x for x in leaves([*args, *kwargs.values()]) if isinstance(x, Tensor)]
        with Recording(False):
            results = cls.forward(ctx, *args, **kwargs)
        if not current.top.recording or all(x.stop_gradient for x in inputs):
            return results
        whole = type(results) in (tuple, list)
        ys = list(results) if whole else [results]
        outs = tie(UserOp(cls), ctx, inputs, ys)
        return type(results)(outs) if whole else outs[0]


def tie(op: UserOp, ctx, inputs, ys) -> list:
    """The results with their past: one record for all, and an `item` of it for each."""
    edges = [None if x.stop_gradient else x.record or leaf_of(x) for x in inputs]
    places = [k for k, y in enumerate(ys) if isinstance(y, Tensor)]
    specs = tuple(ys[k].spec for k in places)
    record = Record(op, edges, {}, specs, None, ctx, current.top.scope)
    outs, saved = list(ys), {}
    for i, k in enumerate(places):
        saved[id(ys[k])] = Result(i, ys[k].array)
        outs[k] = wrap(ys[k].array)
        if specs[i].dtype in FLOATS and not any(ys[k] is y for y in ctx.constants):
            attach(outs[k], record, i)
    ctx.entries = [saved.get(id(x), x) for x in ctx.entries]
    return outs


def attach(out: Tensor, record, k: int) -> Tensor:
    """Make `out` result `k` of the record."""
    out.record, out.stop_gradient = item_of(record, k), False
    return out


class UserOp:
    """A PyLayer as the operator of a record: its `backward` is the rule for every input."""

    kind, variadic, attrs = "opaque", False, {}

    def __init__(self, layer):
        self.layer, self.name, self.doc = layer, layer.__name__, layer.__doc__ or ""

    def rule(self, k: int):
        return self.pull

    def pull(self, record, g, k: int):
        """The cotangent of input `k`. One walk asks for each input, with the same `g`."""
        ctx = record.saved
        if ctx.known is not g:
            ctx.record = record
            grads = self.layer.backward(ctx, *g)
            ctx.known, ctx.grads, ctx.record = g, self.check(grads, record), None
        return ctx.grads[k]

    def check(self, grads, record) -> tuple:
        """What `backward` returned as a tuple with one gradient or None per tensor argument."""
        grads = tuple(grads) if isinstance(grads, list | tuple) else (grads,)
        wrong = [g for g in grads if g is not None and not isinstance(g, Tensor)]
        if len(grads) != len(record.inputs) or wrong:
            what = f"{wrong[0]!r:.40}" if wrong else f"{len(grads)} gradients"
            raise ValueError(
                teach(
                    f"{self.name}.backward returned {what}",
                    expected=f"a tensor or None for each of the {len(record.inputs)} tensors "
                    "that forward was given",
                )
            )
        return grads
