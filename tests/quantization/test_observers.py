"""Observers, against NumPy on all that they saw."""

import numpy as np
import pytest
from scipy.stats import entropy

import minipaddle as paddle
from minipaddle import nn
from minipaddle.quantization import observers as o
from minipaddle.quantization.thresholds import kl_threshold, mse_threshold

rng = np.random.default_rng(0)
BATCHES = [rng.standard_normal((50, 40)).astype("float32") * k for k in (1.0, 3.0, 2.0)]
TOPS = [np.abs(x).max() for x in BATCHES]


def seen(factory, batches=BATCHES, layer=None):
    observer = factory._instance(layer)
    for x in batches:
        y = observer(paddle.to_tensor(x))
        np.testing.assert_array_equal(y.numpy(), x)
    return observer


def averaged(rate):
    weights = [rate**k for k in (2, 1, 0)]
    return np.average(TOPS, weights=weights)


@pytest.mark.parametrize(
    ("factory", "wanted"),
    [
        (o.AbsmaxObserver(), max(TOPS)),
        (o.AVGObserver(), np.mean(TOPS)),
        (o.MovingAverageAbsmaxObserver(moving_rate=0.5), averaged(0.5)),
        (o.HistObserver(percent=1.0), max(TOPS)),
        (o.HistObserver(percent=0.9), np.quantile(np.abs(BATCHES), 0.9)),
    ],
)
def test_the_scale_is_what_the_observer_says(factory, wanted):
    scale = seen(factory).scales().item()
    assert scale == pytest.approx(wanted, rel=0.02 if isinstance(factory, o.HistObserver) else 1e-6)


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_a_zero_point_uses_the_whole_range(low):
    x = rng.uniform(low, 3.0, 1000).astype("float32")
    observer = seen(o.MinMaxObserver(), [x])
    step, zero = observer.scales().item() / 127, observer.zero_points().item()
    assert step == pytest.approx((x.max() - min(low, x.min())) / 255, rel=0.01)
    q = np.rint(x / step) + zero
    assert q.min() == pytest.approx(-128, abs=1)
    assert q.max() == pytest.approx(127, abs=1)


def test_outputs_and_groups_have_scales_of_their_own():
    matrix, image = nn.Linear(6, 4), nn.Conv2D(2, 3, 2)
    w, k = matrix.weight.numpy(), image.weight.numpy()
    found = seen(o.AbsMaxChannelWiseWeightObserver(), [w], matrix)
    np.testing.assert_array_equal(found.scales().numpy(), np.abs(w).max(0))
    found = seen(o.AbsMaxChannelWiseWeightObserver(), [k], image)
    np.testing.assert_array_equal(found.scales().numpy(), np.abs(k).max((1, 2, 3)))
    found = seen(o.GroupWiseWeightObserver(4, group_size=3), [w], matrix)
    np.testing.assert_array_equal(found.scales().numpy(), np.abs(w).reshape(2, 3, 4).max(1))


def test_observers_look_in_programs_too():
    observer = o.HistObserver(percent=0.9)._instance(None)
    look = paddle.jit.to_static(lambda x: observer(x), backend="interpreter")
    for x in BATCHES:
        look(paddle.to_tensor(x))
    assert observer.scales().item() == seen(o.HistObserver(percent=0.9)).scales().item()


@pytest.mark.parametrize("factory", [o.AbsmaxObserver(), o.KLObserver(), o.AVGObserver()])
def test_nothing_seen_is_no_scale(factory):
    assert factory._instance(None).scales() is None
    assert 0 < seen(factory, [np.zeros(3, "float32")]).scales().item() < 1e-6


def apart(counts, size, levels):
    """The divergence for one threshold, by SciPy, level by level."""
    p, q = counts[:size].astype(float), np.zeros(size)
    level = np.floor(np.arange(size) * levels / size)
    for k in range(levels):
        own = (level == k) & (p > 0)
        q[own] = p[own].mean() if own.any() else 0
    p[-1] += counts[size:].sum()
    return entropy(p, q)


def test_the_divergence_is_the_least():
    x = np.abs(rng.standard_t(3, 5_000))
    counts, _ = np.histogram(x, 100, (0, x.max()))
    found = [apart(counts, size, 16) for size in range(16, 101)]
    assert kl_threshold(counts, 16) == 16 + np.argmin(found) < 100, "outliers are clipped"


def test_the_least_square_is_the_least():
    x = np.abs(rng.laplace(size=20_000))
    counts, edges = np.histogram(x, 128, (0, x.max()))
    middle = (edges[1:] + edges[:-1]) / 2

    def error(size):
        step = edges[size] / 7
        return (counts * (middle - np.minimum(np.rint(middle / step), 7) * step) ** 2).sum()

    assert mse_threshold(counts, 8) == 1 + np.argmin([error(size) for size in range(1, 129)])


def test_zeros_do_not_draw_the_threshold_to_them():
    """Half of what a ReLU gives is 0, which costs nothing at any scale."""
    x = np.maximum(rng.standard_normal(20_000), 0).astype("float32")
    padded = np.concatenate([x, np.zeros(200_000, "float32")])
    alone, among = (seen(o.KLObserver(), [each]).scales().item() for each in (x, padded))
    assert among == pytest.approx(alone, rel=0.1)
    assert among > 0.7 * x.max()
