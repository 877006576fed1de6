"""MobileNetV2: wide inside a block and narrow between blocks, with convolutions channel by channel.

Source: Sandler, Howard, Zhu, Zhmoginov, Chen, "MobileNetV2: inverted residuals and linear
bottlenecks" (2018). Parts have Paddle's names.
"""

from functools import partial

from ... import nn
from ..ops import ConvNormActivation
from .pretrained import refuse_pretrained

__all__ = ["MobileNetV2", "mobilenet_v2"]

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks, first stride: table 2 of the paper."""


def multiple_of_8(channels: float) -> int:
    """The multiple of 8 nearest to `channels`, but at least 8 and no more than a tenth below."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


block = partial(ConvNormActivation, activation_layer=nn.ReLU6)


class InvertedResidual(nn.Layer):
    """Widen with a 1x1 convolution, filter each channel by itself, narrow without activation.

    The input is added where the shapes agree.
    """

    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        wide = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        widen = [block(inputs, wide, 1)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *widen,
            block(wide, wide, 3, stride, groups=wide),
            nn.Conv2D(wide, outputs, 1, bias_attr=False),
            nn.BatchNorm2D(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNetV2(nn.Layer):
    """Classes of images: [batch, 3, h, w] to [batch, num_classes]; made for 224 x 224.

    `scale` multiplies the channels. With `num_classes` 0 pooled features come out, without
    `with_pool` the last maps.

    >>> net = paddle.vision.models.MobileNetV2(scale=0.25, num_classes=10)
    >>> net(paddle.ones([1, 3, 32, 32])).shape
    [1, 10]
    """

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        channels = multiple_of_8(32 * scale)
        parts = [block(3, channels, stride=2)]
        for expansion, width, count, first_stride in STAGES:
            outputs = multiple_of_8(width * scale)
            for k in range(count):
                stride = 1 if k else first_stride
                parts.append(InvertedResidual(channels, outputs, stride, expansion))
                channels = outputs
        last = multiple_of_8(1280 * max(1.0, scale))
        self.features = nn.Sequential(*parts, block(channels, last, 1))
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, num_classes))

    def forward(self, x):
        x = self.features(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained=False, scale=1.0, **kwargs):
    """`MobileNetV2`.

    >>> sum(p.size for p in paddle.vision.models.mobilenet_v2().parameters() if p.trainable)
    3504872
    """
    refuse_pretrained("mobilenet_v2", pretrained)
    return MobileNetV2(scale=scale, **kwargs)
