"""The engine alone: this file runs in a folder that holds a copy of it and nothing else.

It trains a perceptron, a small convolutional net and a character GPT: eagerly, as programs on the
interpreter, and as one C function each; then the perceptron on two ranks. It prints JSON.
`only_numpy.py` is imported first: it hides every library that the engine may not need.
"""

import json
import sys
import threading

import numpy as np
import only_numpy  # first
from engine.core.dispatch import Recording
from engine.core.rank import own_settings
from engine.distributed.reducer import Reducer
from engine.distributed.thread_group import World
from engine.eager.tensor import Parameter, Tensor
from engine.executors.compiler import compiler
from engine.jit import runtime  # noqa: F401  (what converted code calls)
from engine.jit.to_static import to_static
from engine.ops import activation, conv, movement, nn, reduction
from engine.ops.elementwise import exp, log, where

STEPS, RATE = 6, 0.1


class Model:
    """Parameters that a step of gradient descent updates."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.parameters = []

    def weight(self, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:]) or 1)
        values = self.random.normal(size=shape) * scale
        self.parameters.append(Parameter(values.astype("float32")))
        return self.parameters[-1]

    def data(self, *shape):
        return Tensor(self.random.normal(size=shape).astype("float32"))

    def step(self, *batch):
        loss = self.loss(*batch)
        loss.backward()
        with Recording(False):
            rate, rounds = Tensor(np.float32(RATE)), 0.0
            while rounds < loss * 100.0:  # the larger the loss, the smaller the step
                rate, rounds = rate * 0.9, rounds + 1.0
                if rate < 0.6 * RATE:
                    break
            for p in self.parameters:
                p.set_value(p - p.grad * rate)
                p.clear_gradient()
        return loss


def mean(x):
    return reduction.mean(x, axis=tuple(range(x.ndim)), keepdim=False)


class Perceptron(Model):
    """Three layers, and a loss that counts double while it is large."""

    def __init__(self):
        super().__init__()
        self.w = self.weight(16, 4), self.weight(16, 16), self.weight(1, 16)
        x = self.data(32, 4)
        self.batch = x, Tensor(np.sin(x.numpy().sum(1, keepdims=True)).astype("float32"))

    def loss(self, x, y):
        for w in self.w:
            x = x @ movement.transpose(w, perm=(1, 0))
            if w is not self.w[-1]:
                x = activation.relu(x)
        error = mean((x - y) ** 2.0)
        if error > 0.4:
            error = error * 2.0
        return error


class Convolutions(Model):
    """A convolution, a mean over what it sees, and a choice between two classes."""

    def __init__(self):
        super().__init__()
        self.kernel, self.head = self.weight(8, 1, 3, 3), self.weight(8, 2)
        x = self.data(16, 1, 8, 8)
        label = (x.numpy()[:, 0, :4].sum((1, 2)) > 0).astype("int64")
        self.batch = x, Tensor(np.eye(2, dtype="float32")[label])

    def loss(self, x, y):
        x = conv.conv(x, self.kernel, stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1),
                      groups=1)  # fmt: skip
        x = reduction.mean(activation.relu(x), axis=(2, 3), keepdim=False)
        return cross_entropy(x @ self.head, y)


def cross_entropy(logits, wanted):
    last = (logits.ndim - 1,)
    z = logits - reduction.max(logits, axis=last, keepdim=True)
    total = log(reduction.sum(exp(z), axis=last, keepdim=False))
    return mean(total - reduction.sum(z * wanted, axis=last, keepdim=False))


TEXT = "to be or not to be, that is the question: whether it is nobler in the mind to suffer"


class GPT(Model):
    """One block of attention and a feed-forward layer over characters."""

    def __init__(self, width: int = 16, length: int = 12):
        super().__init__()
        letters = sorted(set(TEXT))
        numbers = [letters.index(c) for c in TEXT]
        rows = np.array([numbers[k : k + length + 1] for k in range(0, 64, 8)])
        hot = np.eye(len(letters), dtype="float32")[rows]
        self.batch = Tensor(hot[:, :-1]), Tensor(hot[:, 1:])
        self.mask = Tensor(np.tril(np.ones((length, length), "float32")))
        self.table, self.places = self.weight(len(letters), width), self.weight(length, width)
        self.q, self.k, self.v = (self.weight(width, width) for _ in range(3))
        self.up, self.down = self.weight(width, 32), self.weight(32, width)

    def loss(self, x, y):
        x = x @ self.table + self.places
        h = self.normed(x)
        scores = (h @ self.q) @ movement.transpose(h @ self.k, perm=(0, 2, 1)) * 0.25
        scores = where(self.mask > 0.0, scores, -1e9)
        x = x + nn.softmax(scores, axis=2) @ (h @ self.v)
        x = x + activation.relu(self.normed(x) @ self.up) @ self.down
        return cross_entropy(self.normed(x) @ movement.transpose(self.table, perm=(1, 0)), y)

    def normed(self, x):
        x = x - reduction.mean(x, axis=(2,), keepdim=True)
        return x * (reduction.mean(x * x, axis=(2,), keepdim=True) + 1e-5) ** -0.5


def losses(kind, backend: str | None) -> dict:
    """A few steps of a fresh model: its losses; of a native program what it is made of."""
    model = kind()
    step = model.step if backend is None else to_static(model.step, backend=backend)
    found = {"losses": [float(step(*model.batch).numpy()) for _ in range(STEPS)]}
    if backend == "native" and compiler() is not None:
        (executable,) = step.concrete_program.executables.compiled.values()
        found["hosted"] = sorted({r.op.name for r in executable.source.hosted})
        found["functions"] = executable.source.text.count("_run(void *const *all)")
        found["arena"], found["live"] = executable.plan.size, executable.plan.live
    return found


def on_two_ranks() -> list:
    """The perceptron, each rank with half of the batch, gradients averaged between threads."""
    world, found = World(2), [None, None]

    def run(rank: int):
        try:
            own_settings()
            model = Perceptron()
            model.batch = [Tensor(x.numpy()[rank::2]) for x in model.batch]
            reducer = Reducer(model.parameters, world.group(rank))
            for p in model.parameters:
                p.averaged = {}
            found[rank] = [float(model.step(*model.batch).numpy()) for _ in range(STEPS)]
            found[rank] += [float(np.abs(p.numpy()).sum()) for p in model.parameters]
            del reducer
            world.end(rank)
        except BaseException as error:
            world.end(rank, error)
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    report = {
        kind.__name__: {str(b): losses(kind, b) for b in (None, "interpreter", "native")}
        for kind in (Perceptron, Convolutions, GPT)
    }
    report["ranks"] = on_two_ranks()
    imported = {name.partition(".")[0] for name in sys.modules.keys() - only_numpy.BEFORE}
    others = imported - set(sys.stdlib_module_names)
    report["imported"] = sorted(n for n in others if getattr(sys.modules.get(n), "__file__", None))
    print(json.dumps(report))
