"""Layers of one's own: parameters, buffers, containers, hooks, state."""

import copy
import warnings

import numpy as np

from tests.programs.common import set_weights, wave


def custom_layer(paddle):
    """A layer with parameters made three ways."""
    nn = paddle.nn

    class Affine(nn.Layer):
        def __init__(self, size):
            super().__init__()
            self.weight = self.create_parameter(
                [size], default_initializer=nn.initializer.Constant(2.0)
            )
            self.bias = self.create_parameter([size], is_bias=True)
            self.gain = paddle.create_parameter(
                [1], "float32", attr=nn.initializer.Assign(np.array([0.5], "float32"))
            )

        def forward(self, x):
            return self.gain * (x * self.weight + self.bias)

        def extra_repr(self):
            return f"size={self.weight.shape[0]}"

    layer = Affine(3)
    y = layer(paddle.to_tensor(wave(2, 3)))
    y.sum().backward()
    return {
        "out": y,
        "names": [name for name, _ in layer.named_parameters()],
        "grads": [p.grad for p in layer.parameters()],
        "text": str(layer),
        "trainable": [p.trainable for p in layer.parameters()],
    }


def containers(paddle):
    """Sequential, LayerList, and what they answer."""
    nn = paddle.nn

    class Residual(nn.Layer):
        def __init__(self, width, depth):
            super().__init__()
            self.blocks = nn.LayerList([nn.Linear(width, width) for _ in range(depth)])
            self.blocks.append(nn.Identity())
            self.head = nn.Sequential(("norm", nn.LayerNorm(width)), ("out", nn.Linear(width, 2)))

        def forward(self, x):
            for block in self.blocks:
                x = x + block(x)
            return self.head(x)

    net = set_weights(Residual(4, 2))
    return {
        "out": net(paddle.to_tensor(wave(3, 4))),
        "length": [len(net.blocks), len(net.head)],
        "parameters": [(name, p.shape) for name, p in net.named_parameters()],
        "sublayers": [name for name, _ in net.named_sublayers()],
        "kinds": [type(child).__name__ for child in net.children()],
        "picked": [type(net.head[0]).__name__, type(net.blocks[-1]).__name__],
        "text": str(net.head),
        "count": sum(int(np.prod(p.shape)) for p in net.parameters()),
    }


def parameter_sharing(paddle):
    """One weight in two places: counted once, gradients added."""
    nn = paddle.nn

    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.decode = nn.Linear(3, 5, bias_attr=False)
            self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(1))

        def forward(self, ids):
            h = self.embed(ids).mean(axis=1) * self.scale
            return paddle.matmul(h, self.embed.weight, transpose_y=True) + self.decode(h)

    net = set_weights(Tied())
    net.other = net.embed
    loss = net(paddle.to_tensor([[0, 1, 1], [2, 4, 0]])).square().sum()
    loss.backward()
    names = [name for name, _ in net.named_parameters()]
    return loss, names, net.embed.weight.grad, len(net.parameters())


def buffers(paddle):
    """State that is not trained: a running mean and a mask that is not saved."""
    nn = paddle.nn

    class Center(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", paddle.zeros([3]))
            self.register_buffer("mask", paddle.to_tensor([1.0, 0.0, 1.0]), persistable=False)

        def forward(self, x):
            if self.training:
                with paddle.no_grad():
                    self.mean.set_value(0.9 * self.mean + 0.1 * x.mean(axis=0))
            return (x - self.mean) * self.mask

    layer, x = Center(), paddle.to_tensor(wave(4, 3) + 1)
    for _ in range(3):
        layer(x)
    layer.eval()
    return {
        "mean": layer.mean,
        "out": layer(x),
        "saved": list(layer.state_dict()),
        "buffers": [name for name, _ in layer.named_buffers()],
        "parameters": layer.parameters(),
        "training": layer.training,
    }


def state_dict_round_trip(paddle):
    """Weights from one network into another, by name."""
    nn = paddle.nn

    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1D(4), nn.Linear(4, 2))

    a, b = set_weights(make()), make()
    a(paddle.to_tensor(wave(5, 3)))
    state = a.state_dict()
    b.set_state_dict(state)
    a.eval()
    b.eval()
    x = paddle.to_tensor(wave(2, 3, phase=1.0))
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        missing, unexpected = b.set_state_dict({"0.weight": state["0.weight"], "odd": x})
    return {
        "names": list(state),
        "same": paddle.equal_all(a(x), b(x)),
        "out": a(x),
        "running": a[2]._mean,
        "missing": sorted(missing),
        "unexpected": unexpected,
        "warned": len(complaints) > 0,
    }


