"""Convolutions, pooling, resampling, and small vision networks."""

import numpy as np

from tests.programs.common import set_weights, wave


def convolutions(paddle):
    """Layers of one to three dimensions, with their gradients."""
    nn = paddle.nn
    layers = [
        (nn.Conv1D(2, 3, 3, stride=2, padding=1), (2, 2, 7)),
        (nn.Conv2D(2, 4, 3, padding=1, groups=2), (1, 2, 5, 5)),
        (nn.Conv2D(2, 3, (3, 2), stride=(2, 1), dilation=2), (1, 2, 7, 6)),
        (nn.Conv2D(1, 2, 3, padding="same"), (1, 1, 4, 4)),
        (nn.Conv3D(1, 2, 2), (1, 1, 3, 3, 3)),
        (nn.Conv2DTranspose(2, 3, 3, stride=2, padding=1, output_padding=1), (1, 2, 3, 3)),
        (nn.Conv3DTranspose(1, 1, 2, stride=2), (1, 1, 2, 2, 2)),
    ]
    found = []
    for layer, shape in layers:
        set_weights(layer)
        x = paddle.to_tensor(wave(*shape), stop_gradient=False)
        y = layer(x)
        y.square().sum().backward()
        found.append([y.shape, y.sum(axis=1), x.grad.sum(), layer.weight.grad.flatten()[:5]])
        found.append(layer.bias.grad)
    return found


def functional_convolutions(paddle):
    """The functions, weights given."""
    F = paddle.nn.functional
    x1, w1 = paddle.to_tensor(wave(1, 2, 6)), paddle.to_tensor(wave(3, 2, 3))
    x2, w2 = paddle.to_tensor(wave(1, 2, 4, 4)), paddle.to_tensor(wave(3, 2, 3, 3))
    x3, w3 = paddle.to_tensor(wave(1, 1, 3, 3, 3)), paddle.to_tensor(wave(2, 1, 2, 2, 2))
    return {
        "conv1d": F.conv1d(x1, w1, padding=1),
        "conv2d": F.conv2d(x2, w2, bias=paddle.to_tensor([1.0, 2.0, 3.0]), stride=1),
        "last": F.conv2d(x2.transpose([0, 2, 3, 1]), w2, data_format="NHWC").shape,
        "conv3d": F.conv3d(x3, w3).sum(axis=[2, 3, 4]),
        "back1d": F.conv1d_transpose(x1, w1.transpose([1, 0, 2]), stride=2),
        "back2d": F.conv2d_transpose(x2, w2.transpose([1, 0, 2, 3]), padding=1),
        "back3d": F.conv3d_transpose(x3, w3.reshape([1, 2, 2, 2, 2])).shape,
    }


def pooling(paddle):
    """Windows, their averages and maxima, and adaptive ones."""
    nn, F = paddle.nn, paddle.nn.functional
    x = paddle.to_tensor(wave(1, 2, 6, 6), stop_gradient=False)
    line, cube = paddle.to_tensor(wave(1, 2, 7)), paddle.to_tensor(wave(1, 1, 4, 4, 4))
    found = {
        "max": nn.MaxPool2D(2, stride=2)(x),
        "avg": nn.AvgPool2D(kernel_size=3, stride=2, padding=1)(x),
        "inclusive": F.avg_pool2d(x, 3, stride=2, padding=1, exclusive=False),
        "ceil": F.max_pool2d(x, 3, stride=2, ceil_mode=True),
        "adaptive": nn.AdaptiveAvgPool2D((3, 4))(x),
        "global": nn.AdaptiveAvgPool2D(1)(x),
        "adaptive_max": nn.AdaptiveMaxPool2D(2)(x),
        "functional": F.adaptive_avg_pool2d(x, [2, None]),
        "functional_max": F.adaptive_max_pool2d(x, 4),
        "line": [nn.AvgPool1D(3)(line), F.max_pool1d(line, 2), nn.AdaptiveAvgPool1D(3)(line)],
        "line2": F.adaptive_avg_pool1d(line, 2),
        "cube": [nn.AvgPool3D(2)(cube), F.avg_pool3d(cube, 2), F.max_pool3d(cube, 2)],
    }
    sum(v.square().sum() for v in found.values() if not isinstance(v, list)).backward()
    return found | {"grad": x.grad}


