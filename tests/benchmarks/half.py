"""Training steps in mixed precision beside float32 and `torch.autocast`: time, memory, losses.

Both libraries begin with the same weights. Time is processor time, the median of steps that all
take in turn; memory is the plan of the compiled step, and weights with what an optimizer keeps.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed.auto_parallel.stages import bytes_held
from minipaddle.nn import functional as F

KINDS = [
    ("O0", "float32"),
    *((level, d) for d in ("bfloat16", "float16") for level in ("O1", "O2")),
]
STEPS, WORDS, WIDTH, HEADS, LENGTH = 60, 64, 128, 4, 64
RATE = 1e-3


class Block(nn.Layer):
    """A block of a transformer."""

    def __init__(self):
        super().__init__()
        self.one, self.mix = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.out, self.two = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.mix(self.one(x)).reshape([b, n, 3, HEADS, -1]).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.reshape([b, n, WIDTH]))
        return x + self.down(F.gelu(self.up(self.two(x))))


class TorchBlock(torch.nn.Module):
    """The same in PyTorch."""

    def __init__(self):
        super().__init__()
        self.one, self.mix = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out, self.two = torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.mix(self.one(x)).reshape(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(torch.nn.functional.gelu(self.up(self.two(x))))


def gpt(lib, block):
    """A small GPT of either library."""
    return lib.Sequential(
        lib.Embedding(WORDS, WIDTH),
        block(),
        block(),
        lib.LayerNorm(WIDTH),
        lib.Linear(WIDTH, WORDS),
    )


def mlp(lib, block=None):
    """A perceptron of either library."""
    return lib.Sequential(
        lib.Linear(784, 512), lib.ReLU(), lib.Linear(512, 512), lib.ReLU(), lib.Linear(512, 10)
    )


def cnn(lib, block=None):
    """Five convolutions of either library, with batch norm and pooling."""
    norm = getattr(lib, "BatchNorm2D", None) or lib.BatchNorm2d
    pool = getattr(lib, "MaxPool2D", None) or lib.MaxPool2d
    mean = getattr(lib, "AdaptiveAvgPool2D", None) or lib.AdaptiveAvgPool2d
    conv = getattr(lib, "Conv2D", None) or lib.Conv2d

    def convolved(a, b):
        return conv(a, b, 3, 1, 1), norm(b), lib.ReLU()

    return lib.Sequential(
        *convolved(3, 32), *convolved(32, 64), pool(2, 2), *convolved(64, 64),
        *convolved(64, 128), pool(2, 2), *convolved(128, 128), mean(1), lib.Flatten(),
        lib.Linear(128, 10),
    )  # fmt: skip


NETS = {"MLP": mlp, "CNN": cnn, "GPT": gpt}


def batch(name: str) -> tuple:
    """Inputs and labels that can be learnt: the next word, the largest of ten sums."""
    rng = np.random.default_rng(0)
    if name == "CNN":
        x = rng.normal(size=(16, 3, 32, 32)).astype("float32")
        return x, x[:, 0, :30].reshape(16, 10, 96).sum(2).argmax(1)
    if name == "MLP":
        x = rng.normal(size=(64, 784)).astype("float32")
        return x, x[:, :780].reshape(64, 10, 78).sum(2).argmax(1)
    words = np.cumsum(rng.integers(1, 4, (8, LENGTH + 1)), 1) % WORDS
    return words[:, :-1], words[:, 1:].reshape(-1)


def ours(name: str, level: str, dtype: str):
    """A captured step, its network and its optimizer."""
    paddle.seed(0)
    net = NETS[name](nn, Block)
    adam = paddle.optimizer.AdamW(RATE, parameters=net.parameters(), weight_decay=0.0)
    if level == "O2":
        net, adam = paddle.amp.decorate(net, adam, level, dtype)
    scaler = paddle.amp.GradScaler(dtype == "float16", init_loss_scaling=1024.0)
    low = "bfloat16" if dtype == "float32" else dtype

    def step(x, label):
        with paddle.amp.auto_cast(level=level, dtype=low):
            scores = net(x)
            loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), label)
        scaler.scale(loss).backward()
        scaler.step(adam)
        scaler.update()
        adam.clear_grad()
        return loss

    return paddle.jit.to_static(step, backend="native"), net, adam


def theirs(name: str, weights, enabled: bool):
    """A step of PyTorch from the same weights, with or without `torch.autocast`."""
    net = NETS[name](torch.nn, TorchBlock)
    with torch.no_grad():
        for (key, p), w in zip(net.named_parameters(), weights, strict=True):
            turned = w.ndim == 2 and not (name == "GPT" and key == "0.weight")
            p.copy_(torch.tensor(w.T if turned else w))
    adam = torch.optim.AdamW(net.parameters(), RATE, weight_decay=0.0)

    def step(x, label):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            scores = net(x)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), label)
        loss.backward()
        adam.step()
        adam.zero_grad()
        return loss

    return step


def run(threads: int, arguments) -> None:
    """Print a table for each network."""
    torch.set_num_threads(threads)
    for name in NETS:
        measure(name)


def measure(name: str) -> None:
    x, label = batch(name)
    here, there = [*map(paddle.to_tensor, (x, label))], [*map(torch.tensor, (x, label))]
    made = {f"{level} {dtype}": ours(name, level, dtype) for level, dtype in KINDS}
    learnt = made["O0 float32"][1].parameters()
    weights = [p.numpy() for p in learnt if not p.stop_gradient]  # no running statistics
    steps = {key: (step, here) for key, (step, _, _) in made.items()}
    for key, enabled in (("torch", False), ("torch.autocast bfloat16", True)):
        steps[key] = theirs(name, weights, enabled), there
    losses, times = {key: [] for key in steps}, {key: [] for key in steps}
    for _ in range(STEPS):
        for key, (step, given) in steps.items():
            began = time.process_time()
            losses[key].append(step(*given).item())
            times[key].append(time.process_time() - began)
    table = Table(title=f"{name}: {STEPS} steps, losses at 1, {STEPS // 2}, {STEPS}")
    for head in ("", "ms", "of float32", "arena MiB", "weights + states MiB", "losses"):
        table.add_column(head, justify="left" if not head else "right")
    base = statistics.median(times["O0 float32"])
    for key in steps:
        took = statistics.median(times[key])
        memory = memory_of(*made[key]) if key in made else ("", "")
        shown = " ".join(f"{losses[key][k]:.3f}" for k in (0, STEPS // 2 - 1, -1))
        table.add_row(key, f"{took * 1e3:.2f}", f"{took / base:.2f}", *memory, shown)
    Console().print(table)


def memory_of(step, net, optimizer) -> tuple[str, str]:
    """MiB of the planned block of a step, and of weights and states."""
    held = bytes_held(net, optimizer)
    arena = step.executables[0].plan.size
    return f"{arena / 2**20:.1f}", f"{(held['weights'] + held['states']) / 2**20:.1f}"
