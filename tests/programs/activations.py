"""Activations as layers and as functions, small layers, normalization."""

from tests.programs.common import set_weights, wave


def as_layers(paddle):
    """Every common activation as a layer, with its gradient."""
    nn = paddle.nn
    layers = [
        nn.ReLU(), nn.ReLU6(), nn.Sigmoid(), nn.Tanh(), nn.GELU(), nn.GELU(approximate=True),
        nn.Silu(), nn.Swish(), nn.Hardswish(), nn.Hardsigmoid(), nn.Hardtanh(), nn.Hardshrink(),
        nn.Softshrink(), nn.Tanhshrink(), nn.Softsign(), nn.Softplus(beta=2.0), nn.ELU(0.5),
        nn.SELU(), nn.CELU(0.5), nn.LeakyReLU(0.1), nn.ThresholdedReLU(), nn.LogSigmoid(),
        nn.Softmax(), nn.LogSoftmax(axis=0), nn.PReLU(init=0.2), nn.Identity(),
    ]  # fmt: skip
    found = {}
    for k, layer in enumerate(layers):
        x = paddle.to_tensor(wave(2, 5, scale=3.5), stop_gradient=False)
        y = layer(x)
        (y * paddle.to_tensor(wave(2, 5, phase=1.0))).sum().backward()
        found[f"{k} {type(layer).__name__}"] = [y, x.grad]
    return found


def as_functions(paddle):
    """The same in `nn.functional`, with their own arguments."""
    F = paddle.nn.functional
    x = paddle.to_tensor(wave(2, 4, scale=4.0))
    return [
        F.relu(x), F.relu6(x), F.sigmoid(x), F.softmax(x, axis=0), F.log_softmax(x), F.gelu(x),
        F.gelu(x, approximate=True), F.silu(x), F.swish(x), F.elu(x, alpha=0.3),
        F.celu(x, alpha=1.5), F.selu(x), F.leaky_relu(x, negative_slope=0.2), F.hardswish(x),
        F.hardsigmoid(x), F.hardshrink(x, threshold=1.0), F.softplus(x, beta=1, threshold=2),
        x.sigmoid(), x.softmax(0), F.softmax(x.astype("float64"), axis=-1),
    ]  # fmt: skip


def normalizations(paddle):
    """Statistics over different axes, in training and evaluation, with gradients."""
    nn = paddle.nn
    layers = {
        "batch1d": (nn.BatchNorm1D(3), (4, 3)),
        "batch2d": (nn.BatchNorm2D(3), (2, 3, 4, 4)),
        "batch": (nn.BatchNorm(3), (2, 3, 4, 4)),
        "layer": (nn.LayerNorm([4]), (2, 3, 4)),
        "group": (nn.GroupNorm(num_groups=2, num_channels=4), (2, 4, 3, 3)),
        "instance": (nn.InstanceNorm2D(3), (2, 3, 4, 4)),
        "instance3d": (nn.InstanceNorm3D(2), (1, 2, 2, 2, 2)),
    }
    found = {}
    for name, (layer, shape) in layers.items():
        set_weights(layer)
        x = paddle.to_tensor(wave(*shape), stop_gradient=False)
        y = layer(x)
        (y * y * y).sum().backward()
        layer.eval()
        small = [y.flatten()[:6], x.grad.flatten()[:6], layer(x).flatten()[:6]]
        found[name] = [*small, [p.grad for p in layer.parameters()]]
    found["running"] = [layers["batch1d"][0]._mean, layers["batch2d"][0]._variance]
    x = paddle.to_tensor(wave(2, 3, 4))
    found["functional"] = paddle.nn.functional.layer_norm(x, normalized_shape=[3, 4])
    many = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2D(2)))
    found["many"] = [isinstance(many[0], nn.SyncBatchNorm), list(many.state_dict())]
    found["normalize"] = paddle.nn.functional.normalize(x, p=2, axis=1)
    return found


def dropout(paddle):
    """What of dropout does not depend on chance."""
    F, nn = paddle.nn.functional, paddle.nn
    paddle.seed(11)
    x = paddle.ones([40, 50], dtype="float32")
    x.stop_gradient = False
    y = F.dropout(x, p=0.4)
    y.sum().backward()
    kept = (y > 0).astype("float32").mean().item()
    planes = nn.Dropout2D(0.5)(paddle.ones([8, 16, 3, 3]))
    flat = planes.reshape([8 * 16, 9])
    layer = nn.Dropout(0.4)
    layer.eval()
    return {
        "values": paddle.unique(y),
        "kept": abs(kept - 0.6) < 0.05,
        "gradient": paddle.equal_all(x.grad, y.detach()),
        "planes": paddle.equal_all(flat.min(axis=1), flat.max(axis=1)),
        "eval": paddle.equal_all(layer(x), x),
        "downscale": F.dropout(
            paddle.ones([1, 2]), 0.25, training=False, mode="downscale_in_infer"
        ),
        "functional": F.dropout2d(paddle.ones([1, 2, 2, 2]), training=False).sum(),
    }


def small_layers(paddle):
    """Layers that only move numbers, or compare them."""
    nn, F = paddle.nn, paddle.nn.functional
    x = paddle.to_tensor(wave(1, 2, 3, 4))
    a, b = paddle.to_tensor(wave(3, 4)), paddle.to_tensor(wave(3, 4, phase=1.0))
    linear = set_weights(nn.Linear(4, 2))
    return {
        "flatten": nn.Flatten()(x).shape,
        "pad2d": nn.Pad2D([1, 0, 0, 2], value=9.0)(x),
        "reflect": nn.Pad2D(1, mode="reflect")(x),
        "pad1d": nn.Pad1D([1, 2], mode="replicate")(x[0]),
        "pad3d": nn.Pad3D(1)(x.unsqueeze(0)).shape,
        "functional": F.pad(x, [1, 1, 0, 0], mode="circular"),
        "unfold": [nn.Unfold(kernel_sizes=[2, 2])(x), F.unfold(x, [2, 2], strides=2).shape],
        "similarity": [nn.CosineSimilarity(axis=1)(a, b), F.cosine_similarity(a, b, axis=0)],
        "linear": [linear(a), F.linear(a, linear.weight, linear.bias)],
        "embedding": nn.Embedding(3, 2, padding_idx=0)(paddle.to_tensor([[0, 0]])),
        "shift": F.temporal_shift(paddle.to_tensor(wave(4, 4, 1, 1)), seg_num=2),
    }
