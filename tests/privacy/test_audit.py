"""Attacks on trained networks: an untrained one gives nothing away, one that knows its data by
heart does, and one with noise does not.
"""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import minipaddle as paddle
from minipaddle import privacy
from minipaddle.nn import functional as F

from .descent import CLASSES, MOST, digits, noisy, overfitted, perceptron, untrained


@pytest.fixture(scope="module", name="digits")
def all_digits():
    """ROWS images (n, 64) and their labels, and others."""
    return digits()


@pytest.fixture(scope="module")
def data():
    """What networks are trained on, or on a part of it."""
    return digits()[:2]


# ---- the parts ---------------------------------------------------------------------------------


def test_the_area_under_the_curve_is_sklearns():
    chance = np.random.default_rng(0)
    members, others = chance.integers(3, 12, 50), chance.integers(0, 10, 70)
    labels = np.r_[np.ones(50), np.zeros(70)]
    expected = roc_auc_score(labels, np.r_[members, others])
    assert privacy.auc_of(members, others) == pytest.approx(expected, abs=1e-12)


def test_nineteen_of_twenty_intervals_hold_the_mean():
    chance = np.random.default_rng(0)
    holds = [privacy.estimate(chance.normal(3.0, 2.0, 5)).contains(3.0) for _ in range(2000)]
    assert np.mean(holds) == pytest.approx(0.95, abs=0.015)
    with pytest.raises(ValueError, match="an interval of 1 repetitions"):
        privacy.estimate([1.0])


def test_confidence_by_softmax(data):
    x, y = data
    net = perceptron(0)
    p = F.softmax(net(paddle.to_tensor(x)).cast("float64")).numpy()[np.arange(len(y)), y]
    np.testing.assert_allclose(privacy.confidences(net, x, y), np.log(p / (1 - p)), rtol=1e-5)


def test_likelihood_ratios_of_known_densities():
    chance = np.random.default_rng(0)
    inside = chance.random((400, 6)) < 0.5
    scores = chance.normal(np.where(inside, 1.0, -1.0), 0.5)
    ratios = privacy.likelihood_ratios(scores, inside)
    exact = ((scores + 1) ** 2 - (scores - 1) ** 2) / (2 * 0.25)
    np.testing.assert_allclose(ratios, exact, atol=3.0)
    assert np.corrcoef(ratios.ravel(), exact.ravel())[0, 1] > 0.999


def test_scores_without_memory_are_a_guess():
    chance, aucs = np.random.default_rng(0), []
    for _ in range(200):
        inside = chance.random((8, 40)) < 0.5
        ratios = privacy.likelihood_ratios(chance.normal(size=(8, 40)), inside)
        aucs.append(np.mean([privacy.auc_of(r[k], r[~k]) for r, k in zip(ratios, inside)]))
    assert privacy.estimate(aucs).contains(0.5)
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.01)


def test_few_data_and_few_models_are_refused(data):
    with pytest.raises(ValueError, match="250 canaries of 400 rows"):
        privacy.audit_canaries(untrained, *data, CLASSES, canaries=250)
    with pytest.raises(ValueError, match="models=3"):
        privacy.audit_membership(untrained, *data, models=3)


# ---- the attacks -------------------------------------------------------------------------------


@pytest.mark.parametrize(("train", "least"), [(overfitted, 0.93), (noisy, 0.55)])
def test_both_networks_learn(digits, train, least):
    x, y, held, labels = digits
    scores = train(x, y, 0)(paddle.to_tensor(held)).numpy()
    assert (scores.argmax(1) == labels).mean() > least  # a guess is 0.1


def test_the_control_gives_nothing_away(data):
    audit = privacy.audit_canaries(untrained, *data, CLASSES)
    assert audit.auc.contains(0.5)
    assert audit.exposure.contains(audit.chance)
    assert privacy.audit_membership(untrained, *data, models=8).contains(0.5)


def test_an_overfitted_network_is_found_out(data):
    audit = privacy.audit_canaries(overfitted, *data, CLASSES)
    assert audit.auc.low > 0.8
    assert audit.exposure.low > audit.chance + 1
    assert privacy.audit_membership(overfitted, *data, models=8, seeds=range(3)).low > 0.65


def test_twenty_canaries_show_nothing_through_noise(data):
    audit = privacy.audit_canaries(noisy, *data, CLASSES)
    assert audit.auc.contains(0.5)
    assert audit.exposure.contains(audit.chance)


def test_strong_attacks_find_a_trace_through_noise_and_no_more_than_it_allows(data):
    """Epsilon is not zero: with enough networks or canaries a little is significant."""
    audit = privacy.audit_canaries(noisy, *data, CLASSES, canaries=100, seeds=range(20))
    assert 0.5 < audit.auc.low < audit.auc.high < MOST
    members = privacy.audit_membership(noisy, *data, models=8)
    assert 0.49 < members.low < members.high < 0.54
