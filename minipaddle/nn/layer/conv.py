"""Convolutions and transposed convolutions as layers."""

from __future__ import annotations

import inspect
from math import prod, sqrt

from ...core.errors import teach
from .. import functional as F
from ..functional.input import refuse_unsupported
from ..functional.windows import LAYOUTS, channels_last, numbers
from ..initializer import Normal
from .layers import Layer

__all__ = [
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose",
]  # fmt: skip

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class ConvND(Layer):
    """What all convolution layers share: their sizes, their parameters, their text."""

    n = 0  # image axes
    transposed = False

    def setup(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        groups,
        weight_attr,
        bias_attr,
        data_format,
        output_padding=0,
        padding_mode="zeros",
        dtype=None,
    ):
        for name, size in (("in_channels", in_channels), ("out_channels", out_channels)):
            if size < 1 or size % groups:
                raise ValueError(
                    teach(
                        f"{type(self).__name__} was given {name}={size} and groups={groups}",
                        expected=f"{name} to be a positive multiple of groups",
                    )
                )
        if weight_attr is False:
            raise ValueError(
                teach(
                    f"{type(self).__name__} was given weight_attr=False",
                    hint="only bias_attr can be False",
                )
            )
        channels_last(data_format, self.n)
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = list(numbers("kernel_size", kernel_size, self.n))
        self._stride = list(numbers("stride", stride, self.n))
        self._dilation = list(numbers("dilation", dilation, self.n))
        self._padding, self._padding_mode = padding, padding_mode
        self._data_format, self.output_padding = data_format, output_padding
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
        said = {"kernel_size": self._kernel_size}
        if self._stride != [1] * self.n:
            said["stride"] = self._stride
        if self._padding != 0:
            said["padding"] = self._padding
        if self._padding_mode != "zeros":
            said["padding_mode"] = self._padding_mode
        if self.output_padding != 0:
            said["output_padding"] = self.output_padding
        if self._dilation != [1] * self.n:
            said["dilation"] = self._dilation
        if self._groups != 1:
            said["groups"] = self._groups
        said["data_format"] = self._data_format
        text = ", ".join(f"{k}={v}" for k, v in said.items())
        return f"{self._in_channels}, {self._out_channels}, {text}"


