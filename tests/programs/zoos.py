"""What model zoos do with Paddle's layers: read their private attributes, and its inner modules."""

from tests.programs.common import set_weights, wave


def fold_norm_into_convolution(paddle):
    """A convolution and its batch norm as one convolution, for inference."""
    nn = paddle.nn
    convolution = set_weights(nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2, bias_attr=False))
    norm = set_weights(nn.BatchNorm2D(6))
    norm._mean.set_value(wave(6, phase=3.0))
    norm._variance.set_value(1.0 + wave(6, phase=4.0) ** 2)
    norm.eval()
    one = nn.Conv2D(
        convolution._in_channels,
        convolution._out_channels,
        convolution._kernel_size,
        convolution._stride,
        convolution._padding,
        convolution._dilation,
        convolution._groups,
        data_format=norm._data_format,
    )
    scale = norm.weight / paddle.sqrt(norm._variance + norm._epsilon)
    one.weight.set_value(convolution.weight * scale.reshape([-1, 1, 1, 1]))
    one.bias.set_value(norm.bias - norm._mean * scale)
    x = paddle.to_tensor(wave(1, 4, 5, 5))
    return norm(convolution(x)), one(x), convolution._bias_attr, norm._num_features


def initialise_by_kind(paddle):
    """Each kind of layer starts in its own way; initializers are called with the block."""
    nn = paddle.nn
    net = nn.Sequential(
        nn.Conv1D(2, 2, 1), nn.BatchNorm1D(2), nn.Flatten(), nn.Linear(6, 2), nn.PReLU()
    )
    fill = nn.initializer.Constant
    for layer in net.sublayers():
        if isinstance(layer, nn.layer.conv._ConvNd):
            fill(0.5)(layer.weight, layer.weight.block)
        elif isinstance(layer, nn.layer.norm._BatchNormBase):
            fill(2.0)(layer.weight, layer.weight.block)
        elif isinstance(layer, nn.Linear):
            fill(-0.25)(layer.weight, layer.weight.block)
    return net(paddle.to_tensor(wave(2, 2, 3)))


def pyramid_pooling(paddle):
    """Pools of several sizes, said by the layers themselves, and a layer that is changed later."""
    nn, F = paddle.nn, paddle.nn.functional
    x = paddle.to_tensor(wave(1, 2, 6, 6))
    pools = nn.LayerList([nn.AdaptiveAvgPool2D(n) for n in (1, 2, 3)])
    pools[0]._output_size = 6
    parts = [F.interpolate(pool(x), size=[6, 6], mode="bilinear") for pool in pools]
    return [pool._output_size for pool in pools], paddle.concat([x, *parts], axis=1).sum([2, 3])


def grow_an_embedding(paddle):
    """A larger table of words that begins with the old one."""
    nn = paddle.nn
    old = set_weights(nn.Embedding(4, 3, padding_idx=1))
    new = nn.Embedding(
        old._num_embeddings + 2, old._embedding_dim, padding_idx=old._padding_idx,
        weight_attr=old._weight_attr, sparse=old._sparse,
    )  # fmt: skip
    new.weight.set_value(paddle.concat([old.weight, paddle.zeros([2, 3])]))
    ids = paddle.to_tensor([0, 1, 3, 5])
    return new(ids), new.weight.shape


def causal_attention_with_inner_functions(paddle):
    """Attention written with functions of Paddle's files and its conversion of masks."""
    from_bool = paddle.nn.layer.transformer._convert_attention_mask
    q, k, v = (paddle.to_tensor(wave(1, 2, 4, 3, phase=p)) for p in (0.0, 1.0, 2.0))
    allowed = paddle.tensor.tril(paddle.tensor.ones([4, 4], dtype="bool"))
    scores = paddle.tensor.matmul(q, k, transpose_y=True) + from_bool(allowed, q.dtype)
    mixed = paddle.tensor.matmul(paddle.nn.functional.softmax(scores), v)
    filled = paddle.tensor.fill_constant([1], "float32", 0.5)
    return paddle.tensor.transpose(mixed, [0, 2, 1, 3]) * filled


def move_a_state(paddle):
    """Nested state, changed as a whole and put back."""
    utils = paddle.utils
    state = {"w": [paddle.to_tensor(wave(2)), (1, 2)], "epoch": 3}
    doubled = utils.map_structure(lambda x: x * 2, state)
    return utils.flatten(state), doubled, utils.pack_sequence_as(state, [0, 1, 2, 3])


def names_of_two_models(paddle):
    """Two models made alike inside guards have the same names, so that weights fit by name."""
    found = []
    for prefix in (None, None, "teacher_"):
        with paddle.utils.unique_name.guard(prefix):
            net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.Conv2D(1, 1, 1))
            found.append([p.name for p in net.parameters()])
            found.append(paddle.utils.unique_name.generate("feature"))
    return found


def questions_about_the_framework(paddle):
    """What set-up code asks before anything is computed."""
    x = paddle.ones([2])
    return {
        "version": paddle.__version__,
        "parts": [paddle.version.major, paddle.version.minor, paddle.version.patch],
        "variable": isinstance(x, paddle.static.Variable),
        "parameter": isinstance(paddle.nn.Linear(1, 1).weight, paddle.framework.core.eager.Tensor),
        "place": isinstance(paddle.CPUPlace(), paddle.CPUPlace),
        "pinned": isinstance(x.place, paddle.CUDAPinnedPlace),
        "dynamic": paddle.framework.in_dynamic_mode(),
        "attribute": paddle.framework.ParamAttr is paddle.ParamAttr,
        "others": [paddle.is_compiled_with_xpu(), paddle.device.get_all_custom_device_type()],
        "name": paddle.base.data_feeder.convert_dtype(x.dtype),
        "values": x.numpy(False),
    }
