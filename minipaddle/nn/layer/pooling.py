"""Pooling as layers: `nn.functional`'s functions with their arguments fixed."""

from __future__ import annotations

from .. import functional as F
from .functional import Functional

__all__ = [
    "AdaptiveAvgPool1D",
    "AdaptiveAvgPool2D",
    "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D",
    "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "LPPool1D",
    "LPPool2D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxUnPool1D",
    "MaxUnPool2D",
    "MaxUnPool3D",
]


class Pool(Functional):
    """A pooling layer; `shown` are the arguments its text names."""

    shown: tuple = ()

    def extra_repr(self) -> str:
        return ", ".join(f"{k}={getattr(self, k)}" for k in self.shown)


class Windowed(Pool):
    shown = ("kernel_size", "stride", "padding")


class LPWindowed(Pool):
    shown = ("norm_type", "kernel_size", "stride", "padding")


class AdaptiveAvg(Pool):
    shown = ("output_size",)


class AdaptiveMax(Pool):
    shown = ("output_size", "return_mask")


class Unpooling(Pool):
    shown = ("output_size",)


class MaxPool1D(Windowed, function=F.max_pool1d):
    """The largest value of each window of x [N, C, L].

    Arguments as in `F.max_pool1d`. Source: Paddle API `paddle.nn.MaxPool1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.MaxPool1D(2)(paddle.ones([1, 2, 6])).shape
    [1, 2, 3]
    """


class MaxPool2D(Windowed, function=F.max_pool2d):
    """The largest value of each window of x [N, C, H, W].

    Arguments as in `F.max_pool2d`. Source: Paddle API `paddle.nn.MaxPool2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.MaxPool2D(2)(paddle.ones([1, 2, 6, 6])).shape
    [1, 2, 3, 3]
    """


class MaxPool3D(Windowed, function=F.max_pool3d):
    """The largest value of each window of x [N, C, D, H, W].

    Arguments as in `F.max_pool3d`. Source: Paddle API `paddle.nn.MaxPool3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.MaxPool3D(2)(paddle.ones([1, 2, 6, 6, 6])).shape
    [1, 2, 3, 3, 3]
    """


class AvgPool1D(Windowed, function=F.avg_pool1d):
    """The mean of each window of x [N, C, L].

    Arguments as in `F.avg_pool1d`. Source: Paddle API `paddle.nn.AvgPool1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AvgPool1D(2)(paddle.ones([1, 2, 6])).shape
    [1, 2, 3]
    """


class AvgPool2D(Windowed, function=F.avg_pool2d):
    """The mean of each window of x [N, C, H, W].

    Arguments as in `F.avg_pool2d`. Source: Paddle API `paddle.nn.AvgPool2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AvgPool2D(2)(paddle.ones([1, 2, 6, 6])).shape
    [1, 2, 3, 3]
    """


class AvgPool3D(Windowed, function=F.avg_pool3d):
    """The mean of each window of x [N, C, D, H, W].

    Arguments as in `F.avg_pool3d`. Source: Paddle API `paddle.nn.AvgPool3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AvgPool3D(2)(paddle.ones([1, 2, 6, 6, 6])).shape
    [1, 2, 3, 3, 3]
    """


class LPPool1D(LPWindowed, function=F.lp_pool1d):
    """The p-norm of each window of x [N, C, L].

    Arguments as in `F.lp_pool1d`. Source: Paddle API `paddle.nn.LPPool1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.LPPool1D(2, 3)(paddle.ones([1, 2, 6])).shape
    [1, 2, 2]
    """


class LPPool2D(LPWindowed, function=F.lp_pool2d):
    """The p-norm of each window of x [N, C, H, W].

    Arguments as in `F.lp_pool2d`. Source: Paddle API `paddle.nn.LPPool2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.LPPool2D(2, 3)(paddle.ones([1, 2, 6, 6])).shape
    [1, 2, 2, 2]
    """


class AdaptiveAvgPool1D(AdaptiveAvg, function=F.adaptive_avg_pool1d):
    """x [N, C, L] averaged down to `output_size`.

    Arguments as in `F.adaptive_avg_pool1d`. Source: Paddle API `paddle.nn.AdaptiveAvgPool1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveAvgPool1D(4)(paddle.ones([1, 2, 6])).shape
    [1, 2, 4]
    """


