"""A model that tells fast kernels from slow ones before they are compiled.

It is a small network, trained with MiniPaddle on the trials so far. It does not say how many
microseconds a kernel takes, only which of two is faster: all that the search asks. Source of the
loss: Burges and others, Learning to Rank using Gradient Descent (2005).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from ..eager.modes import enable_grad
from ..engine.core.slots import slot
from ..engine.eager.tensor import Tensor
from ..nn import Linear, ReLU, Sequential
from ..nn.functional import softplus
from ..optimizer import Adam
from ..tensor.creation import to_tensor
from ..tensor.generator import get_rng_state, seed, set_rng_state

HIDDEN, STEPS, RATE = 32, 120, 0.02
MOST = 160
"""Trials the model learns from: the newest."""


class Sample(NamedTuple):
    """A trial, as the model sees it: the kernel, the choices, the seconds."""

    kernel: str
    facts: tuple[float, ...]  # the kernel's features: logarithms of its sizes
    choices: dict
    seconds: float = math.nan


class SampleFeatures:
    """Numbers for samples: 1 for each choice that was made, the logarithm of those that are sizes,
    and the facts of the kernel. What the trials did not show has no column."""

    def __init__(self, samples: list[Sample]):
        pairs = {(name, x) for s in samples for name, x in s.choices.items()}
        self.pairs = sorted(pairs, key=str)
        self.sizes = sorted({name for name, x in pairs if is_size(x)})

    def __call__(self, samples: list[Sample]) -> list[list[float]]:
        return [self.row(s) for s in samples]

    def row(self, s: Sample) -> list[float]:
        choices = [float(s.choices.get(name, self) == x) for name, x in self.pairs]
        sizes = [s.choices.get(name, 0) for name in self.sizes]
        logs = [math.log2(1 + x) / 8 if is_size(x) else 0.0 for x in sizes]
        return [*choices, *logs, *s.facts]


def is_size(x) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


@slot("tuning.ranking_loss")
def ranking_loss(scores: Tensor, slower: Tensor) -> Tensor:
    """The mean of log(1 + e^(s_j − s_i)) over all pairs where i is the faster one.

    scores [n]; slower [n, n] is 1 where j takes longer than i, both of the same kernel, else 0.
    """
    apart = scores.unsqueeze(0) - scores.unsqueeze(1)
    return (softplus(apart) * slower).sum() / slower.sum()


def slower_pairs(samples: list[Sample]) -> list[list[float]]:
    """For each pair (i, j): 1 if j is the slower one of the same kernel, by more than noise."""
    return [
        [float(a.kernel == b.kernel and b.seconds > 1.02 * a.seconds) for b in samples]
        for a in samples
    ]


@slot("tuning.cost_model")
def cost_model(samples: list[Sample]) -> Callable[[list[Sample]], list[float]]:
    """A function that scores samples: of two, the one with the higher score should be faster.

    Without two trials to compare, all scores are 0.
    """
    samples = samples[-MOST:]
    slower = slower_pairs(samples)
    if not any(map(any, slower)):
        return lambda asked: [0.0] * len(asked)
    features = SampleFeatures(samples)
    x, slower = to_tensor(features(samples)), to_tensor(slower)
    random_state = get_rng_state()
    try:
        seed(0)
        net = Sequential(Linear(x.shape[1], HIDDEN), ReLU(), Linear(HIDDEN, 1))
    finally:
        set_rng_state(random_state)  # the user's random numbers are what they would have been
    optimizer = Adam(RATE, parameters=net.parameters(), weight_decay=1e-4)
    with enable_grad():  # who tunes what runs at inference has switched it off
        for _ in range(STEPS):
            ranking_loss(net(x).squeeze(-1), slower).backward()
            optimizer.step()
            optimizer.clear_grad()
    return lambda asked: net(to_tensor(features(asked))).squeeze(-1).tolist() if asked else []
