"""Batch-norm layers and the statistics they keep."""

from ...engine.core.errors import value_error
from ...engine.core.rank import among
from .. import functional as F
from ..initializer import Constant
from ..param_attr import ParamAttr
from .functional import Dimensional

__all__ = ["BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"]

FORMATS = {2: "NC", 3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""The channels-first format of x by its number of dimensions."""


def format_of(layer, x) -> str:
    """The layer's data format, adapted to the number of dimensions of x."""
    if x.spec.ndim not in layer.ranks:
        wanted = " or ".join(f"{n}-D" for n in layer.ranks)
        raise value_error(f"{type(layer).__name__} was given {x.spec}", wanted)
    first = FORMATS[x.spec.ndim]
    last = layer._data_format[-1] == "C" and layer._data_format != "NC"
    return f"N{first[2:]}C" if last and x.spec.ndim > 2 else first


def scale_of(layer, shape, attr, dtype=None):
    """A scale that starts at 1; None when `attr` is False."""
    return layer.create_parameter(shape, attr, dtype, default_initializer=Constant(1.0))


def statistic(layer, shape, value: float):
    """A running statistic: as in Paddle a parameter that is not trained."""
    return layer.create_parameter(shape, ParamAttr(initializer=Constant(value), trainable=False))


class BatchNormND(Dimensional):
    """Batch norm of images [N, C, H, W] (or [N, H, W, C] with "NHWC").

    `weight` [C] starts at 1, `bias` [C] at 0; `_mean` and `_variance` are the running statistics,
    moved in training by running = momentum · running + (1 - momentum) · batch and used in
    evaluation. `use_global_stats` decides that by itself when it is not None.
    Source: Ioffe and Szegedy, 2015.

    >>> layer = paddle.nn.BatchNorm2D(3, momentum=0.5)
    >>> layer(paddle.ones([2, 3, 4, 4])).shape, layer._mean.tolist()
    ([2, 3, 4, 4], [0.5, 0.5, 0.5])
    """

    ranks = (2, 3, 4, 5)
    """The numbers of dimensions that x may have."""
    _trainable_statistics = False
    _shown = ("_num_features", "_momentum", "_epsilon")

    def __init__(
        self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
        data_format=None, use_global_stats=None, name=None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats = self.layout(data_format), use_global_stats
        self._name, self._weight_attr, self._bias_attr = name, weight_attr, bias_attr
        F.norm.channels_at_end(type(self).__name__, self._data_format)
        self.weight = scale_of(self, [num_features], weight_attr)
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self._mean = statistic(self, [num_features], 0.0)
        self._variance = statistic(self, [num_features], 1.0)

    def forward(self, x):
        training = self.training or self._trainable_statistics
        return F.batch_norm(
            x, self._mean, self._variance, self.weight, self.bias, training, self._momentum,
            self._epsilon, format_of(self, x), self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        layout = "" if self._data_format == "NCHW" else f", data_format={self._data_format}"
        return super().extra_repr() + layout + (f", name={self._name}" if self._name else "")


class BatchNorm1D(BatchNormND, n=1):
    """Batch norm of x [N, C] or [N, C, L]. See `BatchNorm2D`.

    >>> paddle.nn.BatchNorm1D(3)(paddle.ones([2, 3])).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    ranks = (2, 3)


class BatchNorm2D(BatchNormND, n=2):
    ranks = (4,)


class BatchNorm3D(BatchNormND, n=3):
    ranks = (5,)


class BatchNorm(BatchNormND):
    """Batch norm in Paddle's older form: any number of image axes, and an activation after it.

    `is_test` starts it in evaluation; `act` names a function of `paddle.nn.functional`.

    >>> paddle.nn.BatchNorm(3, act="relu")(paddle.ones([2, 3, 4])).shape
    [2, 3, 4]
    """

    def __init__(
        self, num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None,
        bias_attr=None, dtype="float32", data_layout="NCHW", in_place=False,
        moving_mean_name=None, moving_variance_name=None, do_model_average_for_mean_and_var=True,
        use_global_stats=False, trainable_statistics=False,
    ):  # fmt: skip
        options = momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None
        super().__init__(num_channels, *options)
        if act is not None and not hasattr(F, act):
            raise value_error(f"BatchNorm was given act={act!r}", "a function of nn.functional")
        self._act, self._trainable_statistics = act, trainable_statistics
        self.training = not is_test
        self._mean.name = moving_mean_name or self._mean.name
        self._variance.name = moving_variance_name or self._variance.name
        self.to(dtype=dtype)

    def forward(self, input):
        y = super().forward(input)
        return y if self._act is None else getattr(F, self._act)(y)

    def extra_repr(self) -> str:
        return ""


class SyncBatchNorm(BatchNormND):
    """Batch norm with moments over the batches of all ranks; with one rank, the same as
    `BatchNorm`.

    The batches may have different sizes. A gradient flows through the moments to every rank. Where
    `weight_attr` or `bias_attr` is False the parameter exists all the same, and is not trained.

    >>> paddle.nn.SyncBatchNorm(3)(paddle.ones([2, 3, 4, 4])).shape
    [2, 3, 4, 4]
    """

    def __init__(
        self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
        data_format="NCHW", name=None,
    ):  # fmt: skip
        options = momentum, epsilon, weight_attr, bias_attr, data_format, None, name
        super().__init__(num_features, *options)
        if self.weight is None:
            self.weight = statistic(self, [num_features], 1.0)
        if self.bias is None:
            attr = ParamAttr(trainable=False)
            self.bias = self.create_parameter([num_features], attr, is_bias=True)

    def forward(self, x):
        if among.now[1] == 1 or not self.training:
            return super().forward(x)
        axis = x.spec.ndim - 1 if format_of(self, x)[-1] == "C" and x.spec.ndim > 2 else 1
        statistics = self._mean, self._variance, self.weight, self.bias
        return F.norm.normalize_over_ranks(x, *statistics, self._momentum, self._epsilon, axis)

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """`layer` with every batch norm in it replaced by a `SyncBatchNorm` of the same state."""
        for name, child in layer.named_children():
            setattr(layer, name, cls.convert_sync_batchnorm(child))
        if not isinstance(layer, BatchNormND) or isinstance(layer, cls):
            return layer
        if getattr(layer, "_act", None):
            raise value_error("convert_sync_batchnorm of a BatchNorm with an activation")
        options = layer._momentum, layer._epsilon
        new = cls(layer._mean.spec.shape[0], *options, data_format=layer._data_format)
        new.weight, new.bias, new.training = layer.weight, layer.bias, layer.training
        new._mean, new._variance = layer._mean, layer._variance
        return new
