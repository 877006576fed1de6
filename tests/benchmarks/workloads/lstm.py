"""A language model of letters: an LSTM cell that a Python loop applies 32 times."""

from __future__ import annotations

import numpy as np

from .workload import SEED, Target, Workload, is_torch, jax_entropy, module

HIDDEN, STEPS, COUNT, LETTERS = 64, 32, 32, 64


def net(framework):
    nn = framework.nn

    class Letters(module(framework)):
        def __init__(self):
            super().__init__()
            self.letter = nn.Embedding(LETTERS, HIDDEN)
            self.cell = nn.LSTMCell(HIDDEN, HIDDEN)
            self.head = nn.Linear(HIDDEN, LETTERS)

        def forward(self, x):
            x, seen = self.letter(x), []
            h = c = framework.zeros([COUNT, HIDDEN])
            for t in range(STEPS):
                if is_torch(framework):
                    h, c = self.cell(x[:, t], (h, c))
                else:
                    _, (h, c) = self.cell(x[:, t], (h, c))
                seen.append(h)
            return self.head(framework.stack(seen, 1))

    return Letters()


def apply(framework):
    entropy = framework.nn.functional.cross_entropy
    return lambda net, x, y: entropy(net(x).reshape([-1, LETTERS]), y.reshape([-1]))


def jax_loss(jax):
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def loss(w, x, y):
        x, seen = w["letter.weight"][x], []
        h = c = jnp.zeros([COUNT, HIDDEN])
        for t in range(STEPS):
            z = x[:, t] @ w["cell.weight_ih"].T + w["cell.bias_ih"]
            z = z + h @ w["cell.weight_hh"].T + w["cell.bias_hh"]
            i, f, g, o = jnp.split(z, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            seen.append(h)
        logits = jnp.stack(seen, 1) @ w["head.weight"] + w["head.bias"]
        return jax_entropy(jax, logits.reshape(-1, LETTERS), y.reshape(-1)), {}

    return loss


def batch():
    text = np.random.default_rng(SEED).integers(0, LETTERS, (COUNT, STEPS + 1))
    return [text[:, :-1].copy(), text[:, 1:].copy()]


LSTM = Workload(
    title="LSTM of 64, 32 steps in Python, batch 32",
    target=Target(0.8, "torch.compile", 2.60e-3),
    batch=batch,
    net=net,
    apply=apply,
    jax=jax_loss,
)
