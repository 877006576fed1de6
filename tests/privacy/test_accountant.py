"""Epsilon against dp-accounting, and against what is known in closed form."""

import math

import numpy as np
import pytest
from scipy.special import comb, logsumexp
from scipy.stats import norm

from minipaddle.privacy import PRVAccountant, RDPAccountant, get_noise_multiplier
from minipaddle.privacy.accountant import renyi

SETTINGS = [
    (0.01, 1.1, 1000, 1e-5),
    (256 / 60000, 1.1, 14062, 1e-5),
    (256 / 1437, 2.0, 224, 1e-4),
    (0.3, 13.35, 112, 1e-4),
    (1.0, 5.0, 10, 1e-5),
    (0.01, 0.6, 300, 1e-5),
]
"""(sample rate, noise, steps, delta)"""


def epsilon(kind, q, sigma, steps, delta):
    accountant = kind()
    accountant.step(noise_multiplier=sigma, sample_rate=q, steps=steps)
    return accountant.get_epsilon(delta)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), SETTINGS)
def test_within_a_hundredth_of_dp_accounting(q, sigma, steps, delta):
    dp = pytest.importorskip("dp_accounting", reason="a peer: tests/requirements-peers.txt")
    from dp_accounting import pld, rdp

    step = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    for ours, theirs in (
        (RDPAccountant, rdp.RdpAccountant()),
        (PRVAccountant, pld.PLDAccountant()),
    ):
        theirs.compose(dp.SelfComposedDpEvent(step, steps))
        expected = theirs.get_epsilon(delta)
        assert epsilon(ours, q, sigma, steps, delta) == pytest.approx(expected, rel=0.01)


def gaussian_delta(epsilon, mu):
    """The delta of the Gaussian mechanism of distance mu (Balle and Wang, 2018, theorem 8)."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("sigma", "steps"), [(5.0, 10), (3.0, 1), (40.0, 1000)])
def test_without_sampling_the_bound_is_the_gaussian_mechanisms(sigma, steps):
    bound = epsilon(PRVAccountant, 1.0, sigma, steps, 1e-5)
    mu = math.sqrt(steps) / sigma
    assert gaussian_delta(bound, mu) <= 1e-5 < gaussian_delta(bound * 0.99, mu)


@pytest.mark.parametrize("order", [2, 4, 32])
@pytest.mark.parametrize(("q", "sigma"), [(0.2, 1.5), (0.01, 0.4), (0.5, 20.0)])
def test_at_whole_orders_the_divergence_is_a_sum(order, q, sigma):
    """Mironov et al., section 3.3."""
    k = np.arange(order + 1)
    logs = np.log(comb(order, k)) + k * np.log(q) + (order - k) * np.log1p(-q)
    total = logsumexp(logs + (k * k - k) / (2 * sigma**2)) / (order - 1)
    assert renyi(q, sigma, order) == pytest.approx(total, rel=1e-8)


def test_between_whole_orders_the_divergence_rises():
    values = [renyi(0.1, 1.0, order) for order in (1.1, 1.5, 2, 2.5, 3)]
    assert values == sorted(values)
    assert values[1] > 0


def test_one_history_in_pieces():
    whole, pieces, mixed = RDPAccountant(), RDPAccountant(), PRVAccountant()
    whole.step(noise_multiplier=1.0, sample_rate=0.1, steps=30)
    for _ in range(30):
        pieces.step(noise_multiplier=1.0, sample_rate=0.1)
    assert whole.history == pieces.history
    for sigma in (1.0, 2.0):
        mixed.step(noise_multiplier=sigma, sample_rate=0.1, steps=30)
    both = [epsilon(PRVAccountant, 0.1, s, n, 1e-5) for s, n in ((1.0, 30), (1.0, 60))]
    assert both[0] < mixed.get_epsilon(1e-5) < both[1]


@pytest.mark.parametrize("kind", ["rdp", "prv"])
def test_the_least_noise(kind):
    noise = get_noise_multiplier(
        target_epsilon=3.0, target_delta=1e-4, sample_rate=0.1, steps=100, accountant=kind
    )
    ours = {"rdp": RDPAccountant, "prv": PRVAccountant}[kind]
    assert 2.95 < epsilon(ours, 0.1, noise, 100, 1e-4) <= 3.0


def test_limits():
    accountant = RDPAccountant()
    assert accountant.get_epsilon(1e-5) == 0
    with pytest.raises(ValueError, match="delta=2"):
        accountant.get_epsilon(2)
    for noise, rate in ((-1.0, 0.5), (1.0, 0.0), (1.0, 1.5)):
        with pytest.raises(ValueError, match="a rate in"):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
    accountant.step(noise_multiplier=0.0, sample_rate=0.5)
    assert accountant.get_epsilon(1e-5) == math.inf
    with pytest.raises(ValueError, match="no noise reaches"):
        get_noise_multiplier(
            target_epsilon=1e-9, target_delta=1e-9, sample_rate=1.0, steps=1000, accountant="rdp"
        )
    with pytest.raises(ValueError, match="'rdp' or 'prv'"):
        get_noise_multiplier(
            target_epsilon=1.0, target_delta=1e-5, sample_rate=0.1, steps=1, accountant="gdp"
        )
