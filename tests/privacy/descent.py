"""Networks of digits that attacks are tried on: without training, known by heart, with noise."""

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_digits

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import functional as F

CLASSES, WIDTH, ROWS = 10, 64, 400


def digits():
    """ROWS images (n, 64) and their labels, and others."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = (x[order] / 16).astype("float32"), y[order]
    return x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:]


def perceptron(seed):
    """A network that can learn ROWS digits by heart."""
    paddle.seed(seed)
    return nn.Sequential(nn.Linear(64, WIDTH), nn.Tanh(), nn.Linear(WIDTH, CLASSES))


def untrained(inputs, labels, seed):
    """The control."""
    return perceptron(seed)


class Descent:
    """Gradient descent on all rows at once; one compiled step serves every training here.

    Each row's gradient is clipped, noise is added to the sum: that is DP-SGD, and without noise and
    a clip that matters it is plain descent.
    """

    def __init__(self, size=ROWS):
        self.net, self.size = perceptron(0), size
        self.step = paddle.jit.to_static(self.take_step, backend="native")

    def take_step(self, x, y, here, noises, clip, rate):
        """Change the weights by a step on the rows that are `here`."""
        weights = self.net.parameters()
        hidden = F.tanh(x @ weights[0] + weights[1])
        # of each row's loss to what the layers give: weights' gradients are products with these
        out = F.softmax(hidden @ weights[2] + weights[3]) - F.one_hot(y, CLASSES)
        inner = (out @ weights[2].T) * (1 - hidden * hidden)
        norms = (inner * inner).sum(1) * ((x * x).sum(1) + 1)
        norms += (out * out).sum(1) * ((hidden * hidden).sum(1) + 1)
        scale = (here * paddle.clip(clip / norms.sqrt(), max=1.0)).unsqueeze(1)
        inner, out = inner * scale, out * scale
        sums = [x.T @ inner, inner.sum(0), hidden.T @ out, out.sum(0)]
        for w, total, noise in zip(weights, sums, noises):
            w.set_value(w - rate * (total + noise) / here.sum())

    def train(self, inputs, labels, seed, steps, clip, sigma, rate):
        """The network after the steps, from first weights drawn anew."""
        self.net.set_state_dict(perceptron(seed).state_dict())
        chance, lack = np.random.default_rng(seed), self.size - len(labels)
        batch = [np.pad(inputs, ((0, lack), (0, 0))), np.pad(labels, (0, lack)),
                 (np.arange(self.size) < len(labels)).astype("float32")]  # fmt: skip
        batch = [paddle.to_tensor(array) for array in batch]
        numbers = [paddle.to_tensor(float(number), "float32") for number in (clip, rate)]
        shapes = [weight.shape for weight in self.net.parameters()]
        noises = [paddle.zeros(shape) for shape in shapes]
        with paddle.no_grad():
            for _ in range(steps):
                if sigma:
                    noises = [clip * sigma * chance.normal(size=shape) for shape in shapes]
                    noises = [paddle.to_tensor(noise, "float32") for noise in noises]
                self.step(*batch, noises, *numbers)
        return self.net


DESCENT = Descent()


def overfitted(inputs, labels, seed):
    """Trained until it knows all rows by heart."""
    return DESCENT.train(inputs, labels, seed, steps=600, clip=1e6, sigma=0.0, rate=1.0)


STEPS, SIGMA = 60, 25.0
MU = STEPS**0.5 / SIGMA
"""All steps together are Gaussian differential privacy of this mu: epsilon is 0.76 at delta = 1e-3
(Dong et al., "Gaussian differential privacy", 2022)."""
MOST = norm.cdf(MU)
"""The largest AUC of an attack that ranks the samples of one network, 0.622: to exchange one that
it saw for one that it did not changes each sum by 2 clip at most, so both cases are 2 MU apart."""


def noisy(inputs, labels, seed):
    """DP-SGD, all rows in each step."""
    return DESCENT.train(inputs, labels, seed, STEPS, clip=0.5, sigma=SIGMA, rate=1.0)
