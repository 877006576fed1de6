"""What a workload is, and the few names by which PyTorch differs from Paddle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

SEED = 1


class Target(NamedTuple):
    """What issue 6 asks for: our time over the best peer's; and who that was, with its time."""

    ratio: float
    peer: str
    seconds: float


@dataclass(frozen=True)
class Workload:
    """One thing to measure, written for Paddle's and PyTorch's names at once, and for JAX.

    `kind` says what a step is: "train" (forward, loss, backward, optimizer), "gradient" (forward,
    backward, and the gradients come out), "predict" (no gradient is wanted).
    """

    title: str
    target: Target
    batch: Callable[[], list[np.ndarray]]
    net: Callable
    """framework → a layer without its weights yet; or None, where nothing is learnt."""
    apply: Callable
    """framework → function (net, *batch) → the loss, or what is predicted."""
    jax: Callable
    """jax → function (weights by name, *batch) → the same; for "train" also the new buffers."""
    kind: str = "train"
    optimizer: tuple[str, float] = ("SGD", 0.01)
    tolerance: float = 2e-3
    """By how much, relatively, what comes out may differ between frameworks."""
    torch_compile: Callable | None = None
    """What `torch.compile` is given instead of `apply(torch)`, where it needs another spelling."""
    weights: Callable | None = None
    """Weights by name, where noise of the right size would not do."""
    by_hand: tuple[str, tuple] | None = None
    """A C file beside this one that does the step, and the shape of its result."""
    states: Callable | None = None
    """What a step of JAX is given after the batch and changes: its further results."""


def is_torch(framework) -> bool:
    return framework.__name__ == "torch"


def module(framework):
    """The base class of models."""
    return framework.nn.Module if is_torch(framework) else framework.nn.Layer


def classify(framework):
    """Cross entropy of the network's answer."""
    entropy = framework.nn.functional.cross_entropy
    return lambda net, x, y: entropy(net(x), y)


def jax_entropy(jax, logits, labels):
    """The mean over rows of log Σ exp(z) − z[label]."""
    logs = jax.nn.log_softmax(logits)
    return -jax.numpy.take_along_axis(logs, labels[:, None], 1).mean()


def images(count: int, channels: int, size: int) -> list[np.ndarray]:
    """Noise and labels: the speed of a step does not depend on what the pictures show."""
    rng = np.random.default_rng(SEED)
    pixels = rng.normal(size=(count, channels, size, size)).astype("float32")
    return [pixels, rng.integers(0, 10, count)]
