"""Made click data with a million features, and a wide-and-deep network, as a script of `fleet`.

An example has one id of each of `FIELDS` fields; few ids are frequent and most are rare, as in logs
of clicks. Each id has a hidden weight and a hidden vector: the weights, and the products of the
vectors of neighbouring fields, decide how likely a click is.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from functools import cache

import numpy as np

FEATURES, FIELDS, WIDTH, HIDDEN = 10**6, 16, 8, 64
BATCH, STEPS, WARM, TESTED = 512, 120, 20, 8192
RATE = 0.05
OF_FIELD = FEATURES // FIELDS


@cache
def hidden():
    """For each id a weight and two numbers of a vector, [FEATURES, 3]."""
    return np.random.default_rng(0).standard_normal((FEATURES, 3), "float32")


def clicks(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(ids [count, FIELDS] int64, whether it was clicked [count, 1] float32)."""
    rng = np.random.default_rng(seed)
    popularity = np.minimum(rng.zipf(1.3, (count, FIELDS)) - 1, OF_FIELD - 1)
    ids = popularity + np.arange(FIELDS) * OF_FIELD
    known = hidden()[ids]
    together = (known[:, 1:, 1:] * known[:, :-1, 1:]).sum((1, 2))
    score = 0.5 * known[:, :, 0].sum(1) + 0.3 * together - 1.0
    return ids, (rng.random(count) < 1 / (1 + np.exp(-score))).astype("float32")[:, None]


def auc(scores, labels) -> float:
    """How often an example that was clicked has a higher score than one that was not."""
    order = np.argsort(scores.reshape(-1), kind="stable")
    rank = np.empty(len(order))
    rank[order] = np.arange(1, len(order) + 1)
    ones = labels.reshape(-1) > 0.5
    n, m = ones.sum(), (~ones).sum()
    return float((rank[ones].sum() - n * (n + 1) / 2) / (n * m))


# ---- one network, three ways -----------------------------------------------------------------


def with_servers(worker: int, workers: int, strategy=None):
    """A step and scores with tables on servers; `fleet.init` was called."""
    import minipaddle as paddle
    from minipaddle.distributed import fleet

    net = perceptron(paddle)
    adagrad = paddle.optimizer.Adagrad(RATE, parameters=net.parameters())
    optimizer = fleet.distributed_optimizer(adagrad, strategy)
    fleet.init_worker()
    paddle.seed(2)
    normal = paddle.nn.initializer.Normal(0.0, 0.05)
    wide = paddle.ParamAttr("wide", paddle.nn.initializer.Constant(0.0))
    look_up, deep = paddle.static.nn.sparse_embedding, paddle.ParamAttr("deep", normal)

    def scores(ids, is_test=False):
        x = paddle.to_tensor(ids)
        first = look_up(x, [FEATURES, 1], is_test=is_test, param_attr=wide).sum(1)
        rows = look_up(x, [FEATURES, WIDTH], is_test=is_test, param_attr=deep)
        return first + net(rows.flatten(1))

    return step_of(paddle, scores, optimizer), lambda ids: scores(ids, True).numpy()


def perceptron(paddle):
    """The deep part, with the same first values in all processes."""
    paddle.seed(1)
    nn = paddle.nn
    layers = nn.Linear(FIELDS * WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
    return nn.Sequential(*layers)


def step_of(paddle, scores, optimizer):
    """A training step on (ids, labels) that returns the loss."""

    def step(ids, labels) -> float:
        loss = paddle.nn.functional.binary_cross_entropy_with_logits(
            scores(ids), paddle.to_tensor(labels)
        )
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.item()

    return step


def alone():
    """A step and scores of ours in one process: the optimizer walks over the whole table."""
    import minipaddle as paddle

    net = perceptron(paddle)
    paddle.seed(2)
    wide = paddle.nn.Embedding(FEATURES, 1, weight_attr=paddle.nn.initializer.Constant(0.0))
    paddle.tensor.generator.GENERATOR.draw()  # the table of constants draws on the servers too
    normal = paddle.nn.initializer.Normal(0.0, 0.05)
    deep = paddle.nn.Embedding(FEATURES, WIDTH, weight_attr=normal)
    parameters = [*net.parameters(), *wide.parameters(), *deep.parameters()]
    adagrad = paddle.optimizer.Adagrad(RATE, parameters=parameters)

    def scores(ids):
        x = paddle.to_tensor(ids)
        return wide(x).sum(1) + net(deep(x).flatten(1))

    return step_of(paddle, scores, adagrad), lambda ids: scores(ids).numpy()


def torchs():
    """A step and scores of PyTorch with sparse gradients: as much work as there are ids."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(FIELDS * WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    wide = nn.Embedding(FEATURES, 1, sparse=True)
    deep = nn.Embedding(FEATURES, WIDTH, sparse=True)
    nn.init.zeros_(wide.weight)
    nn.init.normal_(deep.weight, 0.0, 0.05)
    for layer in (net[0], net[2]):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    every = [*net.parameters(), *wide.parameters(), *deep.parameters()]
    adagrad = torch.optim.Adagrad(every, lr=RATE, eps=1e-6)

    def scores(ids):
        x = torch.from_numpy(ids)
        return wide(x).sum(1) + net(deep(x).flatten(1))

    def step(ids, labels) -> float:
        adagrad.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(scores(ids), torch.from_numpy(labels))
        loss.backward()
        adagrad.step()
        return loss.item()

    return step, lambda ids: scores(ids).detach().numpy()


# ---- a measurement ---------------------------------------------------------------------------


def measure(step, scores, worker: int = 0, workers: int = 1, steps: int = STEPS) -> dict:
    """Train on this worker's part of each batch; speed, losses, and what it knows afterwards."""
    data = [clicks(BATCH, k) for k in range(steps)]
    parts = [(ids[worker::workers], labels[worker::workers]) for ids, labels in data]
    times, losses, began = [], [], 0.0
    for k, part in enumerate(parts):
        if k == WARM:
            began = time.process_time()
        start = time.perf_counter()
        losses.append(step(*part))
        times.append(time.perf_counter() - start)
    busy = (time.process_time() - began) / (steps - WARM)
    ids, labels = clicks(TESTED, 10**6)
    found = scores(ids)
    return {
        "step": statistics.median(times[WARM:]), "busy": busy, "losses": losses,
        "auc": auc(found, labels),
    }  # fmt: skip


def main(engine: str) -> None:
    """Print the measurement of one process as JSON; a server prints its processor time."""
    if engine == "torch":
        found = measure(*torchs())
    elif engine == "alone":
        found = measure(*alone())
    else:
        from minipaddle.distributed import fleet

        fleet.init()
        if fleet.is_server():
            fleet.init_server(os.environ.get("MINIPADDLE_PS_FOLDER"))
            began = time.process_time()
            fleet.run_server()
            found = {"busy": (time.process_time() - began) / STEPS}
        else:
            who = fleet.worker_index(), fleet.worker_num()
            strategy = fleet.DistributedStrategy()
            strategy.a_sync = engine == "async"
            found = measure(*with_servers(*who, strategy), *who)
            fleet.barrier_worker()
            fleet.stop_worker()
    os.write(1, (json.dumps(found) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1])
