"""Normalisation over batches, layers, groups, instances, neighbours."""

from math import prod

from ...core.checks import require_floats, require_ndim, require_one_of
from ...core.prelude import (
    OPS,
    Recording,
    as_operator,
    current,
    same_shape,
    slot,
    value_error,
)  # fmt: skip
from ...engine.core.dtype import HALVES, float32
from ...engine.ops import movement
from ...ops import arithmetic
from ...ops import norm as ops
from ...ops.mean_pooling import avg_pool
from ...tensor import math as tensor_math
from ...tensor.creation import full
from ...tensor.joining import concat
from ...tensor.norms import vector_norm


def standardize(x, weight, bias, axes, epsilon, *, per, view=None, centered=True):
    """(weight · (x - mean) / √(var + ε) + bias, mean, var) with the moments of x over `axes`.

    Weight and bias are seen in the shape `per`, x in the shape `view`, where one size may be -1;
    the result has the shape of x. The moments keep their axes, as 1, and have no gradient of their
    own.
    """
    require_floats("a norm", x)
    shape, dtype = x.spec
    scale = 1.0 if weight is None else reshape_vector(weight, per)
    shift = 0.0 if bias is None else reshape_vector(bias, per)
    x = x if view is None else movement.reshape(x, shape=complete_shape(shape, view))
    with Recording(False):
        wide = x.astype(float32.numpy) if dtype in HALVES else x
        mean, var = ops.moments(wide, axes=axes, centered=centered)
    y = ops.standardize(
        x, scale, shift, mean, var, axes=axes, epsilon=float(epsilon), centered=centered
    )
    return y if view is None else movement.reshape(y, shape=shape), mean, var


def reshape_vector(vector, shape):
    """A parameter reshaped to meet x; one that does stays as it is."""
    return vector if vector.spec.shape == shape else movement.reshape(vector, shape=shape)


FORMATS = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")


def channels_at_end(name: str, data_format: str) -> bool:
    """Does a format such as NCHW, NHWC or NC have the channels last?"""
    if data_format not in FORMATS:
        require_one_of(name, FORMATS, data_format=data_format)
    return data_format[-1] == "C" and data_format != "NC"


# ---- over batches ----------------------------------------------------------------------------


def update_running(running, batch, momentum: float) -> None:
    """running ← momentum · running + (1 - momentum) · batch: the one place that moves statistics.

    It is a state update, with no gradient.
    """
    with Recording(False):
        batch = movement.reshape(batch, shape=running.spec.shape)
        new = running * momentum + batch * (1 - momentum)
        running.become(new.astype(running.spec.dtype))


@as_operator("batch_norm", first=True)
def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.9,
    epsilon=1e-05, data_format="NCHW", use_global_stats=None, name=None,
):  # fmt: skip
    """Each channel less its mean, over its deviation, times `weight` plus `bias` (all [C]).

    Training takes the moments of this batch and moves the running ones: running = momentum ·
    running + (1 - momentum) · batch, the variance divided by the count. Otherwise, or with
    `use_global_stats`, the running ones are used. x is [N, C, ...], or [N, ..., C]. Source: Ioffe
    and Szegedy, 2015.

    >>> x, mean, var = paddle.to_tensor([[1.0], [3.0]]), paddle.zeros([1]), paddle.ones([1])
    >>> y = paddle.nn.functional.batch_norm(x, mean, var, training=True, epsilon=0.0)
    >>> y.tolist(), [round(v, 4) for v in mean.tolist()]
    ([[-1.0], [1.0]], [0.2])
    """
    require_ndim("batch_norm", x, least=2)
    shape, last = x.spec.shape, channels_at_end("batch_norm", data_format)
    axis = x.spec.ndim - 1 if last else 1
    if not same_shape(running_mean.spec.shape, (shape[axis],)):
        raise value_error(
            f"batch_norm was given x of {x.spec} and statistics of {running_mean.spec}",
            f"one for each of the {shape[axis]} channels of {data_format}",
        )
    training = training if use_global_stats is None else not use_global_stats
    state = running_mean, running_var, weight, bias
    return normalize_batch(x, *state, training, momentum, epsilon, axis)


@slot("nn.batch_norm")
def normalize_batch(x, running_mean, running_var, weight, bias, training, momentum, epsilon, axis):
    """`batch_norm` of x with its channels on `axis`; weight and bias may be None."""

    def testing():
        return normalize_by(x, running_mean, running_var, weight, bias, epsilon, axis)

    def moving():
        return follow_batch(x, running_mean, running_var, weight, bias, momentum, epsilon, axis)

    return current.top.modes(moving, testing) if training else testing()


