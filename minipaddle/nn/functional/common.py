"""Linear maps, dropout, label smoothing, padding masks."""

import math

from ...core.checks import require_ndim, require_one_of
from ...core.prelude import current, dt, normalize_axes, slot, value_error
from ...ops import affine
from ...tensor import random


def linear(x, weight, bias=None, name=None):
    """x @ weight + bias: x of shape [..., in], weight [in, out], bias [out].

    A weight [in] gives one number for each row: a result of shape [...].

    >>> x, weight = paddle.ones([2, 3]), paddle.ones([3, 4])
    >>> paddle.nn.functional.linear(x, weight).shape
    [2, 4]
    """
    if len(weight.spec.shape) == 1:
        y = x @ weight
        return y if bias is None else y + bias
    if bias is None:
        return affine.linear(x, weight)
    return current.top.apply(affine.affine, (x, weight, bias), {})


def bilinear(x1, x2, weight, bias=None, name=None):
    """y[b, o] = Σ x1[b, i] · weight[o, i, j] · x2[b, j] + bias[0, o].

    >>> x, weight = paddle.ones([1, 2]), paddle.ones([3, 2, 2])
    >>> paddle.nn.functional.bilinear(x, x, weight).tolist()
    [[4.0, 4.0, 4.0]]
    """
    outputs, first, second = weight.spec.shape
    flat = weight.reshape([outputs * first, second])
    met = x2 @ flat.transpose([1, 0])  # [b, o * i]
    met = met.reshape([x2.spec.shape[0], outputs, first])
    y = (met * x1.unsqueeze(1)).sum(axis=2)
    return y if bias is None else y + bias


# ---- dropout ---------------------------------------------------------------------------------


def require_probability(name: str, p) -> None:
    if not 0 <= p <= 1:
        raise value_error(f"{name} was given p={p}", "a probability, 0 to 1")


def draw_mask(shape, p: float):
    """A boolean mask that is True with probability 1 - p."""
    return random.uniform(shape, dt.float32.numpy, 0.0, 1.0) >= p


def dropout(x, p=0.5, axis=None, training=True, inplace=False, mode="upscale_in_train", name=None):
    """Set elements to 0 with probability `p`; with `axis`, whole slices: one draw per index there.

    `upscale_in_train` divides what stays by 1 - p while training and leaves x alone otherwise;
    `downscale_in_infer` leaves what stays alone and multiplies by 1 - p in inference. Source:
    Srivastava et al. 2014.

    >>> paddle.nn.functional.dropout(paddle.ones([2]), p=1.0).tolist()
    [0.0, 0.0]
    """
    require_probability("dropout", p)
    require_one_of("dropout", ("upscale_in_train", "downscale_in_infer"), mode=mode)
    if not p or (not training and mode == "upscale_in_train"):
        return x
    if training:
        y = current.top.modes(
            lambda: drop(x, p, axis, mode),
            lambda: x if mode == "upscale_in_train" else x * (1.0 - p),
        )
    else:
        y = x * (1.0 - p)
    return x.become(y) if inplace else y


@slot("nn.drop")
def drop(x, p: float, axis, mode: str):
    """Dropout as training applies it."""
    if p == 1:
        return x * 0.0
    shape = x.spec.shape
    if axis is not None:
        drawn = normalize_axes(axis, len(shape))
        shape = tuple(n if d in drawn else 1 for d, n in enumerate(shape))
    mask = draw_mask(shape, p).astype(x.spec.dtype)
    return x * (mask * (1.0 / (1.0 - p)) if mode == "upscale_in_train" else mask)


def channel_axes(name: str, x, rank: int, data_format: str) -> list[int]:
    """The batch and the channel axis of an image-like tensor."""
    require_ndim(name, x, rank)
    return [0, rank - 1 if data_format.endswith("C") else 1]


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Set whole channels of [N, C, L] or [C, L] to 0.

    >>> paddle.nn.functional.dropout1d(paddle.ones([1, 2]), p=1.0).tolist()
    [[0.0, 0.0]]
    """
    require_ndim("dropout1d", input, 2, 3)
    return dropout(input, p, list(range(input.spec.ndim - 1)), training, inplace)


def dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None):
    """Set whole channels of images to 0.

    >>> y = paddle.nn.functional.dropout2d(paddle.ones([1, 8, 2, 2]))
    >>> (y.mean(axis=[2, 3]) == y.max(axis=[2, 3])).all().item()
    True
    """
    return dropout(x, p, channel_axes("dropout2d", x, 4, data_format), training)


def dropout3d(x, p=0.5, training=True, data_format="NCDHW", name=None):
    """Set whole channels of volumes to 0.

    >>> paddle.nn.functional.dropout3d(paddle.ones([1, 1, 1, 1, 2]), p=1.0).sum().item()
    0.0
    """
    return dropout(x, p, channel_axes("dropout3d", x, 5, data_format), training)


SELU_LIMIT = -1.7580993408473766
"""The limit of SELU at minus infinity, -scale · alpha: alpha dropout drops to this value."""


def alpha_dropout(x, p=0.5, training=True, name=None):
    """Drop elements to SELU's lower limit, then scale so that mean 0 and variance 1 stay.

    Source: Klambauer et al. 2017.

    >>> paddle.nn.functional.alpha_dropout(paddle.ones([2]), training=False).tolist()
    [1.0, 1.0]
    """
    return drop_to_limit("alpha_dropout", x, p, training, x.spec.shape)


def feature_alpha_dropout(x, p=0.5, training=True, name=None):
    """`alpha_dropout` of whole channels: one draw for each index of the first two axes.

    >>> paddle.nn.functional.feature_alpha_dropout(paddle.ones([1, 2, 3])).shape
    [1, 2, 3]
    """
    shape = x.spec.shape
    return drop_to_limit(
        "feature_alpha_dropout", x, p, training, shape[:2] + (1,) * (len(shape) - 2)
    )


def drop_to_limit(name: str, x, p: float, training: bool, shape):
    require_probability(name, p)
    if not training or not p:
        return x
    if p == 1:
        return x * 0.0
    a = 1 / math.sqrt((1 - p) * (1 + p * SELU_LIMIT**2))
    b = -a * p * SELU_LIMIT
    mask = draw_mask(shape, p).astype(x.spec.dtype)
    return x * (mask * a) + ((1.0 - mask) * (a * SELU_LIMIT) + b)


# ---- labels ----------------------------------------------------------------------------------


def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    """(1 - epsilon) · label + epsilon · prior; the prior is uniform over the last axis if absent.

    Source: Szegedy et al. 2016.

    >>> paddle.nn.functional.label_smooth(paddle.to_tensor([[0.0, 1.0]]), epsilon=0.2).tolist()
    [[0.10000000149011612, 0.9000000357627869]]
    """
    if not 0 <= epsilon <= 1:
        raise value_error(f"label_smooth was given epsilon={epsilon}", "0 to 1")
    prior = 1.0 / label.spec.shape[-1] if prior_dist is None else prior_dist
    return label * (1.0 - epsilon) + prior * epsilon


__all__ = [
    "alpha_dropout", "bilinear", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "label_smooth", "linear",
]  # fmt: skip