def resampling(paddle):
    """Larger and smaller pictures, and sampling along a grid."""
    nn, F = paddle.nn, paddle.nn.functional
    x = paddle.to_tensor(wave(1, 1, 3, 4), stop_gradient=False)
    turn = paddle.to_tensor([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]])
    grid = F.affine_grid(turn, [1, 1, 4, 4], align_corners=True)
    found = {
        "nearest": F.interpolate(x, scale_factor=2, mode="nearest"),
        "bilinear": F.interpolate(x, size=[5, 6], mode="bilinear"),
        "corners": F.interpolate(x, size=[5, 7], mode="bilinear", align_corners=True),
        "bicubic": F.interpolate(x, size=[4, 5], mode="bicubic"),
        "upsample": nn.Upsample(scale_factor=2, mode="nearest")(x).shape,
        "functional": F.upsample(x, size=[6, 8], mode="bilinear").sum(),
        "layer": nn.UpsamplingBilinear2D(scale_factor=2)(x),
        "grid": grid,
        "sampled": F.grid_sample(x, grid, align_corners=True),
        "outside": F.grid_sample(x, grid * 1.5, padding_mode="border", mode="nearest"),
    }
    (found["bilinear"].square().sum() + found["sampled"].square().sum()).backward()
    return found | {"grad": x.grad}


def edge_filters(paddle):
    """Sobel, Laplace and Gauss as convolutions over a picture of a square."""
    F = paddle.nn.functional
    image = paddle.zeros([1, 1, 8, 8])
    image[:, :, 2:6, 2:6] = 1.0
    sobel = paddle.to_tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    kernels = paddle.stack([sobel, sobel.T]).unsqueeze(1)
    gx, gy = paddle.split(F.conv2d(image, kernels, padding=1), 2, axis=1)
    magnitude = paddle.sqrt(gx**2 + gy**2)
    t = paddle.arange(-2, 3, dtype="float32")
    bell = paddle.exp(-(t**2) / 2)
    gauss = paddle.outer(bell, bell) / bell.sum() ** 2
    blurred = F.conv2d(F.pad(image, [2, 2, 2, 2], mode="reflect"), gauss.reshape([1, 1, 5, 5]))
    return magnitude.squeeze(), blurred.squeeze(), paddle.atan2(gy, gx).squeeze()[2]


def game_of_life(paddle):
    """A glider moves one cell along the diagonal in four steps."""
    F = paddle.nn.functional
    board = paddle.zeros([1, 1, 8, 8])
    for row, column in [(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)]:
        board[0, 0, row, column] = 1.0
    around = paddle.ones([1, 1, 3, 3])
    around[0, 0, 1, 1] = 0.0
    start = board
    for _ in range(4):
        near = F.conv2d(F.pad(board, [1, 1, 1, 1], mode="circular"), around)
        board = paddle.logical_or(near == 3, paddle.logical_and(board == 1, near == 2))
        board = board.astype("float32")
    moved = paddle.roll(start, shifts=[1, 1], axis=[2, 3])
    return board.squeeze().astype("int32"), paddle.equal_all(board, moved)


def image_operations(paddle):
    """Flips, crops, grey, histograms: pictures without a library."""
    picture = paddle.to_tensor((wave(3, 4, 6) * 127 + 128).astype("uint8"))
    floats = picture.astype("float32") / 255
    weights = paddle.to_tensor([0.299, 0.587, 0.114]).reshape([3, 1, 1])
    grey = (floats * weights).sum(axis=0)
    mean, std = floats.mean(axis=[1, 2], keepdim=True), floats.std(axis=[1, 2], keepdim=True)
    patches = floats.reshape([3, 2, 2, 3, 2]).transpose([1, 3, 0, 2, 4]).reshape([6, -1])
    return {
        "grey": grey,
        "flip": paddle.flip(floats, axis=[-1])[0],
        "crop": picture[:, 1:3, 2:5],
        "normal": ((floats - mean) / std).mean(axis=[1, 2]).abs().max().item() < 1e-5,
        "histogram": paddle.histogram(grey, bins=5, min=0, max=1),
        "threshold": (grey > grey.mean()).astype("int64").sum(),
        "patches": patches,
        "back": (floats * 255).round().astype("uint8")[0],
    }


