"""Federated learning by processes of Flower's on this machine: a SuperLink, a SuperNode for each
client, an app that learns digits. A client can be killed in the middle; the others go on.

    python deploy/federated/start.py --kill 2
    python deploy/federated/start.py --secure --rounds 2

Flower pins packages, so it wants an environment of its own: `pip install "minipaddle[federated]"`.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from processes import Federation
from sklearn.datasets import load_digits


def save_digits(file) -> None:
    """Write images (n, 64) in [0, 1] and labels, 1,437 to train, the others held out."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype("float32"), labels[order]
    held = {"held_images": images[1437:], "held_labels": labels[1437:]}
    np.savez(file, images=images[:1437], labels=labels[:1437], **held)


def train(options) -> None:
    """Start everything, print a line for each round, end everything."""
    with tempfile.TemporaryDirectory(prefix="federated", ignore_cleanup_errors=True) as folder:
        save_digits(Path(folder, "digits.npz"))
        federation = Federation(Path(folder))
        try:
            federation.start_all(options)
            for line in federation.lines(options.rounds):
                print(json.dumps(line), flush=True)
                if line["round"] == options.kill:
                    federation.kill("client 0")
                    print(json.dumps({"killed": "client 0"}), flush=True)
        finally:
            for name in [*federation.processes]:
                federation.kill(name)


if __name__ == "__main__":
    add = (parser := argparse.ArgumentParser(description=__doc__.splitlines()[0])).add_argument
    add("--clients", type=int, default=4)
    add("--rounds", type=int, default=5)
    add("--timeout", type=float, default=60.0, help="seconds that a round waits for a client")
    add("--kill", type=int, default=0, help="the round after which a client is killed; 0: none")
    add("--secure", action="store_true", help="FedAvg, its sums under masks: SecAgg+")
    train(parser.parse_args())
