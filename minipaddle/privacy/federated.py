"""Federated learning: data stay with clients, weights travel, a strategy joins them.

A client has `fit(weights, config)` and returns (weights, count of samples, metrics): lists of NumPy
arrays, a number, a dict. That is Flower's interface, too (`flower.py`). A strategy says what the
server sends beside the weights, and what it does with the mean of the clients' changes.

Sources: McMahan et al., "Communication-efficient learning of deep networks from decentralized
data" (2017), for FedAvg and label shards; Li et al., "Federated optimization in heterogeneous
networks" (2020), for FedProx; Reddi et al., "Adaptive federated optimization" (2021), for FedAdam;
Karimireddy et al., "SCAFFOLD" (2020).
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ..eager.modes import no_grad
from ..engine.core.errors import value_error
from ..engine.eager.backward import grad
from ..engine.eager.device import NUMPY
from ..jit.decorator import to_static
from ..nn.functional.classification import cross_entropy
from ..tensor.creation import to_tensor


class LocalTrainer:
    """Steps of a module on a client's data. Clients that train in turn may share one.

    module: a Layer; its parameters and buffers are what travels
    optimizer: makes a step of its parameters, best without a state of its own, which all clients
        would share; for SCAFFOLD it is an SGD
    loss: a function of (outputs, labels), a mean over the batch
    backend: that of `to_static`, for the step

    The gradient of a step is g + mu · (w - w₀) + drift: `proximal` of the client's config is mu, w₀
    are the server's weights, drift is the difference of SCAFFOLD's controls.

    >>> net = paddle.nn.Linear(2, 2)
    >>> sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    >>> trainer = paddle.privacy.LocalTrainer(net, sgd)
    >>> [array.shape for array in trainer.weights]
    [(2, 2), (2,)]
    """

    def __init__(self, module, optimizer, loss=cross_entropy, backend=None):
        self.module, self.optimizer, self.loss = module, optimizer, loss
        held = {id(tensor): tensor for tensor in module.state_dict().values()}.values()
        self.tensors = sorted(held, key=lambda tensor: tensor.stop_gradient)
        self.parameters = [tensor for tensor in self.tensors if not tensor.stop_gradient]
        self.step = to_static(self.take_step, backend=backend)

    @property
    def weights(self) -> list:
        """Copies of the parameters that are trained, then of all else that the module holds."""
        return [tensor.numpy().copy() for tensor in self.tensors]

    def load(self, weights) -> None:
        """Give the module these weights. Raises ValueError if their shapes are others."""
        shapes, own = ([tuple(a.shape) for a in each] for each in (weights, self.tensors))
        if shapes != own:
            raise value_error(f"weights of shapes {shapes}", f"those of the module, {own}")
        with no_grad():
            for tensor, array in zip(self.tensors, weights):
                tensor.set_value(array)

    def take_step(self, inputs, labels, anchors, drifts, proximal):
        """Change the module's weights by one step on a batch."""
        slopes = grad(self.loss(self.module(inputs), labels), self.parameters)
        for p, slope, anchor, drift in zip(self.parameters, slopes, anchors, drifts):
            p.grad = slope + proximal * (p.detach() - anchor) + drift
        self.optimizer.step()
        self.optimizer.clear_grad()


