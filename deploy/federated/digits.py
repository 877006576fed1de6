"""Two apps for Flower: clients that learn digits, each its own few, and their server.

`start.py` says in the environment where the digits are, and where results go.
"""

import json
import os
from pathlib import Path

import numpy as np

import minipaddle as paddle
from minipaddle import nn, privacy
from minipaddle.privacy.flower import make_client_app, make_server_app

FOLDER = Path(os.environ["DIGITS"])
DATA = np.load(FOLDER / "digits.npz")


def make_trainer() -> privacy.LocalTrainer:
    """A small network with its optimizer."""
    paddle.seed(1)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    return privacy.LocalTrainer(net, sgd, backend="interpreter")


def make_client(context) -> privacy.FederatedClient:
    """The client of a node, whose config says which of how many shares of the digits it has."""
    share, shares = (context.node_config[f"{key}"] for key in ("partition-id", "num-partitions"))
    rows = privacy.split_by_label(DATA["labels"], shares)[share]
    own = DATA["images"][rows], DATA["labels"][rows]
    return privacy.FederatedClient(make_trainer(), *own, epochs=3, seed=share)


def report(number, weights, replies):
    """Write a line for a round: how many clients replied, and how many of the held-out digits are
    read right.
    """
    trainer = make_trainer()
    trainer.load(weights)
    with paddle.no_grad():
        scores = trainer.module(paddle.to_tensor(DATA["held_images"])).numpy()
    accuracy = float((scores.argmax(1) == DATA["held_labels"]).mean())
    line = {"round": number + 1, "clients": replies, "accuracy": round(accuracy, 3)}
    with open(FOLDER / "rounds.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")


client = make_client_app(make_client)
server = make_server_app(privacy.SCAFFOLD(), make_trainer().weights, report)
