"""Flower's apps of our clients and strategies. In one process a simple grid carries messages; the
last test starts SuperLink and SuperNodes, and kills one of them.

The extra `federated`, in an environment of its own (Flower pins packages):
`python -m pytest tests/privacy/test_flower.py`.
"""

import json
import subprocess
import sys
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn, privacy
from minipaddle.nn import functional as F
from minipaddle.privacy.flower import make_client_app, make_server_app

START = Path(__file__).parents[2] / "deploy/federated/start.py"
NODES = 4
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Flower's own imports
needs_flower = pytest.mark.skipif(find_spec("flwr") is None, reason="the extra `federated`")


def test_without_flower_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr", None)
    monkeypatch.setitem(sys.modules, "flwr.app", None)
    with pytest.raises(RuntimeError, match=r"minipaddle\[federated\]"):
        make_client_app(None)
    with pytest.raises(RuntimeError, match=r"minipaddle\[federated\]"):
        make_server_app(None, None, None)


def make_client(k):
    """Of twelve rows, whose slope depends on the client."""
    net = nn.Linear(2, 1, bias_attr=False)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    trainer = privacy.LocalTrainer(net, sgd, lambda out, y: F.mse_loss(out, y), "interpreter")
    x = np.random.default_rng(k).normal(size=(12 + k, 2)).astype("float32")
    return privacy.FederatedClient(trainer, x, x @ np.array([[k], [1.0]], "float32"), 3, 4, seed=k)


START_WEIGHTS = [np.array([[0.5], [-0.5]], "float32")]


def identify(node):
    """Say whose messages this process writes."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = 1
    TaskIdentity.node_id = node


class LocalGrid:
    """Calls the ClientApp in this process; `lost(calls so far, node)` says that a node is gone."""

    def __init__(self, client_app, lost=lambda call, node: False):
        from flwr.app import Context, RecordDict

        self.app, self.lost, self.calls = client_app, lost, 0
        self.run = SimpleNamespace(run_id=1)
        identify(1)
        self.contexts = {
            100 + k: Context(1, 100 + k, {"partition-id": k}, RecordDict(), {})
            for k in range(NODES)
        }

    def get_node_ids(self):
        return [*self.contexts]

    def send_and_receive(self, messages, *, timeout=None):
        from flwr.app import Error, Message

        self.calls += 1
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            identify(node)
            if self.lost(self.calls, node):
                replies.append(Message(Error(3, "gone"), reply_to=message))
            else:
                replies.append(self.app(deepcopy(message), self.contexts[node]))
        identify(1)
        return replies


def train(strategy, rounds, lost=lambda call, node: False, **config):
    """[(weights, replies)] of each round."""
    from flwr.app import Context, RecordDict

    history = []
    app = make_client_app(lambda context: make_client(context.node_config["partition-id"]))
    config = {"rounds": rounds, "timeout": 5.0, **config}
    grid = LocalGrid(app, lost)
    for context in grid.contexts.values():
        context.run_config = config
    server = make_server_app(
        strategy, START_WEIGHTS, lambda n, w, count: history.append((w, count))
    )
    server(grid, Context(1, 0, {}, RecordDict(), config))
    return history


@needs_flower
@pytest.mark.parametrize(
    "strategy", [privacy.FedAvg, privacy.FedProx, privacy.FedAdam, privacy.SCAFFOLD]
)
def test_messages_change_nothing(strategy):
    history = train(strategy(), 3)
    clients = [make_client(k) for k in range(NODES)]
    expected = privacy.simulate(clients, strategy(), 3, START_WEIGHTS)
    for (weights, count), each in zip(history, expected, strict=True):
        assert count == NODES
        np.testing.assert_allclose(weights[0], each.weights[0], rtol=1e-6)


@needs_flower
def test_a_node_that_is_lost_takes_its_share():
    ((weights, count),) = train(privacy.FedAvg(), 1, lambda call, node: node == 103)
    clients = [make_client(k) for k in range(NODES - 1)]
    expected = privacy.simulate(clients, privacy.FedAvg(), 1, START_WEIGHTS)
    assert count == NODES - 1
    np.testing.assert_allclose(weights[0], expected[0].weights[0], rtol=1e-6)


@needs_flower
def test_a_strategy_of_flowers_own():
    from flwr.app import ArrayRecord
    from flwr.serverapp.strategy import FedProx

    app = make_client_app(lambda context: make_client(context.node_config["partition-id"]))
    grid = LocalGrid(app)
    result = FedProx(fraction_evaluate=0.0, proximal_mu=0.5).start(
        grid=grid, initial_arrays=ArrayRecord(START_WEIGHTS), num_rounds=1
    )
    clients = [make_client(k) for k in range(NODES)]
    configs = {"server-round": 1, "proximal-mu": 0.5}
    results = [client.fit(START_WEIGHTS, configs) for client in clients]
    expected = privacy.FedProx(0.5).join_results(START_WEIGHTS, results)
    np.testing.assert_allclose(result.arrays.to_numpy_ndarrays()[0], expected[0], rtol=1e-5)


STAGES = {0: "nobody", 1: "setup", 2: "share keys", 3: "masked vectors", 4: "unmask"}


@needs_flower
@pytest.mark.parametrize("stage", STAGES, ids=STAGES.values())
def test_a_secure_sum_is_the_plain_one_whenever_a_client_leaves(stage):
    (_, (weights, _)) = train(
        None, 2, lambda call, node: stage > 0 and call >= 4 + stage and node == 101, secure=True
    )
    clients = [make_client(k) for k in range(NODES)]
    first, second = ({"server-round": number, "proximal-mu": 0.0} for number in range(2))
    after = privacy.FedAvg().join_results(
        START_WEIGHTS, [client.fit(START_WEIGHTS, first) for client in clients]
    )
    here = [c for k, c in enumerate(clients) if k != 1 or stage in (0, 4)]  # 4: its sum was sent
    expected = privacy.FedAvg().join_results(after, [c.fit(after, second) for c in here])
    np.testing.assert_allclose(weights[0], expected[0], atol=3e-4)  # of fixed point


@pytest.mark.slow
@pytest.mark.timeout(600)
@needs_flower
def test_processes_go_on_when_a_client_is_killed():
    command = [sys.executable, START, "--clients", "3", "--rounds", "3", "--kill", "1"]
    done = subprocess.run(
        [*command, "--timeout", "40"], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    first, killed, second, third = map(json.loads, done.stdout.splitlines())
    assert (first["clients"], killed) == (3, {"killed": "client 0"})
    assert (second["clients"], third["clients"]) == (2, 2)
    assert third["accuracy"] > 0.2