def layer_hooks(paddle):
    """Looking at activations, and changing them."""
    nn = paddle.nn
    net = set_weights(nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1)))
    seen = {}

    def remember(layer, inputs, output):
        seen[type(layer).__name__] = output.mean().item()

    handles = [child.register_forward_post_hook(remember) for child in net]
    before = net[0].register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2,))
    x = paddle.to_tensor(wave(4, 2))
    hooked = net(x)
    before.remove()
    for handle in handles:
        handle.remove()
    return hooked, net(x), seen


def freezing(paddle):
    """Fine-tuning: the body stays, the head learns."""
    nn = paddle.nn
    body, head = set_weights(nn.Linear(3, 4)), set_weights(nn.Linear(4, 1))
    for p in body.parameters():
        p.stop_gradient = True
    net = nn.Sequential(body, nn.Tanh(), head)
    trained = [p for p in net.parameters() if not p.stop_gradient]
    opt = paddle.optimizer.SGD(learning_rate=0.5, parameters=trained)
    start = body.weight.clone()
    x, y = paddle.to_tensor(wave(6, 3)), paddle.to_tensor(wave(6, 1, phase=2.0))
    losses = []
    for _ in range(4):
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses, paddle.equal_all(start, body.weight), body.weight.grad is None, len(trained)


def modes_and_apply(paddle):
    """train, eval, apply, and copies."""
    nn = paddle.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Sequential(nn.Linear(2, 2)))

    def init(layer):
        if isinstance(layer, nn.Linear):
            layer.weight.set_value(np.full(layer.weight.shape, 0.5, "float32"))
            layer.bias.set_value(paddle.ones(layer.bias.shape))

    net.apply(init)
    net.eval()
    x = paddle.ones([1, 2])
    out = net(x)
    twin = copy.deepcopy(net)
    twin[0].weight.set_value(paddle.zeros([2, 2]))
    net.train()
    modes = [layer.training for layer in net.sublayers(include_self=True)]
    return out, twin(x), net[0].weight, modes, net.full_name() == twin.full_name()


def parameter_attributes(paddle):
    """ParamAttr: initializers, names, own learning rates and decay, no bias."""
    nn = paddle.nn
    attr = paddle.ParamAttr(
        name="first_weight",
        initializer=nn.initializer.Constant(0.25),
        learning_rate=0.5,
        regularizer=paddle.regularizer.L2Decay(0.1),
    )
    layer = nn.Linear(2, 3, weight_attr=attr, bias_attr=False)
    layer2 = nn.Linear(3, 1, bias_attr=paddle.ParamAttr(trainable=False))
    opt = paddle.optimizer.SGD(0.1, parameters=[*layer.parameters(), *layer2.parameters()])
    layer2.weight.set_value(np.ones([3, 1], "float32"))
    layer2(layer(paddle.ones([1, 2]))).sum().backward()
    opt.step()
    return layer.weight, layer.weight.name, layer.bias, layer2.bias.stop_gradient, layer2.weight


def initializers(paddle):
    """The exact ones by value, the random ones by their moments."""
    init, nn = paddle.nn.initializer, paddle.nn

    def weight(initializer, shape=(200, 100)):
        attr = paddle.ParamAttr(initializer=initializer)
        return nn.Linear(*shape, weight_attr=attr).weight

    def moments(initializer, std):
        w = weight(initializer)
        return abs(w.mean().item()) < 0.04 * std, abs(w.std().item() / std - 1) < 0.03

    table = wave(2, 3)
    paddle.seed(3)
    return {
        "constant": weight(init.Constant(0.5), (2, 2)),
        "assign": weight(init.Assign(table), (2, 3)),
        "normal": moments(init.Normal(0.0, 0.5), 0.5),
        "uniform": moments(init.Uniform(-1.0, 1.0), 3**-0.5),
        "truncated": moments(init.TruncatedNormal(0.0, 1.0), 0.8796),
        "xavier": moments(init.XavierUniform(), (2 / 300) ** 0.5),
        "kaiming": [moments(init.KaimingNormal(), 0.1), moments(init.KaimingUniform(), 0.1)],
        "bounded": weight(init.TruncatedNormal(0.0, 1.0)).abs().max().item() <= 2.0,
    }
