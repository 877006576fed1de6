"""Federated learning: one step by hand, where strategies end, who leaves, digits in shards."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import minipaddle as paddle
from minipaddle import nn, privacy
from minipaddle.nn import functional as F
from minipaddle.privacy import FederatedClient

RATE = 0.1


def regression(backend="interpreter", rate=RATE):
    """A trainer of a line without offset, whose loss is half a mean of squares."""
    net = nn.Linear(2, 1, bias_attr=False)
    sgd = paddle.optimizer.SGD(rate, parameters=net.parameters())
    return privacy.LocalTrainer(net, sgd, lambda out, y: F.mse_loss(out, y) / 2, backend)


def rows(seed, slope, count=8):
    """Inputs (count, 2), and what a slope makes of them."""
    x = np.random.default_rng(seed).normal(size=(count, 2)).astype("float32")
    return x, x @ np.array(slope, "float32")


def gradient(w, x, y):
    """Of half the mean square of x @ w - y."""
    return x.T @ (x @ w - y) / len(x)


SLOPES = [[1.0], [0.0]], [[-2.0], [3.0]]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_steps_of_a_client_by_hand(backend):
    x, y = rows(0, SLOPES[0])
    client = FederatedClient(regression(backend), x, y, epochs=2, batch_size=8)
    start, control = np.ones((2, 1), "float32"), np.array([[0.5], [-1.0]], "float32")
    trained, count, metrics = client.fit(
        [start], {"server-round": 3, "proximal-mu": 0.7, "control": [control]}
    )
    w = start
    for _ in range(2):
        w = w - RATE * (gradient(w, x, y) + 0.7 * (w - start) + control)
    np.testing.assert_allclose(trained[0], w, rtol=1e-5)
    assert (count, metrics["steps"]) == (8, 2)
    own = (start - w) / (2 * RATE) - control
    np.testing.assert_allclose(client.control[0], own, rtol=1e-4)
    np.testing.assert_allclose(metrics["control"][0], own, rtol=1e-4)


def test_one_client_is_gradient_descent():
    x, y = rows(1, SLOPES[1])
    client = FederatedClient(regression(), x, y, batch_size=8)
    history = privacy.simulate([client], privacy.FedAvg(), 5, [np.zeros((2, 1), "float32")])
    w = np.zeros((2, 1))
    for _ in range(5):
        w = w - RATE * gradient(w, x, y)
    np.testing.assert_allclose(history[-1].weights[0], w, rtol=1e-4)


def distance_to_optimum(strategy, epochs=10, rounds=80):
    """Of two clients that disagree to the least squares of all their rows."""
    parts = [rows(2, SLOPES[0], 12), rows(3, SLOPES[1], 12)]
    trainer = regression("native", 0.1)
    clients = [FederatedClient(trainer, *part, epochs=epochs, batch_size=12) for part in parts]
    weights = privacy.simulate(clients, strategy, rounds, [np.zeros((2, 1), "float32")])[-1].weights
    x, y = (np.concatenate(both) for both in zip(*parts))
    return np.abs(weights[0] - np.linalg.lstsq(x, y)[0]).max()


def test_scaffold_ends_at_the_optimum_of_all_data_and_fedavg_does_not():
    assert distance_to_optimum(privacy.FedAvg()) > 0.02
    assert distance_to_optimum(privacy.SCAFFOLD()) < 1e-3


def test_a_pull_shortens_the_way_of_a_client():
    x, y = rows(4, SLOPES[1])
    start = [np.zeros((2, 1), "float32")]
    ways = []
    for mu in (0.0, 1.0, 5.0):
        client = FederatedClient(regression(), x, y, epochs=20)
        weights = privacy.simulate([client], privacy.FedProx(mu), 1, start)[0].weights
        ways.append(np.linalg.norm(weights[0]))
    assert ways[0] > 1.2 * ways[1] > 1.44 * ways[2]


def test_adam_on_the_server_by_its_formula():
    adam = privacy.FedAdam(eta=0.1, beta_1=0.8, beta_2=0.95, tau=0.01)
    weights, m, v, expected = [np.zeros(2, "float32")], 0.0, 0.0, np.zeros(2)
    for goal in ([1.0, -3.0], [2.0, 5.0]):
        change = np.array(goal) - expected
        m, v = 0.8 * m + 0.2 * change, 0.95 * v + 0.05 * change**2
        expected = expected + 0.1 * m / (np.sqrt(v) + 0.01)
        weights = adam.join_results(weights, [([np.array(goal, "float32")], 3, {})])
    np.testing.assert_allclose(weights[0], expected, rtol=1e-5)
    assert weights[0].dtype == np.float32


class Leaver(FederatedClient):
    """Leaves in the second round."""

    def fit(self, weights, config):
        if config["server-round"] == 1:
            raise ConnectionError("gone")
        return super().fit(weights, config)


@pytest.mark.parametrize("strategy", [privacy.FedAvg, privacy.FedAdam, privacy.SCAFFOLD])
def test_a_client_that_leaves_takes_its_share_and_no_more(strategy):
    trainer = regression()
    parts = [rows(k, SLOPES[k % 2]) for k in range(3)]
    start = [np.zeros((2, 1), "float32")]
    clients = [
        (Leaver if k == 2 else FederatedClient)(trainer, *part) for k, part in enumerate(parts)
    ]
    history = privacy.simulate(clients, strategy(), 3, start)
    assert [[result is not None for result in each.results] for each in history] == [
        [True, True, True], [True, True, False], [True, True, True],
    ]  # fmt: skip
    if strategy is privacy.FedAvg:
        stayed = [FederatedClient(trainer, *part) for part in parts[:2]]
        config = privacy.FedAvg().configure(1, [])
        means = [client.fit(history[0].weights, config)[0][0] for client in stayed]
        np.testing.assert_allclose(history[1].weights[0], np.mean(means, axis=0), rtol=1e-6)
    assert np.isfinite(history[2].weights[0]).all()


def test_a_round_without_clients_changes_nothing():
    client = Leaver(regression(), *rows(0, SLOPES[0]))
    for strategy in (privacy.FedAvg(), privacy.FedAdam(), privacy.SCAFFOLD()):
        first, second = privacy.simulate([client], strategy, 2)
        assert (first.weights[0] == second.weights[0]).all()


def test_buffers_travel_and_frozen_weights_stay_out_of_steps():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3), nn.Linear(3, 2))
    net[0].weight.stop_gradient = True
    sgd = paddle.optimizer.SGD(RATE, parameters=net.parameters())
    trainer = privacy.LocalTrainer(net, sgd, backend="interpreter")
    x = rows(0, SLOPES[0], 16)[0]
    before = trainer.weights
    after = FederatedClient(trainer, x, np.arange(16) % 2).fit(before, {})[0]
    assert len(before) == len(net.state_dict()) == 8
    changed = {a.shape: not np.array_equal(a, b) for a, b in zip(after, before)}
    assert not changed[(2, 3)]
    assert changed[(3, 2)]
    assert not np.array_equal(after[-2], before[-2])  # the running mean


def test_shards_have_few_labels():
    labels = np.random.default_rng(0).integers(0, 10, 1000)
    parts = privacy.split_by_label(labels, 10)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    assert np.mean([len(set(labels[part])) for part in parts]) <= 4
    even = privacy.split_evenly(labels, 10)
    assert sorted(np.concatenate(even)) == list(range(1000))
    assert min(len(set(labels[part])) for part in even) >= 9


def test_errors_name_what_was_given():
    trainer = regression()
    with pytest.raises(ValueError, match="shapes"):
        trainer.load([np.zeros(3, "float32")])
    with pytest.raises(ValueError, match="3 inputs, 0 labels"):
        FederatedClient(trainer, np.zeros((3, 2)), [])
    with pytest.raises(ValueError, match="4 clients with 2 shards"):
        privacy.split_by_label([0, 1], 4)


# ---- digits ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    """Images (n, 64) and labels: 1,437 to train, 360 held out."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = (x[order] / 16).astype("float32"), y[order]
    return x[:1437], y[:1437], x[1437:], y[1437:]