def follow_batch(x, running_mean, running_var, weight, bias, momentum, epsilon, axis):
    """x by the moments of this batch, which the running ones follow."""
    shape = x.spec.shape
    if axis == x.spec.ndim - 1:
        axes, how = (0,), {"view": (-1, shape[axis]), "per": (1, shape[axis])}
    else:
        axes, how = (0, 2), {"view": (*shape[:2], -1), "per": (1, shape[1], 1)}
    y, mean, var = standardize(x, weight, bias, axes, epsilon, **how)
    update_running(running_mean, mean, momentum)
    update_running(running_var, var, momentum)
    return y


@as_operator("sync_batch_norm", first=True)
def normalize_over_ranks(x, running_mean, running_var, weight, bias, momentum, epsilon, axis):
    """x by the moments of the batches of all ranks, which the running ones follow."""
    axes = [d for d in range(x.spec.ndim) if d != axis]
    wide = x.astype("float32") if x.spec.dtype in HALVES else x
    count = full([1], prod(x.spec.shape[d] for d in axes), wide.dtype)
    here = concat([wide.sum(axes), count])
    sums = sum_over_ranks(here)
    total, mean = sums[-1:], sums[:-1] / sums[-1:]
    off = wide - reshape_vector(mean, tuple(-1 if d == axis else 1 for d in range(x.spec.ndim)))
    var = sum_over_ranks((off * off).sum(axes)) / total
    update_running(running_mean, mean, momentum)
    update_running(running_var, var, momentum)
    return normalize_by(x, mean, var, weight, bias, epsilon, axis)


@slot("nn.sync_moments")
def sum_over_ranks(here):
    """Sums of this rank, added over all. (Collectives are above the layers: known by name.)"""
    return OPS["all_reduce"](here)


def complete_shape(shape, flat) -> tuple:
    """`flat` with its one -1 worked out, also where a size is 0."""
    known = prod(n for n in flat if n != -1)
    rest = prod(shape) // known if known else 0
    return tuple(rest if n == -1 else n for n in flat)


def normalize_by(x, mean, var, weight, bias, epsilon, place):
    """x normalised by given moments, as one factor and one term for each channel."""
    per = tuple(-1 if d == place else 1 for d in range(x.spec.ndim))
    factor = arithmetic.rsqrt(var + epsilon)
    factor = factor if weight is None else factor * weight
    term = -mean * factor if bias is None else bias - mean * factor
    factor, term = reshape_vector(factor, per), reshape_vector(term, per)
    if x.spec.dtype in HALVES:
        factor, term = factor.astype(x.spec.dtype), term.astype(x.spec.dtype)
    return x * factor + term


# ---- over layers, groups, instances ----------------------------------------------------------


def trailing(name: str, x, normalized_shape) -> tuple[tuple, tuple]:
    """The last axes of x, which must have the sizes of `normalized_shape`, and their sizes."""
    wanted = normalized_shape
    wanted = tuple(wanted) if isinstance(wanted, list | tuple) else (int(wanted),)
    shape = x.spec.shape
    own = shape[-len(wanted) :]
    if not wanted or not same_shape(own, wanted):
        raise value_error(
            f"{name} was given x of {x.spec} and normalized_shape={list(wanted)}",
            f"x of shape [*, {', '.join(map(str, wanted))}]",
        )
    return tuple(range(len(shape) - len(own), len(shape))), own


@as_operator("layer_norm", first=True)
def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05, name=None):
    """x less its mean, over its deviation, both taken over the last axes, `normalized_shape`.

    `weight` and `bias` have that shape, or are flat. Source: Ba, Kiros and Hinton, "Layer
    Normalization", 2016.

    >>> x = paddle.to_tensor([[1.0, 3.0]])
    >>> paddle.nn.functional.layer_norm(x, 2, epsilon=0.0).tolist()
    [[-1.0, 1.0]]
    """
    axes, own = trailing("layer_norm", x, normalized_shape)
    return standardize(x, weight, bias, axes, epsilon, per=own)[0]


@as_operator("rms_norm", first=True)
def rms_norm(input, normalized_shape, weight=None, eps=1e-05, name=None):
    """(x / √(mean of x² + ε) · weight, 1 / √(mean of x² + ε)) over the last axes.

    Source: Zhang and Sennrich, 2019.

    >>> y, rate = paddle.nn.functional.rms_norm(paddle.to_tensor([[3.0, 3.0]]), [2], eps=0.0)
    >>> y.tolist(), round(1 / rate.item(), 4)
    ([[1.0, 1.0]], 3.0)
    """
    axes, own = trailing("rms_norm", input, normalized_shape)
    y, _, square = standardize(input, weight, None, axes, eps, per=own, centered=False)
    rate = movement.reshape(square + eps, shape=square.spec.shape[: -len(axes)])
    return y, arithmetic.rsqrt(rate)