class FederatedClient:
    """A holder of data, which it trains on and never hands out.

    inputs, labels: arrays; `fit` reads them in batches of `batch_size` in an order drawn anew for
    each round from `seed`; rows that fill no batch wait for another order
    control: SCAFFOLD's, None before the first round; code that moves a client moves it, too

    >>> import numpy as np
    >>> net = paddle.nn.Linear(2, 2)
    >>> sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    >>> trainer = paddle.privacy.LocalTrainer(net, sgd)
    >>> client = paddle.privacy.FederatedClient(trainer, np.eye(2, dtype="float32"), np.arange(2))
    >>> weights, count, metrics = client.fit(trainer.weights, {})
    >>> count, metrics["steps"]
    (2, 1)
    """

    def __init__(self, trainer, inputs, labels, epochs=1, batch_size=16, seed=0):
        if len(inputs) != len(labels) or not len(labels):
            raise value_error(f"{len(inputs)} inputs, {len(labels)} labels", "as many, one or more")
        self.trainer, self.inputs, self.labels = trainer, inputs, labels
        self.epochs, self.size, self.seed = epochs, min(batch_size, len(labels)), seed
        self.control = None

    def fit(self, weights, config) -> tuple[list, int, dict]:
        """Train from `weights`: (new weights, count of samples, metrics).

        config may hold "server-round", "proximal-mu" and "control" (arrays, the server's); with the
        last one metrics hold the change of the client's "control".
        """
        trainer, steps = self.trainer, 0
        trainer.load(weights)
        trainer.module.train()
        zeros = [NUMPY.zeros_like(p) for p in weights[: len(trainer.parameters)]]
        own, control = self.control or zeros, config.get("control", zeros)
        anchors = [to_tensor(array) for array, _ in zip(weights, zeros)]
        drifts = [to_tensor(c - o) for c, o in zip(control, own)]
        chance = NUMPY.random.default_rng([self.seed, int(config.get("server-round", 0))])
        proximal = to_tensor(float(config.get("proximal-mu", 0.0)), "float32")
        for _ in range(self.epochs):
            order = chance.permutation(len(self.labels))
            for k in range(0, len(order) - self.size + 1, self.size):
                rows = order[k : k + self.size]
                batch = to_tensor(self.inputs[rows]), to_tensor(self.labels[rows])
                trainer.step(*batch, anchors, drifts, proximal)
                steps += 1
        trained, metrics = trainer.weights, {"steps": steps}
        if "control" in config:
            walked = steps * trainer.optimizer.get_lr()
            change = [(a - b) / walked - c for a, b, c in zip(weights, trained, control)]
            self.control = [o + part for o, part in zip(own, change)]
            metrics["control"] = change
        return trained, len(self.labels), metrics


class FedAvg:
    """The mean of the clients' weights, each counted by its samples.

    Source: Flower `flwr.serverapp.strategy.FedAvg`.

    >>> import numpy as np
    >>> results = [([np.array([1.0])], 1, {}), ([np.array([4.0])], 2, {})]
    >>> paddle.privacy.FedAvg().join_results([np.array([0.0])], results)
    [array([3.])]
    """

    proximal = 0.0

    def configure(self, number: int, weights: list) -> dict:
        """The config of a round's clients, which get `weights` with it."""
        return {"server-round": number, "proximal-mu": self.proximal}

    def join_results(self, weights: list, results: list, clients: int | None = None) -> list:
        """The next weights, of those that were sent and of (weights, count, metrics) that came.

        `clients` counts those that exist, also without a result. Without results nothing changes.
        """
        if not results:
            return weights
        total = sum(count for _, count, _ in results)
        shares = [count / total for _, count, _ in results]
        columns = zip(weights, *(trained for trained, _, _ in results))
        changes = [sum(s * (new - old) for s, new in zip(shares, news)) for old, *news in columns]
        return [new.astype(old.dtype) for new, old in zip(self.move(weights, changes), weights)]

    def move(self, weights: list, changes: list) -> list:
        """The weights after the clients' mean change."""
        return [w + change for w, change in zip(weights, changes)]


class FedProx(FedAvg):
    """FedAvg with clients that are pulled to the server's weights by mu / 2 · ‖w - w₀‖².

    Source: Flower `flwr.serverapp.strategy.FedProx`.

    >>> paddle.privacy.FedProx(0.5).configure(0, [])
    {'server-round': 0, 'proximal-mu': 0.5}
    """

    def __init__(self, proximal_mu: float = 1.0):
        self.proximal = proximal_mu


class FedAdam(FedAvg):
    """Adam on the server, without correction of its bias; the clients' change is its gradient.

    Source: Flower `flwr.serverapp.strategy.FedAdam`.

    >>> import numpy as np
    >>> adam = paddle.privacy.FedAdam(eta=0.1, tau=0.2)
    >>> adam.join_results([np.array([0.0])], [([np.array([2.0])], 1, {})])[0].round(3)
    array([0.05])
    """

    def __init__(self, eta=0.1, beta_1=0.9, beta_2=0.99, tau=1e-3):
        self.eta, self.betas, self.tau, self.moments = eta, (beta_1, beta_2), tau, None

    def move(self, weights, changes):
        (one, two), zeros = self.betas, [0.0 * change for change in changes]
        first, second = self.moments or (zeros, zeros)
        first = [one * m + (1 - one) * d for m, d in zip(first, changes)]
        second = [two * v + (1 - two) * d * d for v, d in zip(second, changes)]
        self.moments = first, second
        steps = zip(weights, first, second)
        return [w + self.eta * m / (v**0.5 + self.tau) for w, m, v in steps]


