"""Activations: the elementwise ones are operators' faces; the others look along an axis."""

from ...core.prelude import OPS, current, normalize_axis, require_floats, same, value_error
from ...engine.ops import activation, elementwise
from ...engine.ops import nn as ops
from ...ops import activations, reductions
from ...tensor import random
from ...tensor.face import face
from ...tensor.inplace import make_in_place

OWN = {activation.__name__, activations.__name__}
WRAPPED, FROM_ELSEWHERE = {"gated", "silu"}, {"sigmoid", "tanh"}


def is_whole(op) -> bool:
    """Is the operator all there is to the function? Then its face is the function."""
    own = op.body.__module__ in OWN and op.name not in WRAPPED
    return own or op.name in FROM_ELSEWHERE


IN_PLACE = ("elu", "hardtanh", "leaky_relu", "relu", "softmax", "tanh", "thresholded_relu")


NO_ATTRS: dict = {}


def softmax(x, axis=-1, dtype=None, name=None):
    """e^x / Σ e^x along `axis`; cast to `dtype` first if given.

    >>> paddle.nn.functional.softmax(paddle.zeros([1, 4])).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return along("softmax", ops.softmax, x, axis, dtype)


def log_softmax(x, axis=-1, dtype=None, name=None):
    """x - log Σ e^x along `axis`; cast to `dtype` first if given.

    >>> y = paddle.nn.functional.log_softmax(paddle.zeros([4]))
    >>> round(y[0].item(), 4)  # -log 4
    -1.3863
    """
    return along("log_softmax", reductions.log_softmax, x, axis, dtype)


def along(name: str, op, x, axis: int, dtype):
    """A softmax operator along one axis; a 0-D tensor counts as one element."""
    x = x if dtype is None else x.astype(dtype)
    require_floats(name, x)
    ndim = x.spec.ndim
    axis = normalize_axis(axis, ndim)
    if not ndim:
        return op(x.reshape([1]), axis=0).reshape([])
    return current.top.apply(op, (x,), {"axis": axis})


def gumbel_softmax(x, temperature=1.0, hard=False, axis=-1, name=None):
    """softmax((x + Gumbel noise) / temperature): a differentiable draw from a categorical.

    With `hard` the value is one-hot and the gradient is the soft one's. Source: Jang et al. 2017.

    >>> y = paddle.nn.functional.gumbel_softmax(paddle.zeros([3]), hard=True)
    >>> sorted(y.tolist())
    [0.0, 0.0, 1.0]
    """
    if temperature <= 0:
        raise ValueError(f"gumbel_softmax needs a temperature above 0, not {temperature}")
    u = random.uniform(x.spec.shape, x.spec.dtype, 1e-20, 1.0)
    noise = -elementwise.log(-elementwise.log(u))
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    peak = soft.max(axis=axis, keepdim=True)
    one_hot = (soft.detach() == peak.detach()).astype(x.spec.dtype)
    return one_hot - soft.detach() + soft


def glu(x, axis=-1, name=None):
    """a · sigmoid(b), for the two halves of x along `axis`.

    Source: Dauphin et al. 2017.

    >>> paddle.nn.functional.glu(paddle.to_tensor([[4.0, 0.0]])).tolist()
    [[2.0]]
    """
    axis = normalize_axis(axis, x.spec.ndim)
    if x.spec.shape[axis] % 2:
        raise value_error(f"glu of {x.spec} along axis {axis}", "an even size, to be halved")
    a, b = x.split(2, axis)
    return activations.gated(a, b)


def maxout(x, groups, axis=1, name=None):
    """The largest of each `groups` neighbouring channels: channel j of C/groups channels.

    Source: Goodfellow et al. 2013.

    >>> paddle.nn.functional.maxout(paddle.to_tensor([[1.0, 3.0, 5.0, 2.0]]), 2).tolist()
    [[3.0, 5.0]]
    """
    axis = normalize_axis(axis, x.spec.ndim)
    shape = x.spec.shape
    if shape[axis] % groups:
        raise value_error(f"maxout of {x.spec}", f"axis {axis} divisible by groups={groups}")
    split = [*shape[:axis], shape[axis] // groups, groups, *shape[axis + 1 :]]
    return x.reshape(split).max(axis=axis + 1)


def shape_per_channel(weight, x, data_format: str):
    """A slope for each channel (or one for all), shaped to broadcast against x."""
    count, ndim = weight.spec.size, x.spec.ndim
    if count == 1:
        return weight.reshape([1] * ndim)
    axis = ndim - 1 if data_format.endswith("C") and len(data_format) > 2 else 1
    if ndim < 2 or not same(x.spec.shape[axis], count):
        raise value_error(
            f"prelu has {count} slopes for x of {x.spec}",
            f"one, or as many as x has channels in {data_format}",
        )
    return weight.reshape([count if d == axis else 1 for d in range(ndim)])


def prelu(x, weight, data_format="NCHW", name=None):
    """x where positive, weight · x elsewhere; one weight for all, or one per channel.

    Source: He et al. 2015.

    >>> x, slope = paddle.to_tensor([[-4.0, 2.0]]), paddle.to_tensor([0.25])
    >>> paddle.nn.functional.prelu(x, slope).tolist()
    [[-1.0, 2.0]]
    """
    return elementwise.where(x > 0, x, shape_per_channel(weight, x, data_format) * x)


def rrelu(x, lower=1.0 / 8.0, upper=1.0 / 3.0, training=True, name=None):
    """x where x ≥ 0, slope · x elsewhere: a random slope each in training, their mean otherwise.

    Source: Xu et al. 2015.

    >>> x = paddle.to_tensor([-4.0, 2.0])
    >>> paddle.nn.functional.rrelu(x, 0.25, 0.75, training=False).tolist()
    [-2.0, 2.0]
    """
    if not 0 <= lower <= upper <= 1:
        raise value_error(f"rrelu(lower={lower}, upper={upper})", "0 ≤ lower ≤ upper ≤ 1")
    slope = (
        random.uniform(x.spec.shape, x.spec.dtype, lower, upper)
        if training
        else (lower + upper) / 2
    )
    return elementwise.where(x >= 0, x, x * slope)


def silu(x, inplace=False, name=None):
    """x · sigmoid(x), written over x itself with `inplace`.

    Source: Elfwing et al. 2017.

    >>> round(paddle.nn.functional.silu(paddle.to_tensor(1.0)).item(), 4)
    0.7311
    """
    y = current.top.apply(activation.silu, (x,), NO_ATTRS)
    return x.become(y) if inplace else y


def swish(x, name=None):
    """x · sigmoid(x): another name of `silu`.

    >>> paddle.nn.functional.swish(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return current.top.apply(activation.silu, (x,), NO_ATTRS)


def swiglu(x, y=None, name=None):
    """silu(x) · y; without `y`, x is halved along the last axis.

    Source: Shazeer 2020.

    >>> paddle.nn.functional.swiglu(paddle.to_tensor([[0.0, 5.0]])).tolist()
    [[0.0]]
    """
    x, y = x.split(2, -1) if y is None else (x, y)
    return activation.silu(x) * y


FACES = {op.name: face(op) for op in OPS.values() if is_whole(op)}
globals().update(FACES)
WRITTEN = {f"{name}_": make_in_place(globals()[name], name) for name in IN_PLACE}
globals().update(WRITTEN)
logsigmoid = FACES["log_sigmoid"]


__all__ = [
    *FACES, *WRITTEN, "glu", "gumbel_softmax", "log_softmax", "logsigmoid", "maxout", "prelu",
    "rrelu", "silu", "softmax", "swiglu", "swish",
]  # fmt: skip
