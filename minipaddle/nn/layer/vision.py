"""Padding, resizing and rearranging of images as layers."""

from __future__ import annotations

from .. import functional as F
from ..functional.windows import whole_numbers
from .functional import Functional
from .layers import Layer

__all__ = [
    "ChannelShuffle",
    "Fold",
    "Pad1D",
    "Pad2D",
    "Pad3D",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2D",
    "UpsamplingNearest2D",
    "ZeroPad1D",
    "ZeroPad2D",
    "ZeroPad3D",
]

# ---- padding ---------------------------------------------------------------------------------


class PadND(Layer):
    """What the padding layers share: a list of numbers, a mode, a value."""

    n = 0  # image axes

    def setup(self, padding, mode, value, data_format, name):
        super().__init__()
        pads = whole_numbers(padding)
        self._pad = pads * (2 * self.n) if len(pads) == 1 else pads
        self._mode, self._value = mode, value
        self._data_format, self._name = data_format, name

    def forward(self, x):
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)

    def extra_repr(self) -> str:
        name = f", name={self._name}" if self._name else ""
        return (
            f"padding={self._pad}, mode={self._mode}, value={self._value}, "
            f"data_format={self._data_format}{name}"
        )


class Pad1D(PadND):
    """x [N, C, L] padded by one number, or by [left, right, ...], last axis first.

    `mode` is constant (of `value`), reflect, replicate or circular.
    Source: Paddle API `paddle.nn.Pad1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Pad1D(1)(paddle.ones([1, 1, 4])).shape
    [1, 1, 6]
    """

    n = 1

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCL", name=None):
        self.setup(padding, mode, value, data_format, name)


class Pad2D(PadND):
    """x [N, C, H, W] padded by one number, or by [left, right, ...], last axis first.

    `mode` is constant (of `value`), reflect, replicate or circular.
    Source: Paddle API `paddle.nn.Pad2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Pad2D(1)(paddle.ones([1, 1, 4, 4])).shape
    [1, 1, 6, 6]
    """

    n = 2

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCHW", name=None):
        self.setup(padding, mode, value, data_format, name)


class Pad3D(PadND):
    """x [N, C, D, H, W] padded by one number, or by [left, right, ...], last axis first.

    `mode` is constant (of `value`), reflect, replicate or circular.
    Source: Paddle API `paddle.nn.Pad3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Pad3D(1)(paddle.ones([1, 1, 4, 4, 4])).shape
    [1, 1, 6, 6, 6]
    """

    n = 3

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCDHW", name=None):
        self.setup(padding, mode, value, data_format, name)


class ZeroPad1D(PadND):
    """x [N, C, L] with zeros around it. Source: Paddle API `paddle.nn.ZeroPad1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ZeroPad1D(1)(paddle.ones([1, 1, 4])).shape
    [1, 1, 6]
    """

    n = 1

    def __init__(self, padding, data_format="NCL", name=None):
        self.setup(padding, "constant", 0.0, data_format, name)


class ZeroPad2D(PadND):
    """x [N, C, H, W] with zeros around it. Source: Paddle API `paddle.nn.ZeroPad2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ZeroPad2D(1)(paddle.ones([1, 1, 4, 4])).shape
    [1, 1, 6, 6]
    """

    n = 2

    def __init__(self, padding, data_format="NCHW", name=None):
        self.setup(padding, "constant", 0.0, data_format, name)


class ZeroPad3D(PadND):
    """x [N, C, D, H, W] with zeros around it. Source: Paddle API `paddle.nn.ZeroPad3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ZeroPad3D(1)(paddle.ones([1, 1, 4, 4, 4])).shape
    [1, 1, 6, 6, 6]
    """

    n = 3

    def __init__(self, padding, data_format="NCDHW", name=None):
        self.setup(padding, "constant", 0.0, data_format, name)


# ---- resizing --------------------------------------------------------------------------------


