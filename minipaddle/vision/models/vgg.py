"""VGG: nothing but convolutions of 3 x 3, one after the other, and three linear layers.

Source: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition"
(2014). Parts have Paddle's names.
"""

from ... import nn
from .pretrained import refuse_pretrained

__all__ = ["VGG", "vgg11", "vgg13", "vgg16", "vgg19"]

DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Convolutions before each pooling, by depth: table 1 of the paper."""
WIDTHS = 64, 128, 256, 512, 512


class VGG(nn.Layer):
    """Classes of images: [batch, 3, h, w] to [batch, num_classes]; made for 224 x 224.

    `features` is a layer that gives 512 maps. With `num_classes` 0 there are no linear layers,
    without `with_pool` the maps are not brought to 7 x 7.

    >>> net = paddle.vision.models.vgg11(num_classes=0, with_pool=False)
    >>> net(paddle.ones([1, 3, 32, 32])).shape
    [1, 512, 1, 1]
    """

    def __init__(self, features, num_classes=1000, with_pool=True):
        super().__init__()
        self.features = features
        self.num_classes, self.with_pool = num_classes, with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096),
                nn.ReLU(), nn.Dropout(), nn.Linear(4096, num_classes),
            )  # fmt: skip

    def forward(self, x):
        x = self.features(x)
        x = self.avgpool(x) if self.with_pool else x
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def convolutions(depth: int, batch_norm: bool) -> nn.Sequential:
    """The layers before the linear ones: [n, 3, h, w] to [n, 512, h / 32, w / 32]."""
    layers, channels = [], 3
    for width, count in zip(WIDTHS, DEPTHS[depth], strict=True):
        for _ in range(count):
            norm = [nn.BatchNorm2D(width)] if batch_norm else []
            layers += [nn.Conv2D(channels, width, 3, padding=1), *norm, nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2D(2, 2))
    return nn.Sequential(*layers)


def make_builder(depth: int):
    """The function that makes the VGG of a depth."""
    name = f"vgg{depth}"

    def build(pretrained=False, batch_norm=False, **kwargs):
        refuse_pretrained(name, pretrained)
        return VGG(convolutions(depth, batch_norm), **kwargs)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""`VGG` with {depth} layers that have weights.

    Source: Paddle API `paddle.vision.models.{name}`.

    >>> net = paddle.vision.models.{name}(batch_norm=True, num_classes=0)
    >>> sum(isinstance(layer, paddle.nn.Conv2D) for layer in net.sublayers())
    {depth - 3}
    """
    return build


vgg11, vgg13, vgg16, vgg19 = map(make_builder, DEPTHS)
