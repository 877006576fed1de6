"""Federated learning of digits in one process: `./run bench federated`.

Ten clients, three epochs a round, in batches of 16 at a rate of 0.1; a perceptron with 32 hidden
values. "Alike": clients have rows drawn at random; "shards": each has two of twenty pieces of the
rows sorted by label. Accuracies are of 360 digits held out, means over five seeds, of splits, first
weights and orders; one accuracy of 0.93 has a standard deviation of 0.013.

Then attacks, which say whether a network was trained on a digit, on the networks of
`tests/privacy/descent.py`: the AUC of canaries, their exposure, the AUC of a likelihood ratio.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import minipaddle as paddle
from minipaddle import nn, privacy

from ..privacy import descent

CLIENTS, ROUNDS, SHOWN, SEEDS = 10, 15, (1, 3, 5, 10, 15), range(5)


class Leaver(privacy.FederatedClient):
    """A client that leaves in a fifth of the rounds."""

    def fit(self, weights, config):
        if np.random.default_rng([self.seed, config["server-round"], 1]).random() < 0.2:
            raise ConnectionError("gone for this round")
        return super().fit(weights, config)


ROWS = {
    "FedAvg, alike": (privacy.split_evenly, privacy.FedAvg, privacy.FederatedClient),
    "FedAvg, shards": (privacy.split_by_label, privacy.FedAvg, privacy.FederatedClient),
    "FedProx, mu = 1, shards": (privacy.split_by_label, privacy.FedProx, privacy.FederatedClient),
    "FedAdam, eta = 0.03, shards": (
        privacy.split_by_label, lambda: privacy.FedAdam(0.03), privacy.FederatedClient,
    ),
    "SCAFFOLD, shards": (privacy.split_by_label, privacy.SCAFFOLD, privacy.FederatedClient),
    "SCAFFOLD, a fifth leaves": (privacy.split_by_label, privacy.SCAFFOLD, Leaver),
}  # fmt: skip


def digits(seed: int):
    """Images (n, 64) and labels, of which 360 are held out."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    x, y = (x[order] / 16).astype("float32"), y[order]
    return x[:1437], y[:1437], x[1437:], y[1437:]


class Learner:
    """A trainer with its network, which all rows share."""

    def __init__(self):
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        sgd = paddle.optimizer.SGD(0.1, parameters=self.net.parameters())
        self.trainer = privacy.LocalTrainer(self.net, sgd, backend="native")

    def first_weights(self, seed: int) -> list:
        """Drawn anew."""
        paddle.seed(seed)
        net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        return [p.numpy() for p in net.parameters()]

    def accuracy(self, weights, x, y) -> float:
        """Of weights on digits."""
        self.trainer.load(weights)
        with paddle.no_grad():
            return float((self.net(paddle.to_tensor(x)).numpy().argmax(1) == y).mean())

    def curve(self, seed: int, split, strategy, kind) -> list[float]:
        """The accuracy after each round."""
        x, y, held, labels = digits(seed)
        clients = [
            kind(self.trainer, x[rows], y[rows], epochs=3, seed=100 * seed + k)
            for k, rows in enumerate(split(y, CLIENTS, seed=seed))
        ]
        rounds = privacy.simulate(clients, strategy(), ROUNDS, self.first_weights(seed))
        return [self.accuracy(each.weights, held, labels) for each in rounds]

    def joined(self, seed: int) -> float:
        """The accuracy after ten epochs on all data in one place."""
        x, y, held, labels = digits(seed)
        client = privacy.FederatedClient(self.trainer, x, y, epochs=10, seed=seed)
        return self.accuracy(client.fit(self.first_weights(seed), {})[0], held, labels)


def run(threads: int, arguments) -> None:
    """Print both tables."""
    learner, console = Learner(), Console()
    joined = np.mean([learner.joined(seed) for seed in SEEDS])
    table = Table(title=f"Accuracy after rounds; all data in one place, 10 epochs: {joined:.3f}")
    for name in ("", *map(str, SHOWN), "rounds to 0.9"):
        table.add_column(name, justify="right" if name else "left")
    for name, row in ROWS.items():
        curves = np.array([learner.curve(seed, *row) for seed in SEEDS])
        mean = curves.mean(axis=0)
        reached = [k + 1 for k, value in enumerate(mean) if value >= 0.9]
        shown = [f"{mean[number - 1]:.3f}" for number in SHOWN]
        table.add_row(name, *shown, str(reached[0]) if reached else f"> {ROUNDS}")
    console.print(table)
    console.print(attack_table())


def attack_table() -> Table:
    """What attacks find, of networks without training, without noise and with it."""
    x, y, held, labels = descent.digits()
    table = Table(title=f"Attacks on networks of {len(y)} digits; 0.95 intervals over five seeds")
    for name in ("", "accuracy", "canaries, AUC", "exposure in bits", "each sample, AUC"):
        table.add_column(name, justify="right" if name else "left")
    for train in (descent.untrained, descent.overfitted, descent.noisy):
        scores = train(x, y, 0)(paddle.to_tensor(held)).numpy()
        accuracy = (scores.argmax(1) == labels).mean()
        canaries = privacy.audit_canaries(train, x, y, descent.CLASSES)
        samples = privacy.audit_membership(train, x, y)
        estimates = [canaries.auc, canaries.exposure, samples]
        cells = [f"{e.mean:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in estimates]
        table.add_row(train.__name__, f"{accuracy:.3f}", *cells)
    table.caption = (
        f"Exposure without memory: {canaries.chance:.3f} bits. Noise of epsilon 0.76 at "
        f"delta = 1e-3 allows an AUC of {descent.MOST:.3f}."
    )
    return table
