"""Normalisation over layers, groups, instances, neighbours; spectral norm."""

from math import prod

from ...core.prelude import refuse_unsupported, same_shape, value_error
from .. import functional as F
from ..initializer import Normal
from ..param_attr import ParamAttr
from .batch_norm import BatchNormND as _BatchNormBase  # noqa: F401  the name that programs import
from .batch_norm import format_of, scale_of
from .functional import Dimensional, Functional
from .layers import Layer

# ---- over layers, groups, instances ----------------------------------------------------------


class TrailingNorm(Layer):
    """The base of norms over the last axes, which have the sizes `normalized_shape`."""

    _shown = ("_normalized_shape", "_epsilon")

    def __init__(self, normalized_shape, epsilon, weight_attr, dtype=None):
        super().__init__(dtype=dtype)
        many = isinstance(normalized_shape, list | tuple)
        self._normalized_shape = list(normalized_shape) if many else [int(normalized_shape)]
        self._epsilon, self._weight_attr = epsilon, weight_attr
        self.weight = scale_of(self, [prod(self._normalized_shape)], weight_attr, dtype)


class LayerNorm(TrailingNorm):
    """Layer norm over the last axes, of the sizes `normalized_shape`.

    `weight` (ones) and `bias` (zeros) are vectors of as many elements, as Paddle keeps them.

    >>> layer = paddle.nn.LayerNorm(4)
    >>> layer
    LayerNorm(normalized_shape=[4], epsilon=1e-05)
    >>> layer(paddle.ones([2, 4])).tolist()[0]
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self, normalized_shape, epsilon=1e-05, *, elementwise_affine=True, bias=True, device=None,
        dtype=None, weight_attr=None, bias_attr=None, name=None,
    ):  # fmt: skip
        refuse_unsupported("LayerNorm", device=device)
        weight_attr = weight_attr if elementwise_affine else False
        bias_attr = bias_attr if elementwise_affine and bias else False
        super().__init__(normalized_shape, epsilon, weight_attr, dtype)
        size, self._bias_attr = [prod(self._normalized_shape)], bias_attr
        self.bias = self.create_parameter(size, bias_attr, dtype, is_bias=True)

    def forward(self, input):
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)


class RMSNorm(TrailingNorm):
    """x / √(mean of x² + ε) · weight over the last axes, `normalized_shape`; weight starts at 1.

    Real Paddle has only the function, `F.rms_norm`. Source: Zhang and Sennrich, "Root Mean Square
    Layer Normalization", 2019.

    >>> paddle.nn.RMSNorm(2, epsilon=0.0)(paddle.to_tensor([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, normalized_shape, epsilon=1e-05, weight_attr=None, name=None):
        super().__init__(normalized_shape, epsilon, weight_attr)

    def forward(self, input):
        return F.rms_norm(input, self._normalized_shape, self.weight, self._epsilon)[0]


class GroupNorm(Layer):
    """Group norm: each sample's channels in `num_groups` groups. `weight` and `bias` are [C].

    >>> layer = paddle.nn.GroupNorm(2, 4)
    >>> layer
    GroupNorm(num_groups=2, num_channels=4, epsilon=1e-05)
    >>> layer(paddle.ones([1, 4, 2, 2])).shape
    [1, 4, 2, 2]
    """

    _shown = ("_num_groups", "_num_channels", "_epsilon")

    def __init__(
        self, num_groups, num_channels, epsilon=1e-05, *, affine=True, device=None, dtype=None,
        weight_attr=None, bias_attr=None, data_format="NCHW", name=None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        refuse_unsupported("GroupNorm", device=device)
        F.norm.channels_at_end("GroupNorm", data_format)
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format, self._weight_attr, self._bias_attr = data_format, weight_attr, bias_attr
        self.weight = scale_of(self, [num_channels], weight_attr if affine else False, dtype)
        bias_attr = bias_attr if affine else False
        self.bias = self.create_parameter([num_channels], bias_attr, dtype, is_bias=True)

    def forward(self, input):
        options = self._epsilon, self.weight, self.bias, self._data_format
        return F.group_norm(input, self._num_groups, *options)


class InstanceNormND(Dimensional):
    """Instance norm of images [N, C, H, W]: each channel of each sample is normalized by its own
    moments.

    `scale` (ones) and `bias` (zeros) are [C].

    >>> layer = paddle.nn.InstanceNorm2D(3)
    >>> layer
    InstanceNorm2D(num_features=3, epsilon=1e-05)
    >>> layer(paddle.ones([2, 3, 4, 4])).shape
    [2, 3, 4, 4]
    """

    _shown = ("_num_features", "_epsilon")

    def __init__(
        self, num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None,
        data_format=None, name=None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        if (weight_attr is False) != (bias_attr is False):
            raise value_error(
                f"{type(self).__name__} was given weight_attr={weight_attr!r} and "
                f"bias_attr={bias_attr!r}",
                "both False, or neither",
            )
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._data_format = self.layout(data_format)
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.scale = scale_of(self, [num_features], weight_attr)
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input):
        format_of(self, input)
        options = {"eps": self._epsilon, "data_format": self._data_format}
        return F.instance_norm(input, weight=self.scale, bias=self.bias, **options)


class InstanceNorm1D(InstanceNormND, n=1):
    """Instance norm of x [N, C, L] (or [N, C]). See `InstanceNorm2D`.

    >>> paddle.nn.InstanceNorm1D(3)(paddle.ones([2, 3, 4])).shape
    [2, 3, 4]
    """

    ranks = (2, 3)


class InstanceNorm2D(InstanceNormND, n=2):
    ranks = (4,)


class InstanceNorm3D(InstanceNormND, n=3):
    ranks = (5,)


# ---- others ----------------------------------------------------------------------------------


class LocalResponseNorm(Functional, function=F.local_response_norm):
    quiet = ("data_format", "name")


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, found by `power_iters` power iterations.

    The weight is read as a matrix, its axis `dim` against all others. `weight_u` and `weight_v` are
    where the iteration starts. Source: Miyato et al., "Spectral Normalization for Generative
    Adversarial Networks", 2018.

    >>> norm = paddle.nn.SpectralNorm([2, 2], power_iters=20)
    >>> [[round(v, 4) for v in row] for row in norm(paddle.eye(2) * 3.0).tolist()]
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, weight_shape, dim=0, power_iters=1, eps=1e-12, dtype="float32"):
        super().__init__(dtype=dtype)
        if not weight_shape or min(weight_shape) < 1 or not 0 <= dim < len(weight_shape):
            raise value_error(
                f"SpectralNorm was given weight_shape={list(weight_shape)} and dim={dim}",
                "positive sizes, and one of their axes",
            )
        self._weight_shape, self._dim = list(weight_shape), dim
        self._power_iters, self._eps = power_iters, eps
        rows = weight_shape[dim]
        columns = prod(weight_shape) // rows
        start = ParamAttr(initializer=Normal(0.0, 1.0), trainable=False)
        self.weight_u = self.create_parameter([rows], start, dtype)
        self.weight_v = self.create_parameter([columns], start, dtype)

    def forward(self, x):
        if not same_shape(x.spec.shape, self._weight_shape):
            raise value_error(f"SpectralNorm was given {x.spec}", f"shape {self._weight_shape}")
        matrix, start = F.norm.as_matrix(x, self._dim), (self.weight_u, self.weight_v)
        u, v = F.norm.power_iteration(matrix, *start, self._power_iters, self._eps)
        return x / (u @ (matrix @ v))


__all__ = [
    "GroupNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D", "LayerNorm",
    "LocalResponseNorm", "RMSNorm", "SpectralNorm",
]  # fmt: skip
