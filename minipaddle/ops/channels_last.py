"""Convolution and pooling with the channels last: images [N, *size, C], weights [*kernel, in, out].

A pixel's channels are neighbours in memory, so a convolution is a matrix product whose rows are
pixels. Compiled code computes with this order: the layout pass replaces the operators of `conv` and
`pooling` by these, whose bodies are defined by the former.
"""

from __future__ import annotations

from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops import conv as plain
from ..engine.ops import pooling
from ..engine.ops.movement import inverse
from .mean_pooling import avg_pool, avg_pool_grad

# ---- between the two orders ------------------------------------------------------------------


def to_first(ndim: int) -> tuple:
    """[N, *size, C] -> [N, C, *size]."""
    return (0, ndim - 1, *range(1, ndim - 1))


def to_last(ndim: int) -> tuple:
    """[N, C, *size] -> [N, *size, C]."""
    return inverse(to_first(ndim))


def kernel_first(ndim: int) -> tuple:
    """[*kernel, in, out] -> [out, in, *kernel]."""
    return (ndim - 1, ndim - 2, *range(ndim - 2))


def kernel_last(ndim: int) -> tuple:
    """[out, in, *kernel] -> [*kernel, in, out]."""
    return inverse(kernel_first(ndim))


def through(op, *into, back=to_last):
    """The body and the shape rule of `op` with its inputs and its result in other orders.

    `into` gives for each input the order of its axes that `op` wants, `back` that of its result.
    """

    def body(m, *arrays, **attrs):
        given = [m.transpose(a, order(a.ndim)) for a, order in zip(arrays, into)]
        y = op.body(m, *given, **attrs)
        return m.ascontiguousarray(m.transpose(y, back(y.ndim)))

    def shape(*specs, **attrs):
        given = [moved(s, order(s.ndim)) for s, order in zip(specs, into)]
        y = op.infer(*given, **attrs)
        return moved(y, back(y.ndim))

    return body, shape


def moved(spec: Spec, perm) -> Spec:
    return Spec(tuple(spec.shape[d] for d in perm), spec.dtype)


# ---- convolution -----------------------------------------------------------------------------

conv_body, conv_shape = through(plain.conv, to_first, kernel_first)
input_body, input_shape = through(plain.conv_input_grad, to_first, kernel_first)
weight_body, weight_shape = through(plain.conv_weight_grad, to_first, to_first, back=kernel_last)


@opaque(promote=True)
def conv_last(m, x, w, *, stride, padding, dilation, groups):
    """Convolution of x [N, *size, C] with w [*kernel, C / groups, O]; see `conv`."""
    return conv_body(m, x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


@opaque(promote=True)
def conv_last_input_grad(m, g, w, *, size, stride, padding, dilation, groups):
    """The adjoint of `conv_last` in x: from g [N, *out, O] back to an image [N, *size, C]."""
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return input_body(m, g, w, size=size, **at)


@opaque(promote=True)
def conv_last_weight_grad(m, x, g, *, kernel, stride, padding, dilation, groups):
    """The adjoint of `conv_last` in w: [*kernel, C / groups, O] from x and g [N, *out, O]."""
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return weight_body(m, x, g, kernel=kernel, **at)


conv_last.by_rows = True
conv_last.shape(conv_shape)
conv_last_input_grad.shape(input_shape)
conv_last_weight_grad.shape(weight_shape)


@conv_last.vjp("x")
def _(g, x_spec, w, stride, padding, dilation, groups):
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return conv_last_input_grad(g, w, size=x_spec.shape[1:-1], **at)


@conv_last.vjp("w")
def _(g, x, w_spec, stride, padding, dilation, groups):
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return conv_last_weight_grad(x, g, kernel=w_spec.shape[:-2], **at)


@conv_last_input_grad.vjp("g")
def _(u, w, stride, padding, dilation, groups):
    return conv_last(u, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv_last_input_grad.vjp("w")
def _(u, g, w_spec, stride, padding, dilation, groups):
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return conv_last_weight_grad(u, g, kernel=w_spec.shape[:-2], **at)


@conv_last_weight_grad.vjp("x")
def _(u, x_spec, g, stride, padding, dilation, groups):
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return conv_last_input_grad(g, u, size=x_spec.shape[1:-1], **at)


@conv_last_weight_grad.vjp("g")
def _(u, x, stride, padding, dilation, groups):
    return conv_last(x, u, stride=stride, padding=padding, dilation=dilation, groups=groups)


# ---- pooling ---------------------------------------------------------------------------------

max_body, max_shape = through(pooling.max_pool, to_first)
max_grad_body, max_grad_shape = through(pooling.max_pool_grad, to_first, to_first, to_first)
max_take_body, max_take_shape = through(pooling.max_pool_take, to_first, to_first, to_first)
avg_body, avg_shape = through(avg_pool, to_first)
avg_grad_body, avg_grad_shape = through(avg_pool_grad, to_first)


@opaque
def max_pool_last(m, x, *, windows):
    """The largest value of each window of x [N, *size, C]; see `max_pool`."""
    return max_body(m, x, windows=windows)


@opaque
def max_pool_last_grad(m, g, x, y, *, windows):
    """The adjoint of choosing the maxima y of x: each g goes back to the place of its maximum."""
    return max_grad_body(m, g, x, y, windows=windows)


@opaque
def max_pool_last_take(m, u, x, y, *, windows):
    """The values of u where the maxima y of x stood."""
    return max_take_body(m, u, x, y, windows=windows)


@opaque
def avg_pool_last(m, x, *, windows, exclusive, divisor):
    """The mean of each window of x [N, *size, C], or its sum over `divisor`; see `avg_pool`."""
    return avg_body(m, x, windows=windows, exclusive=exclusive, divisor=divisor)


@opaque
def avg_pool_last_grad(m, g, *, size, windows, exclusive, divisor):
    """The adjoint of `avg_pool_last`: every pixel of an image of `size` gets its share of g."""
    how = {"windows": windows, "exclusive": exclusive, "divisor": divisor}
    return avg_grad_body(m, g, size=size, **how)


max_pool_last.shape(max_shape)
max_pool_last_grad.shape(max_grad_shape)
max_pool_last_take.shape(max_take_shape)
avg_pool_last.shape(avg_shape)
avg_pool_last_grad.shape(avg_grad_shape)

max_pool_last.vjp(lambda g, out, x, windows: max_pool_last_grad(g, x, out, windows=windows))
max_pool_last_grad.vjp(g=lambda u, x, y, windows: max_pool_last_take(u, x, y, windows=windows))
max_pool_last_take.vjp(u=lambda g, x, y, windows: max_pool_last_grad(g, x, y, windows=windows))


@avg_pool_last.vjp
def _(g, x_spec, windows, exclusive, divisor):
    how = {"windows": windows, "exclusive": exclusive, "divisor": divisor}
    return avg_pool_last_grad(g, size=x_spec.shape[1:-1], **how)


@avg_pool_last_grad.vjp
def _(u, windows, exclusive, divisor):
    return avg_pool_last(u, windows=windows, exclusive=exclusive, divisor=divisor)


max_pool_last_grad.compares = max_pool_last_take.compares = True