class Convolution(ConvND):
    """Conv1D, Conv2D and Conv3D, for n = 1, 2, 3: they differ in the default of `data_format`."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = inspect.signature(Convolution)
        cls.__signature__ = own.replace(
            parameters=[
                p.replace(default=LAYOUTS[cls.n][0]) if p.name == "data_format" else p
                for p in own.parameters.values()
            ]
        )

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        *,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
        weight_attr=None,
        bias_attr=None,
        data_format=None,
    ):
        super().__init__(dtype=dtype)
        refuse_unsupported(type(self).__name__, device=device)
        if padding_mode not in PADDING_MODES:
            raise ValueError(
                teach(
                    f"{type(self).__name__} was given padding_mode={padding_mode!r}",
                    expected=", ".join(PADDING_MODES),
                )
            )
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise TypeError(
                teach(
                    f"padding={padding!r} with padding_mode={padding_mode!r}",
                    expected="a whole number",
                )
            )
        self.setup(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            weight_attr,
            bias_attr if bias else False,
            LAYOUTS[self.n][0] if data_format is None else data_format,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def forward(self, x):
        padding = self._padding
        if self._padding_mode != "zeros":
            pads = [padding] * (2 * self.n)
            x = F.pad(x, pads, mode=self._padding_mode, data_format=self._data_format)
            padding = 0
        return F.conv.convolve(
            self.n,
            x,
            self.weight,
            self.bias,
            self._stride,
            padding,
            self._dilation,
            self._groups,
            self._data_format,
        )


class Conv1D(Convolution):
    """Convolution of a sequence [N, C, L] (or [N, L, C] with "NLC"). Arguments as in `Conv2D`.

    Source: Paddle API `paddle.nn.Conv1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Conv1D(2, 4, 3)(paddle.ones([1, 2, 5])).shape
    [1, 4, 3]
    """

    n = 1


class Conv2D(Convolution):
    """Convolution of images [N, C, H, W] (or [N, H, W, C] with "NHWC").

    `weight` [out_channels, in_channels / groups, *kernel_size] is drawn from a normal distribution
    of variance 2 / (in_channels · kernel pixels); `bias` [out_channels] is zero. `padding_mode`
    zeros, reflect, replicate or circular says what the padding holds. `padding` takes all forms of
    `F.conv2d`. Source: Paddle API `paddle.nn.Conv2D`.

    >>> import minipaddle as paddle
    >>> layer = paddle.nn.Conv2D(3, 8, 3, stride=2, padding=1)
    >>> layer
    Conv2D(3, 8, kernel_size=[3, 3], stride=[2, 2], padding=1, data_format=NCHW)
    >>> layer(paddle.ones([1, 3, 6, 6])).shape
    [1, 8, 3, 3]
    """

    n = 2


class Conv3D(Convolution):
    """Convolution of volumes [N, C, D, H, W] (or [N, D, H, W, C] with "NDHWC").

    Arguments as in `Conv2D`. Source: Paddle API `paddle.nn.Conv3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Conv3D(2, 4, 3)(paddle.ones([1, 2, 5, 5, 5])).shape
    [1, 4, 3, 3, 3]
    """

    n = 3


class Transposed(ConvND):
    """Forward of the transposed layers; the order of their arguments differs as in Paddle."""

    transposed = True

    def forward(self, x, output_size=None):
        return F.conv.spread(
            self.n,
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            self.output_padding if output_size is None else 0,
            self._dilation,
            self._groups,
            output_size,
            self._data_format,
        )


class Conv1DTranspose(Transposed):
    """Transposed convolution of a sequence [N, C, L]. See `Conv2DTranspose`.

    Source: Paddle API `paddle.nn.Conv1DTranspose`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Conv1DTranspose(2, 4, 2, stride=2)(paddle.ones([1, 2, 5])).shape
    [1, 4, 10]
    """

    n = 1

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        dilation=1,
        weight_attr=None,
        bias_attr=None,
        data_format="NCL",
    ):
        super().__init__(dtype=None)
        self.setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            weight_attr, bias_attr, data_format, output_padding,
        )  # fmt: skip


class Conv2DTranspose(Transposed):
    """Transposed convolution of images [N, C, H, W]: it undoes the shape of a `Conv2D`.

    `weight` [in_channels, out_channels / groups, *kernel_size] is drawn by `XavierUniform`, `bias`
    is zero. A call may name the `output_size` it wants. Source: Paddle API
    `paddle.nn.Conv2DTranspose`.

    >>> import minipaddle as paddle
    >>> layer = paddle.nn.Conv2DTranspose(3, 8, 3, stride=2)
    >>> layer
    Conv2DTranspose(3, 8, kernel_size=[3, 3], stride=[2, 2], data_format=NCHW)
    >>> x = paddle.ones([1, 3, 4, 4])
    >>> layer(x).shape, layer(x, output_size=[10, 10]).shape
    ([1, 8, 9, 9], [1, 8, 10, 10])
    """

    n = 2

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        dilation=1,
        groups=1,
        weight_attr=None,
        bias_attr=None,
        data_format="NCHW",
    ):
        super().__init__(dtype=None)
        self.setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            weight_attr, bias_attr, data_format, output_padding,
        )  # fmt: skip


class Conv3DTranspose(Transposed):
    """Transposed convolution of volumes [N, C, D, H, W]. See `Conv2DTranspose`.

    Source: Paddle API `paddle.nn.Conv3DTranspose`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Conv3DTranspose(2, 4, 2, stride=2)(paddle.ones([1, 2, 2, 2, 2])).shape
    [1, 4, 4, 4, 4]
    """

    n = 3

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        dilation=1,
        groups=1,
        weight_attr=None,
        bias_attr=None,
        data_format="NCDHW",
    ):
        super().__init__(dtype=None)
        self.setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            weight_attr, bias_attr, data_format, output_padding,
        )  # fmt: skip
