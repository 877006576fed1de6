"""The privacy that training steps have used: the epsilon of (epsilon, delta) differential privacy.

A step draws each sample with probability q and adds noise of sigma times the largest influence of
one sample. Two accountants bound the epsilon of many such steps, when one sample is added or
removed. `RDPAccountant` adds up Rényi divergences and holds for any number of steps in no time.
`PRVAccountant` composes the distribution of the privacy loss itself, by FFT: some 10 % tighter.

Sources: Mironov, Talwar, Zhang, "Rényi Differential Privacy of the Sampled Gaussian Mechanism",
2019 (the divergence, and that this direction is the larger one); Balle et al., "Hypothesis Testing
Interpretations and Rényi Differential Privacy", 2020, for the conversion; Gopi, Lee, Wutschitz,
"Numerical Composition of Differential Privacy", 2021.
"""

from __future__ import annotations

import math
from functools import cache

from ..core.prelude import NUMPY as np
from ..core.prelude import value_error

ORDERS = (*(1 + k / 10 for k in range(1, 100)), *range(11, 65), 80, 96, 128, 192, 256, 384, 512)
"""The orders of Rényi's divergence, of which the best decides."""


class Accountant:
    """Counts steps; a subclass bounds their epsilon.

    `history` holds [noise multiplier, sample rate, number of steps]. Source: Opacus' IAccountant.
    """

    def __init__(self):
        self.history: list[list] = []

    def step(self, *, noise_multiplier: float, sample_rate: float, steps: int = 1) -> None:
        """Count steps. Raises ValueError for negative noise or a rate outside (0, 1].

        >>> accountant = paddle.privacy.RDPAccountant()
        >>> accountant.step(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
        >>> round(accountant.get_epsilon(1e-5), 2)
        1.71
        """
        if not noise_multiplier >= 0 or not 0 < sample_rate <= 1:
            raise value_error(
                f"noise_multiplier={noise_multiplier}, sample_rate={sample_rate}",
                expected="noise of 0 or more and a rate in (0, 1]",
            )
        if self.history and self.history[-1][:2] == [noise_multiplier, sample_rate]:
            self.history[-1][2] += steps
        else:
            self.history.append([noise_multiplier, sample_rate, steps])

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of all steps for this delta: 0 before the first one, infinite without noise.

        Raises ValueError if delta is not between 0 and 1.

        >>> paddle.privacy.PRVAccountant().get_epsilon(1e-5)
        0.0
        """
        if not 0 < delta < 1:
            raise value_error(f"delta={delta}", expected="a number between 0 and 1, as 1 / samples")
        if any(noise == 0 for noise, *_ in self.history):
            return math.inf
        return self.compute_bound(delta) if self.history else 0.0

    def compute_bound(self, delta: float) -> float:
        """An upper bound of epsilon for a history that is not empty."""
        raise NotImplementedError("an accountant defines compute_bound(delta)")


class RDPAccountant(Accountant):
    """Adds Rényi divergences, at fractional orders too."""

    def compute_bound(self, delta):
        total = sum(n * np.array([renyi(q, s, a) for a in ORDERS]) for s, q, n in self.history)
        return max(0.0, min(map(lambda a, r: convert(a, r, delta), ORDERS, total.tolist())))


class PRVAccountant(Accountant):
    """Composes the distribution of the privacy loss by FFT.

    The bound is at most 0.2 % of epsilon above the true one, for a delta that is 0.1 % smaller.
    """

    def compute_bound(self, delta):
        rough = RDPAccountant()
        rough.history = self.history
        bound = rough.get_epsilon(delta)
        for _ in range(3):  # Rényi's bound of few steps is loose, and its errors are too large then
            error = max(0.002 * bound, 1e-6)
            bound = self.compose(rough, delta, error)
            if error <= 0.003 * bound:
                break
        return bound

    def compose(self, rough: Accountant, delta: float, error: float) -> float:
        """An upper bound that is at most 2 `error` too large; `rough` bounds the grid."""
        spare = delta / 1000
        steps = sum(n for *_, n in self.history)
        width = error / math.sqrt(steps / 2 * math.log(12 / spare))  # Gopi et al., theorem 1.5
        half = max(rough.get_epsilon(spare / 8), *(tail(s, q, spare / 8 / steps) for s, q, _ in
                                                   self.history)) + 3 * error  # fmt: skip
        bins = 1 << math.ceil(math.log2(2 * half / width))
        grid = (np.arange(bins) - bins // 2) * width
        return error + max(
            self.epsilon_of(grid, width, delta - spare, add) for add in (False, True)
        )

    def epsilon_of(self, grid, width: float, delta: float, add: bool) -> float:
        """The epsilon where one sample is added, or removed."""
        log_spectrum, shift, bins = 0.0, 0.0, len(grid)
        for sigma, q, n in self.history:
            mass = np.diff(loss_cdf(np.append(grid, grid[-1] + width) - width / 2, sigma, q, add))
            mass = mass / mass.sum()
            shift += n * (loss_mean(sigma, q, add) - float(mass @ grid))
            log_spectrum = log_spectrum + n * np.log(np.fft.rfft(np.fft.ifftshift(mass)) + 1e-300)
        mass = np.fft.fftshift(np.fft.irfft(np.exp(log_spectrum), bins)).clip(0)
        losses = grid + shift
        # delta(e) = sum of mass · (1 - exp(e - loss)) over losses above e; the sums come from above
        above = np.cumsum(mass[::-1])[::-1]
        scaled = np.cumsum((mass * np.exp(-losses))[::-1])[::-1]
        deltas = above - np.exp(losses) * scaled
        first = int(np.argmax((deltas <= delta) & (losses >= 0)))
        if losses[first] < 0 or deltas[first] > delta:
            return math.inf
        return float(losses[first])


@cache
def renyi(q: float, sigma: float, order: float) -> float:
    """The Rényi divergence of one step of the sampled Gaussian, (1-q) N(0, sigma²) + q N(1, sigma²)
    from N(0, sigma²), as an integral.

    >>> from minipaddle.privacy.accountant import renyi
    >>> round(renyi(1.0, 2.0, 8), 9)  # order / (2 sigma²)
    1.0
    """
    step = min(sigma, sigma**2) / 10  # sums over a smooth, falling function are its integral
    x = np.arange(-12 * sigma, order + 12 * sigma, step)
    shift = (2 * x - 1) / (2 * sigma**2)
    ratio = np.logaddexp(math.log1p(-q), math.log(q) + shift) if q < 1 else shift
    logs = order * ratio - (x / sigma) ** 2 / 2
    density = step / (sigma * math.sqrt(2 * math.pi))
    return (float(np.special.logsumexp(logs)) + math.log(density)) / (order - 1)


def convert(order: float, divergence: float, delta: float) -> float:
    """The epsilon that a Rényi divergence gives (Balle et al., theorem 21)."""
    rest = (math.log(delta) + math.log(order)) / (order - 1)
    return divergence + math.log1p(-1 / order) - rest


def loss_cdf(losses, sigma: float, q: float, add: bool):
    """Probability that the privacy loss of one step is at most each of `losses`."""
    if add:  # minus the loss, under the distribution without the sample
        return 1 - np.special.ndtr(place_of_loss(-losses, sigma, q) / sigma)
    x = place_of_loss(losses, sigma, q)
    return (1 - q) * np.special.ndtr(x / sigma) + q * np.special.ndtr((x - 1) / sigma)


def place_of_loss(losses, sigma: float, q: float):
    """The result of a step at which log((1-q) + q exp((2x-1) / 2 sigma²)) is each of `losses`."""
    odds = np.expm1(losses) / q + 1
    logs = np.log(np.where(odds > 0, odds, 1.0))
    return np.where(odds > 0, sigma**2 * logs + 0.5, -math.inf)


def loss_mean(sigma: float, q: float, add: bool) -> float:
    """The mean of the privacy loss of one step."""
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 400_001)
    density = np.exp(-((x / sigma) ** 2) / 2)
    loss = np.log1p(q * np.expm1((2 * x - 1) / (2 * sigma**2)))
    if not add:
        density = (1 - q) * density + q * np.exp(-(((x - 1) / sigma) ** 2) / 2)
    mean = float((density * loss).sum() / density.sum())
    return -mean if add else mean


def tail(sigma: float, q: float, probability: float) -> float:
    """A loss that one step exceeds, up or down, with at most this probability."""
    x = 1 - sigma * float(np.special.ndtri(probability))
    high = (2 * x - 1) / (2 * sigma**2)
    return max(
        math.log1p(q * math.expm1(high)) if high < 500 else high, -math.log1p(-min(q, 1 - 1e-9))
    )


ACCOUNTANTS = {"rdp": RDPAccountant, "prv": PRVAccountant}


def make_accountant(name: str) -> Accountant:
    """A new accountant, "rdp" or "prv"."""
    if name not in ACCOUNTANTS:
        raise value_error(f"accountant={name!r}", expected=" or ".join(map(repr, ACCOUNTANTS)))
    return ACCOUNTANTS[name]()


def get_noise_multiplier(
    *, target_epsilon: float, target_delta: float, sample_rate: float, steps: int,
    accountant: str = "prv",
) -> float:  # fmt: skip
    """The least noise, to 0.1 %, with which `steps` steps stay within epsilon.

    Raises ValueError if no noise below 10,000 is enough. Source: Opacus' function of this name.

    >>> paddle.privacy.get_noise_multiplier(
    ...     target_epsilon=3.0, target_delta=1e-4, sample_rate=0.1, steps=100, accountant="rdp"
    ... ) > 1
    True
    """

    def epsilon(noise: float) -> float:
        trial = make_accountant(accountant)
        trial.step(noise_multiplier=noise, sample_rate=sample_rate, steps=steps)
        return trial.get_epsilon(target_delta)

    high = 1.0
    if accountant == "prv":  # its noise is a little less than that of the fast one
        high = get_noise_multiplier(
            target_epsilon=target_epsilon, target_delta=target_delta,
            sample_rate=sample_rate, steps=steps, accountant="rdp",
        )  # fmt: skip
    while epsilon(high) > target_epsilon:
        high *= 2
        if high > 1e4:
            raise value_error(
                f"no noise reaches epsilon {target_epsilon} at delta {target_delta}",
                expected="a larger epsilon, fewer steps or a smaller sample rate",
            )
    low = high / 2 if accountant == "prv" or high > 1 else 0.1
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon(middle) > target_epsilon else (low, middle)
    return high
