"""Norms, softmax and dropout of ONNX."""

from math import prod

import numpy

from ...core.prelude import Tensor, creation, dt, movement, normalize_axis
from ...nn import functional as F
from ...tensor import manipulation
from ..rows import apply_row
from ..table import UnreadableNode, apply, reads, tensor


def shape_per_channel(x, value):
    """A vector of channels beside an image."""
    return movement.reshape(tensor(value), shape=(1, -1, *(1,) * (x.spec.ndim - 2)))


@reads("BatchNormalization")
def _(x, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, training_mode=0, spatial=1, node):
    if training_mode or node.results > 1 or not spatial:
        raise UnreadableNode("it normalises by the batch; export the model in evaluation mode")
    x = tensor(x)
    factor = apply("rsqrt", tensor(var) + epsilon) * tensor(scale)
    term = tensor(bias) - tensor(mean) * factor
    return x * shape_per_channel(x, factor) + shape_per_channel(x, term)


def standardize(x, scale, shift, axes, epsilon, shape=None, centered=True):
    """x less its mean, over its deviation, scaled and shifted."""
    mean, var = apply("moments", x, axes=axes, centered=centered)
    scale, shift = (
        v
        if isinstance(v, float)
        else movement.reshape(tensor(v), shape=shape or tensor(v).spec.shape)
        for v in (scale, shift)
    )
    y = apply("standardize", x, scale, shift, mean, var, axes=axes, epsilon=epsilon,
              centered=centered)  # fmt: skip
    return y


@reads("LayerNormalization")
def _(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1, node):
    if node.results > 1:
        raise UnreadableNode("it gives its moments")
    x = tensor(x)
    axes = tuple(range(normalize_axis(axis, x.spec.ndim), x.spec.ndim))
    return standardize(x, scale, 0.0 if bias is None else bias, axes, epsilon)


@reads("RMSNormalization")
def _(x, /, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    axes = tuple(range(normalize_axis(axis, x.spec.ndim), x.spec.ndim))
    return standardize(x, scale, 0.0, axes, epsilon, centered=False)


@reads("InstanceNormalization")
def _(x, /, scale, bias, *, epsilon=1e-5):
    shape = (1, -1, *(1,) * (x.spec.ndim - 2))
    return standardize(x, scale, bias, tuple(range(2, x.spec.ndim)), epsilon, shape)


@reads("GroupNormalization")
def _(x, scale, bias, *, num_groups, epsilon=1e-5, stash_type=1, node):
    if node.opset < 21:
        repeat = tensor(x).spec.shape[1] // num_groups
        scale, bias = (manipulation.repeat_interleave(tensor(v), repeat) for v in (scale, bias))
    return F.group_norm(tensor(x), num_groups, epsilon, tensor(scale), tensor(bias))


@reads("LRN")
def _(x, *, size, alpha=1e-4, beta=0.75, bias=1.0):
    return F.local_response_norm(tensor(x), size, alpha, beta, bias)


@reads("LpNormalization")
def _(x, *, axis=-1, p=2):
    return F.normalize(tensor(x), p, axis, 1e-30)


@reads("Softmax", "LogSoftmax")
def _(x, /, *, axis=None, node):
    """Before opset 13 over all axes from one on."""
    if node.opset >= 13:
        return apply_row(x, node=node, axis=-1 if axis is None else axis)
    first, shape = normalize_axis(1 if axis is None else axis, x.spec.ndim), x.spec.shape
    if first == x.spec.ndim - 1:
        return apply_row(x, node=node, axis=first)
    flat = movement.reshape(x, shape=(prod(shape[:first]), prod(shape[first:])))
    return movement.reshape(apply_row(flat, node=node, axis=1), shape=shape)


@reads("Dropout")
def _(x, ratio=None, training_mode=None, *, seed=0, node):
    on = training_mode is not None and (
        isinstance(training_mode, Tensor) or bool(numpy.asarray(training_mode).reshape(()))
    )
    if on:
        raise UnreadableNode("it drops at random; export the model in evaluation mode")
    if node.results == 1:
        return x
    x = tensor(x)
    return x, creation.full(shape=x.spec.shape, value=True, dtype=dt.bool_.numpy)
