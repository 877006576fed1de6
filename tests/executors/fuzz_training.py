"""The fuzzer of training steps: random nets, rules and settings, eagerly and as programs.

    python -m tests.executors.fuzz_training --steps 300 --seed 1
    python -m tests.executors.fuzz_training --step 1000017

A `Training` is drawn from a seed: a table that is looked up (its gradient by rows or whole), a
layer along time, a head and a loss, the dtype that weights are stored in, a rule, and how gradients
are clipped, scaled and accumulated. It is trained eagerly, as a program of the interpreter, and as
C, with open sizes where batches differ: losses and all states must be the same.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections import Counter
from functools import partial
from random import Random
from unittest import mock

import numpy as np

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn, optimizer
from minipaddle.nn.layer import rnn

ROWS = 9
NEAR = {"float64": 1e-9, "float32": 2e-4, "float16": 4e-2, "bfloat16": 2e-1}
"""Largest difference, relative to the largest value, by the dtype of weights."""
BACKENDS = "interpreter", "native"
RULES = {
    "SGD": optimizer.SGD,
    "Momentum": optimizer.Momentum,
    "Adagrad": optimizer.Adagrad,
    "RMSProp": optimizer.RMSProp,
    "Adam": optimizer.Adam,
    "lazy Adam": partial(optimizer.Adam, lazy_mode=True),
    "lazy AdamW": partial(optimizer.AdamW, lazy_mode=True, weight_decay=0.1),
    "lazy amsgrad": partial(optimizer.Adam, lazy_mode=True, amsgrad=True),
}
CLIPS = {
    "none": lambda: None,
    "norm of all": lambda: nn.ClipGradByGlobalNorm(0.1),
    "norm": lambda: nn.ClipGradByNorm(0.05),
    "value": lambda: nn.ClipGradByValue(0.02),
}
CELLS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "SimpleRNN": nn.SimpleRNN}
ALONG = [*CELLS, "mean", "sum", "while", "for"]
LOSSES = ["square", "cross_entropy", "ctc", "tied"]
CHOICES = {
    "dtype": ["float64"] * 4 + ["float32", "bfloat16", "float16"],
    "rule": [*RULES], "clip": [*CLIPS], "along": ALONG, "loss": LOSSES,
    "sparse": [True, True, True, False], "padding": [None, None, 2], "backwards": [1, 1, 2],
    "lookups": [1, 1, 2], "scaled": [False, False, True], "lengths": [False, True],
    "open": [False, True], "layers": [1, 1, 2], "direction": ["forward", "bidirect"],
    "time_major": [False, True], "wide": [1, 3, 8], "every": [1, 1, 2], "decay": [None, None, 0.1],
    "indices": ["some", "one", "all"], "few": [False, False, True],
    "long": [1, 1, 32],
}  # fmt: skip
"""What a training has, and from what it is drawn."""


class FuzzedNet(nn.Layer):
    """A table, a layer along time, a head."""

    def __init__(self, how):
        super().__init__()
        wide, self.how = how["wide"], how
        self.table = nn.Embedding(ROWS, wide, padding_idx=how["padding"], sparse=how["sparse"])
        last, self.cell = wide, None
        if how["along"] in CELLS:
            names = ("direction", "time_major")
            cell = CELLS[how["along"]]
            self.cell = cell(wide, 3, num_layers=how["layers"], **{n: how[n] for n in names})
            last = 3 * (1 + (how["direction"] == "bidirect"))
        self.head = nn.Linear(last, ROWS)

    def forward(self, ids, lengths):
        x = self.table(ids)
        if self.how["lookups"] == 2:
            x = x + 0.5 * self.table((ids + 1) % ROWS)
        return self.head(self.along(x, lengths))

    def along(self, x, lengths):
        """[batch, time, wide] -> [batch, time, last]."""
        how = self.how
        if self.cell is not None:
            turned = how["time_major"]
            x = x.transpose([1, 0, 2]) if turned else x
            y, _ = self.cell(x, sequence_length=lengths if how["lengths"] else None)
            return y.transpose([1, 0, 2]) if turned else y
        if how["along"] == "while":
            return self.halve(x)
        if how["along"] == "for":
            h, states = x[:, 0] * 0.0, []
            for k in range(x.shape[1]):
                h = paddle.tanh(x[:, k] + 0.5 * h)
                states.append(h)
            return paddle.stack(states, 1)
        return getattr(x, how["along"])(1, keepdim=True) + x

    def halve(self, x):
        """Halved until it is small: how often depends on values."""
        total = paddle.zeros_like(x)
        while x.abs().sum() > 0.5:
            total = total + paddle.tanh(x)
            x = x * 0.5
        return total

    def loss(self, ids, lengths, labels):
        y = self(ids, lengths)
        if self.how["loss"] == "tied":
            y = y.mean(-1, keepdim=True) * paddle.matmul(self.table.weight, self.table.weight.T)[0]
        if self.how["loss"] == "cross_entropy":
            return F.cross_entropy(y.reshape([-1, ROWS]), labels.reshape([-1]))
        if self.how["loss"] == "ctc":
            marks = labels[:, :2] % (ROWS - 1) + 1
            ones = paddle.ones_like(lengths)
            y = y.transpose([1, 0, 2])
            if y.dtype in (paddle.bfloat16, paddle.float16):
                y = y.astype("float32")
            return F.ctc_loss(F.log_softmax(y), marks.astype("int32"), lengths, ones)
        return (y**2).mean()


class Training:
    """What a seed says of a training. Calling it trains, and gives all numbers."""

    def __init__(self, seed: int):
        random = Random(f"training {seed}")
        self.seed, self.how = seed, {n: random.choice(values) for n, values in CHOICES.items()}
        draw, how = np.random.default_rng(seed), self.how
        if "lazy" in how["rule"]:
            how["every"] = 1  # a program knows no rows of an earlier run, and says so
        batch, time = random.choice((1, 2, 4)), random.choice((2, 3, 5))
        self.batches = []
        for _ in range(4):
            shape = (batch, time)
            if how["open"]:
                shape = random.choice((1, 2, 4)), random.choice((2, 3, 5))
            top = {"some": 5, "one": 1, "all": ROWS}[how["indices"]]
            ids, labels = draw.integers(0, top, shape), draw.integers(0, ROWS, shape)
            self.batches.append((ids, draw.integers(2, shape[1] + 1, shape[0]), labels))

    def __str__(self) -> str:
        return f"step {self.seed}: {self.how}"

    def __call__(self, backend: str | None) -> list[np.ndarray]:
        """The losses, then the parameters and the states of the rule, after all batches."""
        how = self.how
        paddle.seed(self.seed)
        paddle.set_default_dtype("float64" if how["dtype"] == "float64" else "float32")
        net = FuzzedNet(how)
        if how["dtype"] in ("bfloat16", "float16"):
            net.to(dtype=how["dtype"])
        more = {} if how["rule"] == "lazy AdamW" else {"weight_decay": how["decay"]}
        trained = net.table.parameters() if how["few"] else net.parameters()
        rule = RULES[how["rule"]](0.05, parameters=trained, grad_clip=CLIPS[how["clip"]](), **more)
        scaler = paddle.amp.GradScaler(enable=how["scaled"], init_loss_scaling=8.0)

        def step(ids, lengths, labels, update):
            total = 0.0
            for k in range(how["backwards"]):
                loss = net.loss((ids + k) % ROWS, lengths, labels)
                scaler.scale(loss).backward()
                total = total + loss
            if update:
                scaler.step(rule)
                scaler.update()
                rule.clear_grad()
            return total

        run = step
        if backend is not None:
            run = paddle.jit.to_static(step, backend=backend, input_spec=self.specs())
        losses = []
        with mock.patch.object(rnn, "LONG", how["long"]):
            for k, batch in enumerate(self.batches):
                tensors = map(paddle.to_tensor, batch)
                losses.append(run(*tensors, (k + 1) % how["every"] == 0))
        paddle.set_default_dtype("float32")
        states = [x for x in rule.state_dict().values() if hasattr(x, "numpy")]
        tensors = [*losses, *net.parameters(), *states]
        return [x.astype("float64").numpy() for x in tensors]

    def specs(self):
        if not self.how["open"]:
            return None
        spec = lambda *shape: paddle.static.InputSpec(shape, "int64")
        return [spec(None, None), spec(None), spec(None, None)]

    def differences(self) -> list[str]:
        """How each backend differs from eager mode."""
        right, wrong = self(None), []
        near = NEAR[self.how["dtype"]]
        for backend in BACKENDS:
            try:
                numbers = self(backend)
            except Exception:
                wrong.append(f"{backend}: {traceback.format_exc()[-1500:]}")
                continue
            if [a.shape for a in numbers] != [a.shape for a in right]:
                wrong.append(f"{backend}: other states")
                continue
            for k, (a, b) in enumerate(zip(numbers, right, strict=True)):
                room = near * max(1.0, np.nanmax(np.abs(b), initial=0))
                if not np.allclose(a, b, 0, room, equal_nan=True):
                    wrong.append(
                        f"{backend}: number {k} of {len(right)} is {np.abs(a - b).max()} away"
                    )
                    break
        return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="1,000,000 steps lie between two")
    parser.add_argument("--step", type=int, help="the number of one step, to replay it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    first = arguments.seed * 1_000_000
    seeds = range(first, first + arguments.steps)
    counts = Counter()
    for seed in seeds if arguments.step is None else [arguments.step]:
        training = Training(seed)
        try:
            wrong = training.differences()
        except Exception:
            counts["refused by eager mode"] += 1
            print(training, traceback.format_exc()[-600:], flush=True)
            continue
        counts["steps"] += 1
        counts["differ"] += bool(wrong)
        if wrong:
            print(training, *wrong, sep="\n    ", flush=True)
    print(dict(counts))
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
