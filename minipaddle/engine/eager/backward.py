"""`backward` and `grad`: the reverse walk, started from tensors."""

from __future__ import annotations

from operator import attrgetter, itemgetter

from ..core.dispatch import Recording, current
from ..core.errors import runtime_error, value_error
from ..core.grad import pull_back
from ..core.rank import per_rank
from ..ops.creation import assign
from .device import device_guard
from .tape import get_leaf

WALKS = [pull_back]  # the last one walks; those outside of the engine may compile the walk
AVERAGING = per_rank(True)
"""Whether a backward averages over the ranks what `Tensor.averaged` asks for; not in `no_sync`."""


def build_seeds(tensors, grads):
    """Pairs (record, cotangent) from results and the gradients given for them."""
    grads = list(grads) if isinstance(grads, list | tuple) else [grads] * len(tensors)
    if len(grads) != len(tensors):
        raise ValueError(f"{len(tensors)} results but {len(grads)} gradients for them")
    pairs = []
    for y, g in zip(tensors, grads, strict=True):
        if y.record is None:
            if y.stop_gradient:
                continue
            get_leaf(y)
        if g is None:
            g = current.top.full(y.spec, 1, y)
        elif g.spec.shape != y.spec.shape:
            raise value_error(
                f"the gradient given for a result of {y.spec} is {g.spec}",
                expected="the same shape",
            )
        pairs.append((y.record, g))
    return pairs


def backward(tensors, grad_tensors=None, retain_graph: bool = False) -> None:
    """Add the gradient of the sum of `tensors` to `.grad` of every leaf.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.backward([x * x, 3 * x])
    >>> x.grad.tolist()
    [5.0, 7.0]
    """
    tensors = tensors if isinstance(tensors, list | tuple) else [tensors]
    if all(map(attrgetter("stop_gradient"), tensors)):
        raise runtime_error(
            "backward from a tensor that nothing leads to (stop_gradient is True)",
            hint="set stop_gradient=False on what you want gradients of, before using it",
        )
    top, calls = current.top, current.top.after_backward
    top.after_backward = [] if calls is None else calls
    try:
        with Recording(False), device_guard(tensors[0].place):
            seeds = build_seeds(tensors, grad_tensors)
            gradients = WALKS[-1](seeds, release=not retain_graph)
            taken = {*map(id, map(itemgetter(1), seeds))}
            for record, g in gradients.items():  # no two leaves may share one gradient's memory
                if (leaf := record.tensor()) is not None:
                    leaf.receive(assign(g) if id(g) in taken else g)
                    taken.add(id(g))
            for call in top.after_backward if calls is None else ():  # the outermost one ends
                call()
    finally:
        top.after_backward = calls


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=False,
    no_grad_vars=None,
):
    """The gradients of `outputs` with respect to `inputs`, as a list; `.grad` stays untouched.

    With `create_graph` the gradients can be differentiated again, to any order. An input the
    outputs do not depend on is an error unless `allow_unused`; then its gradient is None.

    >>> x = paddle.to_tensor(3.0, stop_gradient=False)
    >>> (dx,) = paddle.grad(x**3, x, create_graph=True)
    >>> (ddx,) = paddle.grad(dx, x)
    >>> dx.item(), ddx.item()
    (27.0, 18.0)
    """
    outputs, inputs = (x if isinstance(x, list | tuple) else [x] for x in (outputs, inputs))
    keep = create_graph if retain_graph is None else retain_graph
    seeds = build_seeds(outputs, grad_outputs)  # an output that is an input gets its leaf here
    wanted = [x.record for x in inputs]
    blocked = {t.record for t in no_grad_vars or ()} - {None}
    with Recording(create_graph), device_guard(outputs[0].place):
        gradients = WALKS[-1](seeds, set(wanted) - {None}, blocked=blocked, release=not keep)
    grads = [gradients.get(record) for record in wanted]
    for x, g in zip(inputs, grads, strict=True):
        if g is None and not allow_unused:
            raise runtime_error(
                f"an input of grad ({x.spec}) was not used to compute the outputs",
                hint="allow_unused=True gives None for it; or check that it had "
                "stop_gradient=False when it was used",
            )
    return grads
