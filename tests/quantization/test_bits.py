"""Bits for each layer: what is measured, and what is chosen against all choices there are."""

from itertools import product

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.quantization.bits import choose_bits, sensitivity


def test_one_layer_is_rounded_at_a_time_and_comes_back():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2))
    weights = [net[k].weight.numpy() for k in (0, 2)]
    met = []

    def score(net):
        met.append([net[k].weight.numpy() for k in (0, 2)])
        return float(len(met))

    found = sensitivity(net, score, choices=(4, 2))
    assert found == {net[0]: {4: 1.0, 2: 2.0}, net[2]: {4: 3.0, 2: 4.0}}
    for k, bits, seen in zip((0, 0, 1, 1), (4, 2, 4, 2), met[1:], strict=True):
        top, high = abs(weights[k]).max(0), 2 ** (bits - 1) - 1
        rounded = np.round(weights[k] / top * high) * top / high
        np.testing.assert_allclose(seen[k], rounded, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(seen[1 - k], weights[1 - k])
    for k, weight in zip((0, 2), weights, strict=True):
        np.testing.assert_array_equal(net[k].weight.numpy(), weight)
    assert not net[0].weight.stop_gradient


def test_the_choice_is_the_best_where_rises_grow_with_every_bit():
    """Layers of one size whose rises are convex: there the greedy choice is the least sum."""
    rng = np.random.default_rng(0)
    choices = 8, 7, 6, 5
    for _ in range(20):
        rises = [dict(zip(choices, np.cumsum(np.sort(rng.random(4))), strict=True)) for _ in "abc"]
        for budget in (24, 21, 19, 15):
            fitting = [some for some in product(choices, repeat=3) if sum(some) <= budget]
            best = min(fitting, key=lambda some: sum(r[b] for r, b in zip(rises, some)))
            chosen = choose_bits(rises, [1, 1, 1], budget)
            cost = sum(r[b] for r, b in zip(rises, chosen, strict=True))
            assert cost == pytest.approx(sum(r[b] for r, b in zip(rises, best, strict=True)))


def test_a_budget_that_nothing_fits_is_refused():
    with pytest.raises(ValueError, match=r"budget of 39 bits.*\n.*at least 40"):
        choose_bits([{8: 0.0, 4: 1.0}], [10], 39)


def test_a_network_on_mixed_bits_is_measured():
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    x = paddle.rand([5, 1, 4, 4])
    wanted = net(x)
    found = sensitivity(net, lambda net: ((net(x) - wanted) ** 2).mean().item())
    for own in found.values():
        assert 0 <= own[8] < own[4] < own[2]
