"""Size, time, accuracy of one network made smaller in many ways: `./run bench pareto`.

The network of `quantization` reads digits. Each row is trained, cut, rounded and measured here: the
file that `paddle.save` writes and the same zipped, the compiled time of an image in a batch of 256
(least processor time of many runs, all rows in turn), the held-out digits that are read right. A
star stands where no other row is smaller (zipped), faster and better at once.

Then larger networks without half of each layer's channels (of GPT: heads and hidden width): what is
left of the weights, of the products' work, and of the compiled time. They are not trained.
"""

from __future__ import annotations

import gzip
import tempfile
from copy import deepcopy
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.progress import track
from rich.table import Table

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn, slim
from minipaddle.incubate import asp
from minipaddle.quantization import observers as o

from .quantization import accuracy, digits, rounded, trained
from .quantized_times import compiled

INPUT, BATCH, FEW = [1, 1, 8, 8], 256, 100
EPOCHS, MORE = 20, 5


def student() -> nn.Layer:
    """A quarter of the weights."""
    return nn.Sequential(
        nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10),
    )  # fmt: skip


def fit(net, epochs, rate=2e-3, loss=None, labels_of=None, each=None, optimizer=None) -> nn.Layer:
    """Train on all images, or on the first `labels_of`. `loss(net, images, labels)` and `each()`,
    which is called after a step, may stand instead.
    """
    images, labels = (x[:labels_of] for x in digits("train"))
    adam = optimizer or paddle.optimizer.Adam(rate, parameters=net.parameters())
    loss = loss or (lambda net, x, y: F.cross_entropy(net(x), y))
    net.train()
    for _ in range(epochs):
        for rows in paddle.randperm(len(labels)).split(
            [64] * (len(labels) // 64) + ([-1] if len(labels) % 64 else [])
        ):
            loss(net, images[rows], labels[rows]).backward()
            adam.step()
            adam.clear_grad()
            if each:
                each()
    return net.eval()


# ---- the rows --------------------------------------------------------------------------------


def sparse(net, ratio: float) -> nn.Layer:
    """All but a part of the weights set to zero while training goes on."""
    net = deepcopy(net)
    steps = MORE * (len(digits("train")[1]) // 64 + 1)
    how = {"pruning_iterations": steps // 2, "pruning_steps": 8, "initial_ratio": 0.3}
    pruner = slim.GMPUnstructuredPruner(net, ratio, configs=how)
    adam = asp.decorate(paddle.optimizer.Adam(1e-3, parameters=net.parameters()))
    return fit(net, MORE, each=pruner.step, optimizer=adam)


def two_of_four(net) -> nn.Layer:
    net = deepcopy(net)
    adam = asp.decorate(paddle.optimizer.Adam(1e-3, parameters=net.parameters()))
    asp.prune_model(net)
    return fit(net, MORE, optimizer=adam)


def narrow(net, part: float, kind=slim.L1NormFilterPruner) -> nn.Layer:
    """Channels removed where it hurts least, until a part of the work is gone; then trained on."""
    net = deepcopy(net)
    pruner = kind(net, INPUT)
    pruner.sensitive(lambda: accuracy(net), ratios=(0.25, 0.5, 0.75, 0.9))
    pruner.sensitive_prune(part)
    return fit(net, MORE, 1e-3)


def distilled(teacher, labels: int | None) -> nn.Layer:
    """A student that learns labels where there are any, and the teacher's scores of all images."""
    images, known = digits("train")
    labels = len(known) if labels is None else labels

    def loss(net, x, y):
        t, few = 3.0, paddle.randint(0, labels, [64])
        return F.cross_entropy(net(images[few]), known[few]) + t**2 * slim.dist.soft_label(
            teacher(x), net(x), t, t
        )

    return fit(student(), 2 * EPOCHS, loss=loss)


def searched(net, part: float) -> nn.Layer:
    """The best of a trained supernet's slices with so much of the work, and trained on."""
    ofa = slim.OFA(slim.Supernet(deepcopy(net), INPUT), net)
    fit(ofa, EPOCHS, 1e-3, lambda _, x, y: Backward(ofa, x, y))
    images, labels = digits("train")
    right = lambda: (ofa(images).argmax(1) == labels).astype("float32").mean().item()
    with paddle.no_grad():
        found = ofa.search(right, lambda c: ofa.supernet.work(c) <= part)
    return fit(ofa.supernet.export(found[0][0]), MORE, 1e-3)


class Backward:
    """A step's `backward` of a supernet, which goes through several networks."""

    def __init__(self, ofa, x, y):
        self.backward = lambda: ofa.backward(x, lambda scores: F.cross_entropy(scores, y))


def in_bytes(net) -> nn.Layer:
    """Weights and activations of 8 bits."""
    return rounded(net, 8, True, o.AbsmaxObserver())


def rows() -> dict[str, nn.Layer]:
    """All networks, by what was done."""
    paddle.seed(1)
    full = trained()
    found = {"float32": full}
    for ratio in (0.8, 0.9, 0.95):
        found[f"{ratio:.0%} of the weights zero"] = sparse(full, ratio)
    found["2 of 4"] = two_of_four(full)
    for part in (0.5, 0.75, 0.9):
        found[f"channels removed, {part:.0%} of the work"] = narrow(full, part)
    found["75% by geometric median"] = narrow(full, 0.75, slim.FPGMFilterPruner)
    found["searched in a supernet, 25% of the work"] = searched(full, 0.25)
    found["student, all labels"] = fit(student(), 2 * EPOCHS)
    found["student, all labels, distilled"] = distilled(full, None)
    found[f"student, {FEW} labels"] = fit(student(), 20 * EPOCHS, labels_of=FEW)
    found[f"student, {FEW} labels, distilled"] = distilled(full, FEW)
    for name in [n for n in found if "labels" not in n or n == "student, all labels"]:
        found[f"{name}; 8 bits"] = in_bytes(found[name])
    return found


def sizes_of(net) -> tuple[int, int]:
    """Bytes of the file that `paddle.save` writes, and zipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.pdparams")
        paddle.save(net.state_dict(), str(path))
        data = path.read_bytes()
        return len(data), len(gzip.compress(data, mtime=0))


def times_of(nets, x, rounds: int = 40) -> list[float]:
    """Seconds for a row of x, compiled: one network after the other, many times."""
    runs = [compiled(net) for net in nets]
    least = [float("inf")] * len(runs)
    for k in track(range(rounds + 2), "measuring", transient=True):
        for j, run in enumerate(runs):
            began = process_time()
            run(x)
            if k > 1:
                least[j] = min(least[j], (process_time() - began) / len(x))
    return least


def front(points: list[tuple]) -> list[bool]:
    """Whether no other point is at least as small in all coordinates, and smaller in one."""
    beats = lambda a, b: a != b and all(x <= y for x, y in zip(a, b))
    return [not any(beats(a, b) for a in points) for b in points]


def run(threads: int, arguments) -> None:
    found = rows()
    times = times_of([*found.values()], digits("train")[0][:BATCH])
    table = Table(title="Digits: size, time, accuracy")
    for name in ("", "bytes", "zipped", "µs an image", "accuracy, %", "front"):
        table.add_column(name, justify="left" if not name else "right")
    sizes = [sizes_of(net) for net in found.values()]
    right = [accuracy(net) for net in found.values()]
    stars = front([(zipped, t, -a) for (_, zipped), t, a in zip(sizes, times, right)])
    for name, (plain, zipped), t, a, star in zip(found, sizes, times, right, stars):
        table.add_row(name, f"{plain:,}", f"{zipped:,}", f"{1e6 * t:.2f}", f"{a:.1f}", "*" * star)
    Console(width=110).print(table)
    Console(width=110).print(halves())


def halves() -> Table:
    """Larger networks, whole and without half of the channels."""
    table = Table(title="Half of each layer's channels removed")
    for name in ("", "weights", "left", "work left", "ms", "ms after", "times faster"):
        table.add_column(name, justify="left" if not name else "right")
    models, images = paddle.vision.models, paddle.randn([1, 3, 224, 224])
    for name, net, x in (
        ("LeNet", models.LeNet(), paddle.randn([1, 1, 28, 28])),
        ("ResNet-18, 224 × 224", models.resnet18(), images),
        ("MobileNetV2, 224 × 224", models.mobilenet_v2(), images),
        ("GPT, 4 blocks of 128, 64 tokens", paddle.text.GPT(64, 128, 4, 8, 64),
         paddle.randint(0, 64, [1, 64])),
    ):  # fmt: skip
        small = deepcopy(net.eval())
        pruner = slim.L1NormFilterPruner(small, [x])
        plan = pruner.prune_vars(dict.fromkeys(pruner.prunable(), 0.5))
        before, after = times_of([net, small], x, 8)
        weights = sum(p.size for p in net.parameters())
        left = sum(p.size for p in small.parameters()) / weights
        table.add_row(
            name, f"{weights:,}", f"{left:.0%}", f"{1 - plan.pruned_flops:.0%}",
            f"{1e3 * before:.3g}", f"{1e3 * after:.3g}", f"{before / after:.2f}",
        )  # fmt: skip
    return table