@as_operator("group_norm", first=True)
def group_norm(x, num_groups, epsilon=1e-05, weight=None, bias=None, data_format="NCHW", name=None):
    """Each sample's channels, in `num_groups` groups, less their mean, over their deviation.

    `weight` and `bias` are [C]. Source: Wu and He, "Group Normalization", 2018.

    >>> x = paddle.to_tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> paddle.nn.functional.group_norm(x, 2, epsilon=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    require_ndim("group_norm", x, least=2)
    shape, last = x.spec.shape, channels_at_end("group_norm", data_format)
    channels = shape[-1] if last else shape[1]
    if channels % num_groups:
        raise value_error(f"group_norm: {channels} channels do not fall into {num_groups} groups")
    split = (num_groups, channels // num_groups)
    if last:
        axes, how = (1, 3), {"view": (shape[0], -1, *split), "per": (1, 1, *split)}
    else:
        axes, how = (2, 3), {"view": (shape[0], *split, -1), "per": (1, *split, 1)}
    return standardize(x, weight, bias, axes, epsilon, **how)[0]


@as_operator("instance_norm", first=True)
def instance_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.9, eps=1e-05, data_format="NCHW", name=None,
):  # fmt: skip
    """Each channel of each sample less its mean, over its deviation; `weight` and `bias` are [C].

    As in Paddle the moments are always the input's: `running_mean`, `running_var`,
    `use_input_stats` and `momentum` change nothing. Source: Ulyanov et al., "Instance
    Normalization", 2016.

    >>> x = paddle.to_tensor([[[1.0, 3.0]]])
    >>> paddle.nn.functional.instance_norm(x, eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    require_ndim("instance_norm", x, least=2)
    if channels_at_end("instance_norm", data_format):
        raise value_error(f"instance_norm was given data_format={data_format!r}", "channels first")
    shape = x.spec.shape
    how = {"view": (*shape[:2], -1), "per": (1, shape[1], 1)}
    return standardize(x, weight, bias, (2,), eps, **how)[0]


# ---- over neighbours, and to length one ------------------------------------------------------


def local_response_norm(x, size, alpha=0.0001, beta=0.75, k=1.0, data_format="NCHW", name=None):
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta.

    Source: Krizhevsky et al., 2012.

    >>> x = paddle.ones([1, 3, 2])
    >>> paddle.nn.functional.local_response_norm(x, 3, alpha=3.0, beta=1.0).tolist()[0][1]
    [0.25, 0.25]
    """
    require_ndim("local_response_norm", x, least=3)
    shape = x.spec.shape
    if channels_at_end("local_response_norm", data_format):
        flat = complete_shape(shape, (1, 1, -1, shape[-1]))
        windows = ((1, 1, 0, flat[2]), (size, 1, size // 2, shape[-1]))
    else:
        flat = complete_shape(shape, (1, shape[0], shape[1], -1))
        windows = ((size, 1, size // 2, shape[1]), (1, 1, 0, flat[3]))
    squares = movement.reshape(x * x, shape=flat)
    near = avg_pool(squares, windows=windows, exclusive=False, divisor=size)
    return x / (movement.reshape(near, shape=shape) * alpha + k) ** beta


def normalize(x, p=2, axis=1, epsilon=1e-12, out=None, name=None):
    """x divided by its p-norm along `axis`, or by `epsilon` where that is larger.

    >>> paddle.nn.functional.normalize(paddle.to_tensor([[3.0, 4.0]])).tolist()
    [[0.6..., 0.8...]]
    """
    length = tensor_math.maximum(vector_norm(x, p, axis, keepdim=True), epsilon)
    y = x / length
    return y if out is None else out.become(y)


# ---- of weights ------------------------------------------------------------------------------


def as_matrix(weight, dim: int):
    """The weight with axis `dim` as rows and all others as columns."""
    order = (dim, *(d for d in range(weight.spec.ndim) if d != dim))
    rows = weight.spec.shape[dim]
    turned = movement.transpose(weight, perm=order)
    return movement.reshape(turned, shape=(rows, weight.spec.size // rows))


def power_iteration(matrix, u, v, steps: int, epsilon: float):
    """(u, v), nearer to the singular vectors of the largest singular value; without gradient."""
    with Recording(False):
        for _ in range(steps):
            v = normalize(u @ matrix, axis=0, epsilon=epsilon)
            u = normalize(matrix @ v, axis=0, epsilon=epsilon)
    return u, v


__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize",
    "rms_norm",
]  # fmt: skip
