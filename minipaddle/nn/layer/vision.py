"""Padding, resizing and rearranging of images as layers."""

from types import new_class

from .. import functional as F
from ..functional.windows import whole_numbers
from .functional import Dimensional, Functional

# ---- padding ---------------------------------------------------------------------------------


class Pad(Dimensional):
    """x [N, C, H, W] padded by one number, or by [left, right, ...], last axis first.

    `mode` is constant (of `value`), reflect, replicate or circular.

    >>> paddle.nn.Pad2D(1)(paddle.ones([1, 3, 4, 4])).shape
    [1, 3, 6, 6]
    """

    def __init__(self, padding, mode="constant", value=0.0, data_format=None, name=None):
        super().__init__()
        pads = whole_numbers(padding)
        self._pad = pads * (2 * self.n) if len(pads) == 1 else pads
        self._mode, self._value = mode, value
        self._data_format, self._name = self.layout(data_format), name

    def forward(self, x):
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)

    def extra_repr(self) -> str:
        name = f", name={self._name}" if self._name else ""
        return (
            f"padding={self._pad}, mode={self._mode}, value={self._value}, "
            f"data_format={self._data_format}{name}"
        )


class Pad1D(Pad, n=1): ...


class Pad2D(Pad, n=2): ...


class Pad3D(Pad, n=3): ...


class ConstantPad(Pad):
    """x [N, C, H, W] with `value` around it.

    >>> paddle.nn.ConstantPad2D(1, 7.0)(paddle.ones([1, 3, 4, 4])).shape
    [1, 3, 6, 6]
    """

    def __init__(self, padding, value, data_format=None, name=None):
        super().__init__(padding, "constant", value, data_format, name)


class ConstantPad1D(ConstantPad, n=1): ...


class ConstantPad2D(ConstantPad, n=2): ...


class ConstantPad3D(ConstantPad, n=3): ...


class PadBy(Pad):
    """`Pad` in one mode."""

    mode = "constant"

    def __init__(self, padding, data_format=None, name=None):
        super().__init__(padding, self.mode, data_format=data_format, name=name)


MODES = {
    "ZeroPad": "constant",
    "ReflectionPad": "reflect",
    "ReplicationPad": "replicate",
    "CircularPad": "circular",
}


def pad_by(name: str, mode: str, n: int) -> type:
    """The class of a mode for n image axes."""
    shape, result = [1, 3] + [4] * n, [1, 3] + [6] * n
    doc = f"""Images padded; `mode` is {mode}.

    >>> paddle.nn.{name}(1)(paddle.ones({shape})).shape
    {result}
    """
    body = {"mode": mode, "__module__": __name__, "__doc__": doc}
    return new_class(name, (PadBy,), {"n": n}, lambda space: space.update(body))


PADS = {
    f"{kind}{n}D": pad_by(f"{kind}{n}D", mode, n) for kind, mode in MODES.items() for n in (1, 2, 3)
}
globals().update(PADS)

# ---- resizing --------------------------------------------------------------------------------


class Resized(Functional):
    """The base of layers that resize; `repr` begins with the factor, or else with the size."""

    _shown = ("data_format", "name")

    def extra_repr(self) -> str:
        size = "size" if self.scale_factor is None else "scale_factor"
        return f"{size}={getattr(self, size)}, {super().extra_repr()}"


class Upsample(
    Resized,
    function=F.interpolate,
    fixed=(
        "size", "scale_factor", "mode", "align_corners", "align_mode", "data_format",
        "recompute_scale_factor", "name",
    ),
):  # fmt: skip
    _shown = ("mode", "align_corners", "align_mode", "data_format", "name")


def nearest(x, size=None, scale_factor=None, data_format="NCHW", name=None):
    return F.interpolate(x, size, scale_factor, "nearest", data_format=data_format)


def bilinear(x, size=None, scale_factor=None, data_format="NCHW", name=None):
    return F.interpolate(x, size, scale_factor, "bilinear", True, data_format=data_format)


class UpsamplingNearest2D(Resized, function=nearest):
    """Images resized by the nearest pixel.

    >>> paddle.nn.UpsamplingNearest2D(scale_factor=2)(paddle.ones([1, 1, 2, 2])).shape
    [1, 1, 4, 4]
    """


class UpsamplingBilinear2D(Resized, function=bilinear):
    """Images resized linearly, corners kept.

    >>> paddle.nn.UpsamplingBilinear2D(size=[3, 3])(paddle.ones([1, 1, 2, 2])).shape
    [1, 1, 3, 3]
    """


# ---- rearranging -----------------------------------------------------------------------------


class PixelShuffle(Functional, function=F.pixel_shuffle):
    quiet = ("data_format", "name")


class PixelUnshuffle(Functional, function=F.pixel_unshuffle):
    quiet = ("data_format", "name")


class ChannelShuffle(Functional, function=F.channel_shuffle):
    quiet = ("data_format", "name")


class WindowLayer(Functional):
    """Unfold and Fold; the functions have their arguments in another order."""

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, "
            f"padding={self.paddings}, stride={self.strides}"
        )


GIVEN = ("kernel_sizes", "dilations", "paddings", "strides", "name")


class Unfold(WindowLayer, function=F.unfold, fixed=GIVEN): ...


class Fold(WindowLayer, function=F.fold, fixed=("output_sizes", *GIVEN)): ...


__all__ = [
    *PADS, "ChannelShuffle", "ConstantPad1D", "ConstantPad2D", "ConstantPad3D", "Fold", "Pad1D",
    "Pad2D", "Pad3D", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample",
    "UpsamplingBilinear2D", "UpsamplingNearest2D",
]  # fmt: skip