def accuracy_after(rounds, digits, parts, strategy):
    """Of a perceptron on held-out digits."""
    x, y, held, labels = digits
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    trainer = privacy.LocalTrainer(net, sgd, backend="native")
    clients = [
        FederatedClient(trainer, x[part], y[part], epochs=3, seed=k) for k, part in enumerate(parts)
    ]
    trainer.load(privacy.simulate(clients, strategy, rounds)[-1].weights)
    return float((net(paddle.to_tensor(held)).numpy().argmax(1) == labels).mean())


def test_digits_in_shards(digits):
    shards = privacy.split_by_label(digits[1], 10)
    alike = accuracy_after(10, digits, privacy.split_evenly(digits[1], 10), privacy.FedAvg())
    drifting = accuracy_after(10, digits, shards, privacy.FedAvg())
    corrected = accuracy_after(10, digits, shards, privacy.SCAFFOLD())
    assert alike > 0.94
    assert drifting < corrected - 0.03 < alike


# ---- masks -----------------------------------------------------------------------------------

NAMES = ["anna", "bea", "carl", "dora"]


def secrets_of(names):
    """A number for each pair, as each of the two knows it."""
    pairs = {frozenset((a, b)): hash((k, j)) % 2**32 for k, a in enumerate(names)
             for j, b in enumerate(names) if k < j}  # fmt: skip
    return {a: {b: pairs[frozenset((a, b))] for b in names if b != a} for a in names}


def test_masks_cancel_in_the_sum():
    chance, secrets = np.random.default_rng(0), secrets_of(NAMES)
    arrays = {name: chance.normal(size=(50, 4)) for name in NAMES}
    sent = [privacy.mask_array(arrays[name], name, secrets[name], 5) for name in NAMES]
    total = sum(arrays.values())
    np.testing.assert_allclose(privacy.open_sum(sent), total, atol=4 / 2**16)


def test_a_client_that_leaves_breaks_the_sum_until_its_partners_help():
    secrets = secrets_of(NAMES)
    stayed = NAMES[:3]
    sent = [privacy.mask_array(np.full(100, 0.25), name, secrets[name], 0) for name in stayed]
    assert np.abs(privacy.open_sum(sent) - 0.75).mean() > 100
    left = [privacy.draw_mask(name, {"dora": secrets[name]["dora"]}, 0, (100,)) for name in stayed]
    np.testing.assert_array_equal(privacy.open_sum(sent, left), np.full(100, 0.75))


def test_what_is_sent_looks_like_noise():
    sent = privacy.mask_array(np.full(64_000, 0.25), 0, {1: 7}, 0)
    counts = np.bincount(sent >> 28, minlength=16)
    assert ((counts - 4000) ** 2 / 4000).sum() < 37.7  # χ² of 15 degrees of freedom, 0.999
    again = privacy.mask_array(np.full(64_000, 0.25), 0, {1: 7}, 1)
    assert (sent != again).mean() > 0.99


@pytest.mark.parametrize("large", [2.0**14, np.inf, np.nan])
def test_numbers_too_large_are_refused(large):
    with pytest.raises(ValueError, match="numbers below 16384"):
        privacy.mask_array(np.array([large]), 0, {1: 7}, 0)