class Upsample(Functional, function=F.interpolate):
    """`F.interpolate` with its arguments fixed. Source: Paddle API `paddle.nn.Upsample`.

    >>> import minipaddle as paddle
    >>> layer = paddle.nn.Upsample(scale_factor=2, mode="bilinear")
    >>> layer(paddle.ones([1, 3, 4, 4])).shape
    [1, 3, 8, 8]
    """

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=False,
        align_mode=0,
        data_format=None,
        recompute_scale_factor=None,
        name=None,
    ):
        super().__init__(
            size, scale_factor, mode, align_corners, align_mode, data_format,
            recompute_scale_factor, name=name,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return ", ".join([sized(self), *(f"{k}={getattr(self, k)}" for k in SAID)])


SAID = ("mode", "align_corners", "align_mode", "data_format")


def sized(layer) -> str:
    """What decides the size: the factor, or the size."""
    if layer.scale_factor is not None:
        return f"scale_factor={layer.scale_factor}"
    return f"size={layer.size}"


class Upsampling2D(Layer):
    """What UpsamplingNearest2D and UpsamplingBilinear2D share."""

    how: dict = {}  # noqa: RUF012 - nobody writes it

    def __init__(self, size=None, scale_factor=None, data_format="NCHW", name=None):
        super().__init__()
        self.size, self.scale_factor = size, scale_factor
        self.data_format, self.name = data_format, name

    def forward(self, x):
        return F.interpolate(
            x, self.size, self.scale_factor, data_format=self.data_format, **self.how
        )

    def extra_repr(self) -> str:
        return f"{sized(self)}, data_format={self.data_format}"


class UpsamplingNearest2D(Upsampling2D):
    """Images resized by the nearest pixel. Source: Paddle API `paddle.nn.UpsamplingNearest2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.UpsamplingNearest2D(scale_factor=2)(paddle.ones([1, 1, 2, 2])).shape
    [1, 1, 4, 4]
    """

    how = {"mode": "nearest"}  # noqa: RUF012


class UpsamplingBilinear2D(Upsampling2D):
    """Images resized linearly, corners kept. Source: Paddle API `paddle.nn.UpsamplingBilinear2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.UpsamplingBilinear2D(size=[3, 3])(paddle.ones([1, 1, 2, 2])).shape
    [1, 1, 3, 3]
    """

    how = {"mode": "bilinear", "align_corners": True}  # noqa: RUF012


# ---- rearranging -----------------------------------------------------------------------------


class PixelShuffle(Functional, function=F.pixel_shuffle):
    """Channels spread over the image. Source: Paddle API `paddle.nn.PixelShuffle`.

    >>> import minipaddle as paddle
    >>> paddle.nn.PixelShuffle(2)(paddle.ones([1, 4, 2, 2])).shape
    [1, 1, 4, 4]
    """

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}" + formatted(self)


class PixelUnshuffle(Functional, function=F.pixel_unshuffle):
    """Blocks of the image into channels. Source: Paddle API `paddle.nn.PixelUnshuffle`.

    >>> import minipaddle as paddle
    >>> paddle.nn.PixelUnshuffle(2)(paddle.ones([1, 1, 4, 4])).shape
    [1, 4, 2, 2]
    """

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}" + formatted(self)


class ChannelShuffle(Functional, function=F.channel_shuffle):
    """Channels dealt out across groups. Source: Paddle API `paddle.nn.ChannelShuffle`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ChannelShuffle(2)(paddle.arange(4.0).reshape([1, 4, 1, 1])).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def extra_repr(self) -> str:
        return f"groups={self.groups}" + formatted(self)


def formatted(layer) -> str:
    """The data format, where it is not the usual one."""
    return "" if layer.data_format == "NCHW" else f", data_format={layer.data_format}"


class Windows(Layer):
    """What Unfold and Fold share; the order of their arguments is not that of the functions."""

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, "
            f"padding={self.paddings}, stride={self.strides}"
        )


class Unfold(Windows):
    """The windows of images as columns, as `F.unfold`. Source: Paddle API `paddle.nn.Unfold`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Unfold(2)(paddle.ones([1, 3, 4, 4])).shape
    [1, 12, 9]
    """

    def __init__(self, kernel_sizes, dilations=1, paddings=0, strides=1, name=None):
        super().__init__()
        self.kernel_sizes, self.dilations = kernel_sizes, dilations
        self.paddings, self.strides, self.name = paddings, strides, name

    def forward(self, input):
        return F.unfold(input, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class Fold(Windows):
    """Columns added up into images, as `F.fold`. Source: Paddle API `paddle.nn.Fold`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Fold([3, 3], 2)(paddle.ones([1, 4, 4])).shape
    [1, 1, 3, 3]
    """

    def __init__(self, output_sizes, kernel_sizes, dilations=1, paddings=0, strides=1, name=None):
        super().__init__()
        self.output_sizes, self.kernel_sizes, self.dilations = output_sizes, kernel_sizes, dilations
        self.paddings, self.strides, self.name = paddings, strides, name

    def forward(self, input):
        given = self.strides, self.paddings, self.dilations
        return F.fold(input, self.output_sizes, self.kernel_sizes, *given)