class AdaptiveAvgPool2D(AdaptiveAvg, function=F.adaptive_avg_pool2d):
    """x [N, C, H, W] averaged down to `output_size`.

    Arguments as in `F.adaptive_avg_pool2d`. Source: Paddle API `paddle.nn.AdaptiveAvgPool2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveAvgPool2D(4)(paddle.ones([1, 2, 6, 6])).shape
    [1, 2, 4, 4]
    """


class AdaptiveAvgPool3D(AdaptiveAvg, function=F.adaptive_avg_pool3d):
    """x [N, C, D, H, W] averaged down to `output_size`.

    Arguments as in `F.adaptive_avg_pool3d`. Source: Paddle API `paddle.nn.AdaptiveAvgPool3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveAvgPool3D(4)(paddle.ones([1, 2, 6, 6, 6])).shape
    [1, 2, 4, 4, 4]
    """


class AdaptiveMaxPool1D(AdaptiveMax, function=F.adaptive_max_pool1d):
    """The maxima of windows that share x [N, C, L] evenly.

    Arguments as in `F.adaptive_max_pool1d`. Source: Paddle API `paddle.nn.AdaptiveMaxPool1D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveMaxPool1D(4)(paddle.ones([1, 2, 6])).shape
    [1, 2, 4]
    """


class AdaptiveMaxPool2D(AdaptiveMax, function=F.adaptive_max_pool2d):
    """The maxima of windows that share x [N, C, H, W] evenly.

    Arguments as in `F.adaptive_max_pool2d`. Source: Paddle API `paddle.nn.AdaptiveMaxPool2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveMaxPool2D(4)(paddle.ones([1, 2, 6, 6])).shape
    [1, 2, 4, 4]
    """


class AdaptiveMaxPool3D(AdaptiveMax, function=F.adaptive_max_pool3d):
    """The maxima of windows that share x [N, C, D, H, W] evenly.

    Arguments as in `F.adaptive_max_pool3d`. Source: Paddle API `paddle.nn.AdaptiveMaxPool3D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.AdaptiveMaxPool3D(4)(paddle.ones([1, 2, 6, 6, 6])).shape
    [1, 2, 4, 4, 4]
    """


class MaxUnPool1D(Unpooling, function=F.max_unpool1d, inputs=2):
    """Max-pooling undone: values of x [N, C, L] back at `indices`.

    Arguments as in `F.max_unpool1d`. Source: Paddle API `paddle.nn.MaxUnPool1D`.

    >>> import minipaddle as paddle
    >>> y, mask = paddle.nn.MaxPool1D(2, return_mask=True)(paddle.ones([1, 2, 6]))
    >>> paddle.nn.MaxUnPool1D(2)(y, mask).shape
    [1, 2, 6]
    """


class MaxUnPool2D(Unpooling, function=F.max_unpool2d, inputs=2):
    """Max-pooling undone: values of x [N, C, H, W] back at `indices`.

    Arguments as in `F.max_unpool2d`. Source: Paddle API `paddle.nn.MaxUnPool2D`.

    >>> import minipaddle as paddle
    >>> y, mask = paddle.nn.MaxPool2D(2, return_mask=True)(paddle.ones([1, 2, 6, 6]))
    >>> paddle.nn.MaxUnPool2D(2)(y, mask).shape
    [1, 2, 6, 6]
    """


class MaxUnPool3D(Unpooling, function=F.max_unpool3d, inputs=2):
    """Max-pooling undone: values of x [N, C, D, H, W] back at `indices`.

    Arguments as in `F.max_unpool3d`. Source: Paddle API `paddle.nn.MaxUnPool3D`.

    >>> import minipaddle as paddle
    >>> y, mask = paddle.nn.MaxPool3D(2, return_mask=True)(paddle.ones([1, 2, 6, 6, 6]))
    >>> paddle.nn.MaxUnPool3D(2)(y, mask).shape
    [1, 2, 6, 6, 6]
    """