def lenet(paddle):
    """A convolutional classifier, trained for a few steps."""
    nn, F = paddle.nn, paddle.nn.functional

    class LeNet(nn.Layer):
        def __init__(self, classes=3):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2D(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
                nn.Conv2D(4, 6, 3), nn.ReLU(), nn.MaxPool2D(2, 2),
            )  # fmt: skip
            self.fc = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, classes))

        def forward(self, x):
            x = self.features(x)
            return self.fc(paddle.flatten(x, 1))

    net = set_weights(LeNet(), scale=0.3)
    opt = paddle.optimizer.Adam(learning_rate=0.01, parameters=net.parameters())
    x = paddle.to_tensor(wave(6, 1, 12, 12))
    labels = paddle.to_tensor([0, 1, 2, 0, 1, 2])
    losses = []
    for _ in range(4):
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses, net.fc[2].bias


def residual_network(paddle):
    """Two blocks with batch norm and shortcuts; training and evaluation differ."""
    nn, F = paddle.nn, paddle.nn.functional

    class Block(nn.Layer):
        def __init__(self, inside, outside, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2D(inside, outside, 3, stride, padding=1, bias_attr=False)
            self.bn1 = nn.BatchNorm2D(outside)
            self.conv2 = nn.Conv2D(outside, outside, 3, padding=1, bias_attr=False)
            self.bn2 = nn.BatchNorm2D(outside)
            self.shortcut = nn.Identity()
            if stride != 1 or inside != outside:
                self.shortcut = nn.Sequential(
                    nn.Conv2D(inside, outside, 1, stride, bias_attr=False),
                    nn.BatchNorm2D(outside),
                )

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    net = nn.Sequential(
        Block(2, 4), Block(4, 6, 2), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(6, 3)
    )
    set_weights(net, scale=0.4)
    opt = paddle.optimizer.Momentum(0.05, momentum=0.9, parameters=net.parameters())
    x, y = paddle.to_tensor(wave(4, 2, 6, 6)), paddle.to_tensor([0, 1, 2, 1])
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    net.eval()
    return losses, net(x), net[0].bn1._mean, len(net.state_dict())


def squeeze_and_excite(paddle):
    """Channel attention over a depthwise convolution, as in MobileNetV3."""
    nn, F = paddle.nn, paddle.nn.functional

    class SqueezeExcite(nn.Layer):
        def __init__(self, channels):
            super().__init__()
            self.depthwise = nn.Conv2D(channels, channels, 3, padding=1, groups=channels)
            self.down = nn.Conv2D(channels, 2, 1)
            self.up = nn.Conv2D(2, channels, 1)

        def forward(self, x):
            x = F.hardswish(self.depthwise(x))
            s = F.adaptive_avg_pool2d(x, 1)
            return x * F.hardsigmoid(self.up(F.relu6(self.down(s))))

    net = set_weights(SqueezeExcite(4))
    x = paddle.to_tensor(wave(2, 4, 5, 5), stop_gradient=False)
    y = net(x)
    y.mean().backward()
    parts = paddle.concat([y, y.flip([3])], axis=1).reshape([2, 2, 4, 5, 5])
    shuffled = parts.transpose([0, 2, 1, 3, 4]).flatten(1, 2)
    return y.sum(axis=[2, 3]), x.grad[0, 0], net.up.weight.grad.flatten(), shuffled[0, :, 0, 0]


def style_statistics(paddle):
    """Gram matrices and total variation, pixels as the parameters that learn."""
    target = paddle.to_tensor(wave(3, 5, 5))
    picture = paddle.create_parameter(
        [3, 5, 5], "float32", default_initializer=paddle.nn.initializer.Constant(0.1)
    )
    picture.set_value(wave(3, 5, 5, phase=2.0, scale=0.5))
    opt = paddle.optimizer.Adam(0.05, parameters=[picture])

    def gram(image):
        flat = image.flatten(1)
        return paddle.mm(flat, flat.T) / flat.shape[1]

    losses = []
    for _ in range(5):
        across = (picture[:, :, 1:] - picture[:, :, :-1]).abs().mean()
        down = (picture[:, 1:] - picture[:, :-1]).abs().mean()
        loss = ((gram(picture) - gram(target)) ** 2).sum() + 0.01 * (across + down)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses, np.asarray(gram(picture).numpy())
