"""Convolution and pooling with the channels last: images [N, *size, C], weights [*kernel, in, out].

A pixel's channels are neighbours in memory, so a convolution is a matrix product whose rows are
pixels. Compiled code computes with this order: the layout pass replaces the operators of `conv` and
`pooling` by these. All there is to know of them follows from those: body, shape rule and
derivatives are theirs, between transposes.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from ..engine.core.op import Op, opaque
from ..engine.core.record import Spec
from ..engine.ops import conv as plain
from ..engine.ops.movement import inverse, transpose
from . import pooling
from .mean_pooling import avg_pool, avg_pool_grad
from .quantization import conv_integer


class Order(NamedTuple):
    """The axes of images, or of kernels: `first(ndim)` puts the channels of `ndim` axes first."""

    first: Callable[[int], tuple]

    def last(self, ndim: int) -> tuple:
        return inverse(self.first(ndim))


IMAGE = Order(lambda ndim: (0, ndim - 1, *range(1, ndim - 1)))  # from [N, *size, C]
KERNEL = Order(lambda ndim: (ndim - 1, ndim - 2, *range(ndim - 2)))  # from [*kernel, in, out]


def permute(x, order: Callable[[int], tuple]):
    """A spec, or a tensor, with its axes in another order."""
    if not isinstance(x, Spec):
        return transpose(x, perm=order(x.spec.ndim))
    return Spec(tuple(x.shape[d] for d in order(x.ndim)), x.dtype)


def sibling(op: Op, *orders: Order) -> Op:
    """The operator with the channels last; `orders` are those of its inputs, and of its result."""
    *into, back = orders

    def body(m, *arrays, **attrs):
        inner = [m.transpose(a, order.first(a.ndim)) for a, order in zip(arrays, into)]
        y = op.body(m, *inner, **attrs)
        return m.ascontiguousarray(m.transpose(y, back.last(y.ndim)))

    body.__name__ = op.name.replace("conv", "conv_last").replace("pool", "pool_last")
    body.__doc__ = f"{op.doc}\n\nThe channels are last here: see `{op.name}`."
    body.__signature__ = inspect.signature(op.body)
    body.__module__ = op.body.__module__
    last = opaque(body, promote=bool(op.promoted))

    @last.shape
    def _(*specs, **attrs):
        inner = [permute(s, order.first) for s, order in zip(specs, into)]
        return permute(op.infer(*inner, **attrs), back.last)

    for k, rule in op.rules.items():
        last.set_rule(k, with_channels_last(rule, dict(zip([*op.inputs, "out"], orders)), into[k]))
    last.compares = op.compares
    SIBLINGS[op] = last, into, back
    return last


def with_channels_last(rule, orders: dict[str, Order], own: Order) -> Callable:
    """The derivative rule of a sibling for the input whose order is `own`."""
    names = [name.removesuffix("_spec") for name, *_ in rule.plan]

    def pull_back(g, *args, **attrs):
        inner = [permute(x, orders[n].first) if n in orders else x for n, x in zip(names, args)]
        return permute(rule.fn(permute(g, orders["out"].first), *inner, **attrs), own.last)

    pull_back.__signature__ = inspect.signature(rule.fn)
    return pull_back


SIBLINGS: dict[Op, tuple] = {}
"""For an operator the one with the channels last, the orders of its inputs, that of its result."""

conv_last = sibling(plain.conv, IMAGE, KERNEL, IMAGE)
conv_last_integer = sibling(conv_integer, IMAGE, KERNEL, IMAGE)
conv_last.by_rows = conv_last_integer.by_rows = True
conv_last_input_grad = sibling(plain.conv_input_grad, IMAGE, KERNEL, IMAGE)
conv_last_weight_grad = sibling(plain.conv_weight_grad, IMAGE, IMAGE, KERNEL)
for op in (pooling.max_pool, avg_pool, avg_pool_grad):
    sibling(op, IMAGE, IMAGE)
for op in (pooling.max_pool_grad, pooling.max_pool_take):
    sibling(op, IMAGE, IMAGE, IMAGE, IMAGE)
