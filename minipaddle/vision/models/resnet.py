"""Residual networks: each block learns what to add to its input, so depth does no harm.

Source: He, Zhang, Ren, Sun, "Deep residual learning for image recognition" (2015), and
"Wide residual networks", Zagoruyko and Komodakis (2016), for `width`; Xie et al., "Aggregated
residual transformations" (2017), for `groups`. Parts have Paddle's names.
"""

from ... import nn
from ...engine.core.errors import value_error
from .pretrained import refuse_pretrained


def conv(inputs, outputs, size, stride=1, groups=1, dilation=1):
    """A convolution that keeps height and width at stride 1; the norm after it brings the bias."""
    padding = dilation * (size // 2)
    return nn.Conv2D(
        inputs, outputs, size, stride, padding, dilation=dilation, groups=groups, bias_attr=False
    )


class BasicBlock(nn.Layer):
    """relu(x + bn(conv3(relu(bn(conv3(x)))))): [n, inplanes, h, w] to [n, planes, h/s, w/s].

    `downsample` brings x to the shape of the sum when stride or channels change it.
    """

    expansion = 1

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
        norm_layer=None,
    ):  # fmt: skip
        super().__init__()
        if (groups, base_width, dilation) != (1, 64, 1):
            raise value_error(
                f"BasicBlock with groups={groups}, base_width={base_width}, dilation={dilation}",
                "groups=1, base_width=64, dilation=1",
                hint="BottleneckBlock takes all three",
            )
        norm = norm_layer or nn.BatchNorm2D
        self.conv1 = conv(inplanes, planes, 3, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU()
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = norm(planes)
        self.downsample = downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + shortcut)


class BottleneckBlock(nn.Layer):
    """A 1x1 convolution to few channels, a 3x3 one there, a 1x1 one to 4 * planes; plus x.

    The 3x3 convolution has planes * base_width / 64 * groups channels and carries the stride.
    """

    expansion = 4

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
        norm_layer=None,
    ):  # fmt: skip
        super().__init__()
        norm = norm_layer or nn.BatchNorm2D
        width, outputs = int(planes * base_width / 64) * groups, planes * self.expansion
        self.conv1 = conv(inplanes, width, 1)
        self.bn1 = norm(width)
        self.conv2 = conv(width, width, 3, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = conv(width, outputs, 1)
        self.bn3 = norm(outputs)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + shortcut)


def stage(block, inplanes, planes, count, stride, **options):
    """`count` blocks in a row; the first one changes resolution and channels."""
    outputs, downsample = planes * block.expansion, None
    if stride != 1 or inplanes != outputs:
        downsample = nn.Sequential(conv(inplanes, outputs, 1, stride), nn.BatchNorm2D(outputs))
    first = block(inplanes, planes, stride, downsample, **options)
    return nn.Sequential(first, *(block(outputs, planes, **options) for _ in range(1, count)))


BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Blocks of each stage, by depth: table 1 of the paper."""


class ResNet(nn.Layer):
    """Classes of images: [batch, 3, h, w] to [batch, num_classes]; made for 224 x 224.

    `block` is BasicBlock (depth 18, 34) or BottleneckBlock (50, 101, 152), whose inner 3x3
    convolution has `width` / 64 times the usual channels in `groups` groups. With `num_classes` 0
    pooled features come out, without `with_pool` the maps of the last stage.

    >>> from minipaddle.vision.models.resnet import BasicBlock, ResNet
    >>> net = ResNet(BasicBlock, 18, num_classes=0, with_pool=False)
    >>> net(paddle.ones([1, 3, 64, 64])).shape
    [1, 512, 2, 2]
    """

    def __init__(self, block, depth=50, width=64, num_classes=1000, with_pool=True, groups=1):
        super().__init__()
        if depth not in BLOCKS:
            raise value_error(f"ResNet of depth {depth}", f"one of {', '.join(map(str, BLOCKS))}")
        self.num_classes, self.with_pool = num_classes, with_pool
        options = {"groups": groups, "base_width": width}
        counts, deep = BLOCKS[depth], block.expansion
        self.conv1 = conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2D(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(3, 2, 1)
        self.layer1 = stage(block, 64, 64, counts[0], 1, **options)
        self.layer2 = stage(block, 64 * deep, 128, counts[1], 2, **options)
        self.layer3 = stage(block, 128 * deep, 256, counts[2], 2, **options)
        self.layer4 = stage(block, 256 * deep, 512, counts[3], 2, **options)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * deep, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x) if self.with_pool else x
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


class SmallResNet(nn.Layer):
    """The paper's networks for 32 x 32 images (section 4.2): [batch, inputs, h, w] to classes.

    Three stages of `blocks` BasicBlocks with `width`, 2 * `width` and 4 * `width` channels; the
    depth is 6 * blocks + 2.

    >>> net = paddle.vision.models.SmallResNet(blocks=1, width=4)
    >>> net(paddle.ones([2, 3, 32, 32])).shape
    [2, 10]
    """

    def __init__(self, blocks=2, width=16, num_classes=10, inputs=3):
        super().__init__()
        self.conv1 = conv(inputs, width, 3)
        self.bn1 = nn.BatchNorm2D(width)
        self.relu = nn.ReLU()
        self.layer1 = stage(BasicBlock, width, width, blocks, 1)
        self.layer2 = stage(BasicBlock, width, 2 * width, blocks, 2)
        self.layer3 = stage(BasicBlock, 2 * width, 4 * width, blocks, 2)
        self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.avgpool(x).flatten(1))


def resnet_small(**kwargs):
    """The 14-layer `SmallResNet` for 32 x 32 images: 16, 32, 64 channels, two blocks each.

    >>> sum(p.size for p in paddle.vision.models.resnet_small().parameters() if p.trainable)
    175258
    """
    return SmallResNet(**kwargs)


def resnet18(pretrained=False, **kwargs):
    """`ResNet` of depth 18.

    >>> paddle.vision.models.resnet18(num_classes=10)(paddle.ones([1, 3, 32, 32])).shape
    [1, 10]
    """
    refuse_pretrained("resnet18", pretrained)
    return ResNet(BasicBlock, 18, **kwargs)


def variant(name: str, depth: int, **fixed):
    """The function that makes a `ResNet` of this depth, with some arguments fixed."""
    block = BasicBlock if depth < 50 else BottleneckBlock

    def build(pretrained=False, **kwargs):
        refuse_pretrained(name, pretrained)
        return ResNet(block, depth, **fixed | kwargs)

    build.__name__ = build.__qualname__ = name
    described = "".join(f", {key} {value}" for key, value in fixed.items())
    build.__doc__ = (
        f"`ResNet` of depth {depth}{described}. Source: Paddle API `paddle.vision.models.{name}`."
    )
    return build


FIXED = (
    {f"resnet{depth}": {"depth": depth} for depth in (34, 50, 101, 152)}
    | {
        f"resnext{depth}_{groups}x4d": {"depth": depth, "groups": groups, "width": 4}
        for depth in (50, 101, 152)
        for groups in (32, 64)
    }
    | {f"wide_resnet{depth}_2": {"depth": depth, "width": 128} for depth in (50, 101)}
)
VARIANTS = {name: variant(name, **fixed) for name, fixed in FIXED.items()}
globals().update(VARIANTS)
__all__ = ["ResNet", "SmallResNet", "resnet18", "resnet_small", *VARIANTS]
