"""Networks that look at images."""

import itertools
import math
from collections import OrderedDict
from typing import NamedTuple

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.jit.models import I, N, model


@model((N(4, 6),), (N(2, 6),))
class Mlp(nn.Layer):
    """Layers in a list, the activation by name."""

    def __init__(self, sizes=(6, 8, 8, 3), activation="relu"):
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = nn.LayerList([nn.Linear(a, b) for a, b in pairs])
        self.activation = getattr(F, activation)

    def forward(self, x):
        last = len(self.layers) - 1
        for k, layer in enumerate(self.layers):
            x = layer(x)
            if k != last:
                x = self.activation(x)
        return x


@model((N(2, 1, 12, 12),), (N(3, 1, 12, 12),))
class LeNet(nn.Layer):
    def __init__(self, num_classes=5):
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(
            nn.Conv2D(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(4, 6, 3), nn.ReLU(), nn.MaxPool2D(2, 2),
        )  # fmt: skip
        if num_classes > 0:
            self.fc = nn.Sequential(nn.Linear(24, 12), nn.Linear(12, num_classes))

    def forward(self, x):
        x = self.features(x)
        if self.num_classes > 0:
            x = paddle.flatten(x, 1)
            x = self.fc(x)
        return x


class BasicBlock(nn.Layer):
    def __init__(self, inside, outside, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2D(inside, outside, 3, stride=stride, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(outside)
        self.conv2 = nn.Conv2D(outside, outside, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(outside)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


@model((N(2, 3, 8, 8),), (N(2, 3, 10, 10),))
class ResNet(nn.Layer):
    """Residual blocks made by a method, with and without a downsampling branch."""

    def __init__(self, depth=(1, 1), width=4):
        super().__init__()
        self.width = width
        self.stem = nn.Conv2D(3, width, 3, padding=1, bias_attr=False)
        self.stages = nn.Sequential(
            *[self._make_layer(width * 2**k, n, 1 + (k > 0)) for k, n in enumerate(depth)]
        )
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.fc = nn.Linear(self.width, 3)

    def _make_layer(self, planes, blocks, stride):
        downsample = None
        if stride != 1 or self.width != planes:
            downsample = nn.Sequential(
                nn.Conv2D(self.width, planes, 1, stride=stride), nn.BatchNorm2D(planes)
            )
        layers = [BasicBlock(self.width, planes, stride, downsample)]
        self.width = planes
        layers += [BasicBlock(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.pool(self.stages(self.stem(x)))
        return self.fc(x.flatten(1))


class InvertedResidual(nn.Layer):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        hidden = round(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        layers = []
        if expand_ratio != 1:
            layers += [nn.Conv2D(inp, hidden, 1), nn.BatchNorm2D(hidden), nn.ReLU6()]
        layers += [
            nn.Conv2D(hidden, hidden, 3, stride, 1, groups=hidden), nn.BatchNorm2D(hidden),
            nn.ReLU6(), nn.Conv2D(hidden, oup, 1), nn.BatchNorm2D(oup),
        ]  # fmt: skip
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


@model((N(2, 3, 8, 8),), (N(1, 3, 8, 8),))
class MobileNet(nn.Layer):
    """Depthwise convolutions, dropout before the end."""

    def __init__(self):
        super().__init__()
        settings = [[1, 4, 1, 1], [2, 6, 2, 2]]
        self.first = nn.Conv2D(3, 4, 3, 1, 1)
        blocks, width = OrderedDict(), 4
        for t, c, n, s in settings:
            for k in range(n):
                blocks[f"block{c}_{k}"] = InvertedResidual(width, c, s if k == 0 else 1, t)
                width = c
        self.blocks = nn.LayerDict(blocks)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 3))

    def forward(self, x):
        x = self.first(x)
        for _, block in self.blocks.items():
            x = block(x)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.head(x)


def double_conv(a, b):
    return nn.Sequential(nn.Conv2D(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU())


@model((N(1, 2, 8, 8),), (N(1, 2, 9, 10),))
class UNet(nn.Layer):
    """Skips on a list, popped on the way up; padding by sizes."""

    def __init__(self, widths=(2, 4, 6)):
        super().__init__()
        self.down = nn.LayerList([double_conv(a, b) for a, b in itertools.pairwise(widths)])
        self.middle = double_conv(6, 6)
        self.up = nn.LayerList([double_conv(12, 4), double_conv(8, 4)])
        self.out = nn.Conv2D(4, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            skip = skips.pop()
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            if dy > 0 or dx > 0:
                x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = block(paddle.concat([skip, x], axis=1))
        assert not skips
        return F.sigmoid(self.out(x))


@model((N(2, 3, 7, 7),), (N(1, 3, 9, 9),))
class Inception(nn.Layer):
    """Branches in a dict of lists; an auxiliary output while it trains."""

    def __init__(self):
        super().__init__()
        self.branches = nn.LayerDict(
            {
                "one": nn.Conv2D(3, 2, 1),
                "three": nn.Sequential(nn.Conv2D(3, 2, 1), nn.Conv2D(2, 2, 3, padding=1)),
                "pool": nn.Sequential(nn.AvgPool2D(3, 1, 1), nn.Conv2D(3, 2, 1)),
            }
        )
        self.fc, self.aux = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        parts = {name: branch(x) for name, branch in self.branches.items()}
        y = paddle.concat([parts[name] for name in sorted(parts)], axis=1)
        y = y.mean([2, 3])
        if self.training:
            return self.fc(y), self.aux(F.dropout(y, 0.5, training=self.training))
        return self.fc(y)


@model((N(2, 4, 6, 6),), (N(1, 4, 5, 5),))
class DenseNet(nn.Layer):
    """Every layer sees all before it."""

    def __init__(self, growth=2, count=3):
        super().__init__()
        for k in range(count):
            setattr(self, f"layer{k}", nn.Conv2D(4 + k * growth, growth, 3, padding=1))
        self.count = count

    def forward(self, x):
        features = [x]
        for k in range(self.count):
            layer = getattr(self, f"layer{k}")
            features.append(F.relu(layer(paddle.concat(features, 1))))
        return paddle.concat(features, 1).mean(axis=[-1, -2])


@model((N(2, 3, 8, 8),), (N(1, 3, 8, 8),), dtype="float64")
class ViT(nn.Layer):
    """Patches, a class token, places, an encoder."""

    def __init__(self, dim=8, patch=4, image=8):
        super().__init__()
        count = (image // patch) ** 2
        self.patch = nn.Conv2D(3, dim, patch, patch)
        self.token = self.create_parameter([1, 1, dim])
        self.place = self.create_parameter([1, count + 1, dim])
        layer = nn.TransformerEncoderLayer(dim, 2, 16, dropout=0.1, normalize_before=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose([0, 2, 1])
        token = self.token.expand([x.shape[0], -1, -1])
        x = paddle.concat([token, x], axis=1) + self.place
        return self.head(self.encoder(x)[:, 0])


@model((N(2, 4, 5, 5),), (N(1, 4, 6, 6),))
class SqueezeExcite(nn.Layer):
    """Channels weigh themselves; channels are shuffled by sizes read off."""

    def __init__(self, channels=4):
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2D(1), nn.Conv2D(channels, 2, 1), nn.ReLU(),
            nn.Conv2D(2, channels, 1), nn.Hardsigmoid(),
        )  # fmt: skip

    @staticmethod
    def shuffle(x, groups):
        n, c, h, w = x.shape
        x = x.reshape([n, groups, c // groups, h, w])
        return x.transpose([0, 2, 1, 3, 4]).reshape([n, c, h, w])

    def forward(self, x):
        return self.shuffle(x * self.gate(x), groups=2)


@model((N(2, 1, 6, 6),), (N(3, 1, 6, 6),))
class SpatialTransformer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 6))
        self.conv = nn.Conv2D(1, 2, 3)

    def forward(self, x):
        theta = self.locate(x).reshape([-1, 2, 3]) * 0.1
        theta = theta + paddle.to_tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        grid = F.affine_grid(theta, x.shape)
        return self.conv(F.grid_sample(x, grid)).mean([2, 3])


@model((N(3, 5), N(3, 5), I(2, 3)), (N(2, 5), N(2, 5), I(2, 2)))
class Siamese(nn.Layer):
    """One encoder on two inputs; results in a dict; the margin grows on a hard batch."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(5, 4), nn.Tanh())

    def forward(self, a, b, same):
        u, v = (self.encode(x) for x in (a, b))
        distance = (u - v).norm(axis=1)
        margin = 1.0
        if distance.mean() < 0.5:
            margin = 2.0
        loss = paddle.where(same.astype("bool"), distance**2, F.relu(margin - distance) ** 2)
        return {"loss": loss.mean(), "distance": distance, "codes": [u, v]}


class Detected(NamedTuple):
    boxes: object
    scores: object
    count: object


@model((N(5, 4), N(5)), (N(7, 4), N(7)), learns=False)
class DetectionHead(nn.Layer):
    """Boxes kept by a mask; what is left depends on the data."""

    def __init__(self, keep=0.5):
        super().__init__()
        self.delta, self.keep = nn.Linear(4, 4), keep

    def forward(self, boxes, logits):
        scores = F.sigmoid(logits)
        boxes = boxes + 0.1 * self.delta(boxes)
        mask = scores > self.keep
        boxes = boxes * mask.astype("float32").unsqueeze(-1)
        scores = paddle.where(mask, scores, paddle.zeros_like(scores))
        count = mask.astype("int64").sum()
        if count == 0:
            boxes = boxes + 1.0
        elif count > 3:
            scores, order = paddle.topk(scores, scores.shape[0])
            boxes = boxes[order]
        return Detected(boxes, scores, count)


def overlap(a, b):
    low, high = paddle.maximum(a[:2], b[:2]), paddle.minimum(a[2:], b[2:])
    both = F.relu(high - low).prod()
    areas = [(x[2:] - x[:2]).abs().prod() for x in (a, b)]
    return both / (areas[0] + areas[1] - both + 1e-6)


@model((N(6, 4), N(6)), (N(4, 4), N(4)), learns=False)
def non_maximum_suppression(boxes, scores, threshold=0.3):
    """The best box stays, what overlaps it goes; two loops, `continue` on data."""
    boxes = paddle.concat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 0.5], axis=1)
    order = paddle.argsort(scores, descending=True)
    kept = paddle.zeros([boxes.shape[0]], "bool")
    for i in range(boxes.shape[0]):
        here = order[i]
        good = True
        for j in range(i):
            other = order[j]
            if not kept[other]:
                continue
            if overlap(boxes[here], boxes[other]) > threshold:
                good = False
                break
        kept[here] = good
    return kept, boxes * kept.astype("float32").unsqueeze(1)


@model((N(4, 4, 4, 4),), (N(2, 4, 4, 4),))
class StochasticDepth(nn.Layer):
    """Blocks left out at random, by a tensor's flip, while it trains."""

    def __init__(self, count=3, survive=0.5):
        super().__init__()
        self.blocks = nn.LayerList([nn.Conv2D(4, 4, 3, padding=1) for _ in range(count)])
        self.survive = survive

    def forward(self, x):
        for block in self.blocks:
            if self.training:
                if paddle.rand([1]) < self.survive:
                    x = x + F.relu(block(x))
            else:
                x = x + self.survive * F.relu(block(x))
        return x


class BatchNormBase(nn.Layer):
    """A norm of one's own, its statistics kept in buffers."""

    axes = (0,)

    def __init__(self, width, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.weight = self.create_parameter([width], default_initializer=nn.initializer.Constant(1))
        self.register_buffer("mean", paddle.zeros([width]))
        self.register_buffer("variance", paddle.ones([width]))
        self.register_buffer("seen", paddle.zeros([], "int64"))

    def statistics(self, x):
        mean = x.mean(self.axes)
        return mean, ((x - mean) ** 2).mean(self.axes)

    def forward(self, x):
        if self.training:
            mean, variance = self.statistics(x)
            with paddle.no_grad():
                self.mean.set_value(self.momentum * self.mean + (1 - self.momentum) * mean)
                self.variance = self.momentum * self.variance + (1 - self.momentum) * variance
                self.seen += 1
        else:
            mean, variance = self.mean, self.variance
        return (x - mean) / (variance + 1e-5).sqrt() * self.weight


@model((N(6, 3),), (N(4, 3),))
class BatchNormOfOnesOwn(BatchNormBase):
    """Inherited, with a part replaced, that asks super()."""

    def __init__(self, width=3):
        super().__init__(width, momentum=0.8)
        self.shift = self.create_parameter([width], is_bias=True)

    def statistics(self, x):
        mean, variance = super().statistics(x)
        if (variance < 0.1).any():
            variance = variance + 0.1
        return mean, variance

    def forward(self, x):
        return super().forward(x) + self.shift


@model((N(3, 4, 5, 5),), (N(2, 4, 6, 6),))
class ManyNorms(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norms = nn.LayerList(
            [nn.BatchNorm2D(4), nn.InstanceNorm2D(4), nn.GroupNorm(2, 4),
             nn.BatchNorm2D(4, use_global_stats=True), nn.BatchNorm2D(4, weight_attr=False)]
        )  # fmt: skip
        self.scales = nn.ParameterList([self.create_parameter([1]) for _ in self.norms])

    def forward(self, x):
        total = 0
        for norm, scale in zip(self.norms, self.scales):
            total = total + scale * norm(x)
        return total / math.sqrt(len(self.norms))
