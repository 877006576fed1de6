"""Pooling as layers: `nn.functional`'s functions with their arguments fixed."""

from .. import functional as F
from .functional import Functional


class Pool(Functional):
    """The base of all pooling layers."""


class Windowed(Pool):
    _shown = ("kernel_size", "stride", "padding")


class LPWindowed(Pool):
    _shown = ("norm_type", "kernel_size", "stride", "padding")


class AdaptiveAvg(Pool):
    _shown = ("output_size",)


class AdaptiveMax(Pool):
    _shown = ("output_size", "return_mask")


class Unpooling(Pool):
    _shown = ("output_size",)


class MaxPool1D(Windowed, function=F.max_pool1d): ...


class MaxPool2D(Windowed, function=F.max_pool2d): ...


class MaxPool3D(Windowed, function=F.max_pool3d): ...


class AvgPool1D(Windowed, function=F.avg_pool1d): ...


class AvgPool2D(Windowed, function=F.avg_pool2d): ...


class AvgPool3D(Windowed, function=F.avg_pool3d): ...


class LPPool1D(LPWindowed, function=F.lp_pool1d): ...


class LPPool2D(LPWindowed, function=F.lp_pool2d): ...


class AdaptiveAvgPool1D(AdaptiveAvg, function=F.adaptive_avg_pool1d): ...


class AdaptiveAvgPool2D(AdaptiveAvg, function=F.adaptive_avg_pool2d): ...


class AdaptiveAvgPool3D(AdaptiveAvg, function=F.adaptive_avg_pool3d): ...


class AdaptiveMaxPool1D(AdaptiveMax, function=F.adaptive_max_pool1d): ...


class AdaptiveMaxPool2D(AdaptiveMax, function=F.adaptive_max_pool2d): ...


class AdaptiveMaxPool3D(AdaptiveMax, function=F.adaptive_max_pool3d): ...


class MaxUnPool1D(Unpooling, function=F.max_unpool1d, inputs=2): ...


class MaxUnPool2D(Unpooling, function=F.max_unpool2d, inputs=2): ...


class MaxUnPool3D(Unpooling, function=F.max_unpool3d, inputs=2): ...


__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D",
    "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "LPPool1D",
    "LPPool2D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D",
]  # fmt: skip
