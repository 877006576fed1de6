"""Convolutions and transposed convolutions as layers."""

from math import prod, sqrt

from ...core.prelude import refuse_unsupported, require_one_of, type_error, value_error
from .. import functional as F
from ..functional.windows import channels_last, numbers
from ..initializer import Normal
from .functional import Dimensional

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class ConvND(Dimensional):
    """The base of convolution layers: their sizes, parameters and `repr`."""

    transposed = False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
        weight_attr, bias_attr, data_format, *, output_padding=0, padding_mode="zeros", dtype=None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        name, n = type(self).__name__, self.n
        for what, size in (("in_channels", in_channels), ("out_channels", out_channels)):
            if size < 1 or size % groups:
                raise value_error(
                    f"{name} was given {what}={size} and groups={groups}",
                    f"{what} to be a positive multiple of groups",
                )
        if weight_attr is False:
            raise value_error(
                f"{name} was given weight_attr=False", hint="only bias_attr can be False"
            )
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = list(numbers("kernel_size", kernel_size, n))
        self._stride = list(numbers("stride", stride, n))
        self._dilation = list(numbers("dilation", dilation, n))
        self._padding, self._padding_mode = padding, padding_mode
        self._data_format, self.output_padding = self.layout(data_format), output_padding
        self._param_attr, self._bias_attr = weight_attr, bias_attr
        channels_last(self._data_format, n)
        ends = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        fan_in = in_channels * prod(self._kernel_size)
        self.weight = self.create_parameter(
            [ends[0], ends[1] // groups, *self._kernel_size],
            weight_attr,
            dtype,
            default_initializer=None if self.transposed else Normal(0.0, sqrt(2 / fan_in)),
        )
        self.bias = self.create_parameter([out_channels], bias_attr, dtype, is_bias=True)

    def extra_repr(self) -> str:
        ones = [1] * self.n
        parts = {  # name: (value, the one that goes without saying)
            "kernel_size": (self._kernel_size, None),
            "stride": (self._stride, ones),
            "padding": (self._padding, 0),
            "padding_mode": (self._padding_mode, "zeros"),
            "output_padding": (self.output_padding, 0),
            "dilation": (self._dilation, ones),
            "groups": (self._groups, 1),
            "data_format": (self._data_format, None),
        }
        text = ", ".join(f"{k}={v}" for k, (v, usual) in parts.items() if v != usual)
        return f"{self._in_channels}, {self._out_channels}, {text}"


_ConvNd = ConvND  # the name that programs import


class ConvolutionLayer(ConvND):
    """Convolution of images [N, C, H, W] (or [N, H, W, C] with "NHWC").

    `weight` [out_channels, in_channels / groups, *kernel_size] is drawn from a normal distribution
    of variance 2 / (in_channels · elements of the kernel); `bias` [out_channels] is zero.
    `padding_mode` zeros, reflect, replicate or circular says what the padding holds. `padding`
    takes all forms of `F.conv2d`.

    >>> layer = paddle.nn.Conv2D(3, 8, [3, 3], stride=2, padding=1)
    >>> layer
    Conv2D(3, 8, kernel_size=[3, 3], stride=[2, 2], padding=1, data_format=NCHW)
    >>> layer(paddle.ones([1, 3, 6, 6])).shape
    [1, 8, 3, 3]
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, *,
        bias=True, padding_mode="zeros", device=None, dtype=None, weight_attr=None, bias_attr=None,
        data_format=None,
    ):  # fmt: skip
        name = type(self).__name__
        refuse_unsupported(name, device=device)
        require_one_of(name, PADDING_MODES, padding_mode=padding_mode)
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise type_error(
                f"padding={padding!r} with padding_mode={padding_mode!r}", "a whole number"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
            bias_attr if bias else False, data_format, padding_mode=padding_mode, dtype=dtype,
        )  # fmt: skip

    def forward(self, x):
        padding = self._padding
        if self._padding_mode != "zeros":
            pads = [padding] * (2 * self.n)
            x = F.pad(x, pads, mode=self._padding_mode, data_format=self._data_format)
            padding = 0
        return F.conv.convolve(
            self.n, x, self.weight, self.bias, self._stride, padding, self._dilation,
            self._groups, self._data_format,
        )  # fmt: skip


class Conv1D(ConvolutionLayer, n=1): ...


class Conv2D(ConvolutionLayer, n=2): ...


class Conv3D(ConvolutionLayer, n=3): ...


class Transposed(ConvND):
    """Transposed convolution of images [N, C, H, W]: it undoes the shape of a `Conv2D`.

    `weight` [in_channels, out_channels / groups, *kernel_size] is drawn by `XavierUniform`, `bias`
    is zero. A call may name the `output_size` it wants.

    >>> layer = paddle.nn.Conv2DTranspose(3, 8, [3, 3], stride=2)
    >>> layer
    Conv2DTranspose(3, 8, kernel_size=[3, 3], stride=[2, 2], data_format=NCHW)
    >>> x = paddle.ones([1, 3, 4, 4])
    >>> layer(x).shape, layer(x, output_size=[10, 10]).shape
    ([1, 8, 9, 9], [1, 8, 10, 10])
    """

    transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
        dilation=1, groups=1, weight_attr=None, bias_attr=None, data_format=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
            bias_attr, data_format, output_padding=output_padding,
        )  # fmt: skip

    def forward(self, x, output_size=None):
        return F.conv.convolve_transpose(
            self.n, x, self.weight, self.bias, self._stride, self._padding,
            self.output_padding if output_size is None else 0, self._dilation, self._groups,
            output_size, self._data_format,
        )  # fmt: skip


class Conv1DTranspose(Transposed, n=1):
    # As in Paddle, and unlike the others, groups are before the dilation.
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
        groups=1, dilation=1, weight_attr=None, bias_attr=None, data_format=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format,
        )  # fmt: skip


class Conv2DTranspose(Transposed, n=2): ...


class Conv3DTranspose(Transposed, n=3): ...


__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]
