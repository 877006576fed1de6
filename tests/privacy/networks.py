"""Networks whose gradients of single samples are tested, and the loop that is always right."""

import numpy as np

import minipaddle as paddle
from minipaddle import nn

F = nn.functional
SIZE = 6


class Attention(nn.Layer):
    """Embeddings, attention with two heads, a wide layer."""

    def __init__(self, d=8):
        super().__init__()
        self.words, self.places = nn.Embedding(20, d, padding_idx=3), nn.Embedding(9, d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm, self.last = nn.LayerNorm(d), nn.Linear(d, 5)

    def forward(self, i):
        b, t = i.shape
        x = self.words(i) + self.places(paddle.arange(t))
        parts = self.qkv(self.norm(x)).reshape([b, t, 3, 2, -1]).transpose([2, 0, 3, 1, 4])
        q, k, v = parts.unbind(0)
        a = F.softmax(q @ k.transpose([0, 1, 3, 2]) / 2.0, -1) @ v
        x = x + self.out(a.transpose([0, 2, 1, 3]).reshape([b, t, -1]))
        return self.last(F.gelu(x).mean(1))


class TiedEmbedding(nn.Layer):
    """One weight, used twice."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 6)

    def forward(self, i):
        return F.tanh(self.words(i)).mean(1) @ self.words.weight.t()


class TwiceConvolved(nn.Layer):
    """One convolution, used twice, whose windows are longer than the image has places."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2D(4, 4, 3, padding=1), nn.Linear(36, 5)

    def forward(self, x):
        return self.last(self.conv(F.tanh(self.conv(x))).flatten(1))


class LastState(nn.Layer):
    """A recurrent network, whose weights are used at every time."""

    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.LSTM(5, 6), nn.Linear(6, 5)

    def forward(self, x):
        return self.last(self.cells(x)[0][:, -1])


class ScaledWeight(nn.Layer):
    """A weight that is computed: after the sum over samples an operator follows."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Linear(5, 5).weight, nn.Linear(1, 5).bias

    def forward(self, x):
        return F.tanh(x @ (self.weight * F.sigmoid(self.scale)).cumsum(0))


NETS = {
    "mlp": lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 5)),
    "rows": lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Flatten(), nn.Linear(28, 5)),
    "long": lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(120, 5)),
    "cnn": lambda: nn.Sequential(
        nn.Conv2D(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2D(2, 2),
        nn.Conv2D(4, 6, 3, stride=2, groups=2), nn.Flatten(), nn.Linear(6, 5),
    ),
    "transposed": lambda: nn.Sequential(
        nn.Conv2DTranspose(3, 4, 3), nn.PReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(),
        nn.Linear(4, 5),
    ),
    "attention": Attention,
    "tied": TiedEmbedding,
    "twice": TwiceConvolved,
    "lstm": LastState,
    "scaled": ScaledWeight,
}  # fmt: skip
SHAPES = {"rows": (4, 5), "long": (40, 5), "cnn": (3, 8, 8), "transposed": (3, 8, 8),
          "twice": (4, 3, 3),          "lstm": (4, 5)}  # fmt: skip
WORDS = {"attention": (20, 9), "tied": (5, 4)}


def batch(kind, size=SIZE):
    """x and y of `size` samples for a network."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, size)
    if kind in WORDS:
        words, length = WORDS[kind]
        return rng.integers(0, words, (size, length)), y
    return rng.normal(size=(size, *SHAPES.get(kind, (5,)))).astype("float32"), y


def loop(net, x, y, bound=None):
    """(the sum of clipped gradients, norms): one sample at a time. No bound: the median norm."""
    parameters = [p for p in net.parameters() if not p.stop_gradient]
    each = []
    for k in range(len(x)):
        loss = F.cross_entropy(net(paddle.to_tensor(x[k : k + 1])), paddle.to_tensor(y[k : k + 1]))
        each.append([g.numpy() for g in paddle.grad(loss, parameters)])
    norms = np.array([np.sqrt(sum((g**2).sum() for g in gs)) for gs in each])
    bound = float(np.median(norms)) if bound is None else bound
    factors = np.minimum(1, bound / norms)
    return [sum(f * g for f, g in zip(factors, gs)) for gs in zip(*each)], norms