class SCAFFOLD(FedAvg):
    """FedAvg whose clients correct their steps by where all clients' gradients point.

    A client's control is its mean gradient of the last round, the server's the mean of them all.
    Flower has none of this name.

    >>> import numpy as np
    >>> strategy = paddle.privacy.SCAFFOLD()
    >>> change = {"control": [np.array([2.0])]}
    >>> strategy.join_results([np.array([0.0])], [([np.array([1.0])], 1, change)], clients=4)
    [array([1.])]
    >>> strategy.control
    [array([0.5])]
    """

    control = None

    def configure(self, number, weights):
        self.control = self.control or [NUMPY.zeros_like(w) for w in weights]
        return {**super().configure(number, weights), "control": self.control}

    def join_results(self, weights, results, clients=None):
        changes = [sum(arrays) for arrays in zip(*(m["control"] for _, _, m in results))]
        if changes:
            control, count = self.control or [0.0 * c for c in changes], clients or len(results)
            self.control = [c + change / count for c, change in zip(control, changes)]
        return super().join_results(weights, results, clients)


class FederatedRound(NamedTuple):
    """A round: the weights after it, and of each client its result, or None if it left."""

    weights: list
    results: list


def simulate(clients, strategy, rounds: int, weights=None) -> list[FederatedRound]:
    """Rounds of federated learning in this process: a list of them.

    A client whose `fit` raises ConnectionError has left for that round: its share is missing from
    the mean, and it is asked again in the next one. `weights` are by default those of the first
    client's module.

    >>> import numpy as np
    >>> net = paddle.nn.Linear(2, 2)
    >>> sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    >>> trainer, x, y = paddle.privacy.LocalTrainer(net, sgd), np.eye(2, dtype="float32"), [0, 1]
    >>> y, kind = np.array(y), paddle.privacy.FederatedClient
    >>> clients = [kind(trainer, x, y, seed=k) for k in range(3)]
    >>> history = paddle.privacy.simulate(clients, paddle.privacy.FedAvg(), rounds=2)
    >>> [len(each.results) for each in history]
    [3, 3]
    """
    weights = clients[0].trainer.weights if weights is None else weights
    history = []
    for number in range(rounds):
        config = strategy.configure(number, weights)
        results = [None] * len(clients)
        for k, client in enumerate(clients):
            with suppress(ConnectionError):
                results[k] = client.fit(weights, config)
        present = [result for result in results if result is not None]
        weights = strategy.join_results(weights, present, len(clients))
        history.append(FederatedRound(weights, results))
    return history


def split_evenly(labels, clients: int, seed: int = 0) -> list:
    """Rows of each client, drawn at random: `clients` arrays of row numbers.

    >>> [len(rows) for rows in paddle.privacy.split_evenly(range(10), 3)]
    [4, 3, 3]
    """
    order = NUMPY.random.default_rng(seed).permutation(len(labels))
    return NUMPY.array_split(order, clients)


def split_by_label(labels, clients: int, shards: int = 2, seed: int = 0) -> list:
    """Rows of each client, few labels each: `clients` arrays of row numbers.

    Rows sorted by label are cut into clients · shards pieces, of which each client draws `shards`.
    Source: McMahan et al. (2017).

    >>> [rows.tolist() for rows in paddle.privacy.split_by_label([1, 0, 1, 0], 2, shards=1)]
    [[1, 3], [0, 2]]
    """
    labels = NUMPY.asarray(labels)
    if clients * shards > len(labels):
        raise value_error(f"{clients} clients with {shards} shards", f"at most {len(labels)} rows")
    pieces = NUMPY.array_split(NUMPY.argsort(labels, kind="stable"), clients * shards)
    order = NUMPY.random.default_rng(seed).permutation(clients * shards).reshape(clients, shards)
    return [NUMPY.concatenate([pieces[k] for k in row]) for row in order]
