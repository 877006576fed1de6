"""Errors against float64, of kernels and of models, in each executor: `./run bench accuracy`.

    error of a result or a gradient = median over seeds of ‖a - b‖ / ‖b‖

with a computed in float32 and b in float64 from the same numbers. A row shows the largest of these,
and the largest ratio of native code's error to the interpreter's for the same array. The median
leaves out a seed in which a value near 0 falls on the other side of a ReLU. Every kernel and model
runs eagerly, as a program on the interpreter and as a native one, so a rewriting or a loop of ours
that costs digits stands out in its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn

from .models import bound, built
from .workloads import WORKLOADS
from .workloads.workload import Workload

EXECUTORS = ("eager", "interpreter", "native")
SEEDS = 5
HALF_UNIT = 2.0**-24
"""The relative error of one rounding to float32, at most."""


class Kernel(NamedTuple):
    """A function of tensors, and the shapes of its inputs: normal numbers around `mean`."""

    function: Callable
    shapes: tuple
    mean: float = 0.0


def batch_norm(data_format: str) -> Callable:
    def function(x, weight, bias):
        count, dtype = weight.shape[0], x.dtype
        running = paddle.zeros([count], dtype), paddle.ones([count], dtype)
        return F.batch_norm(x, *running, weight, bias, training=True, data_format=data_format)

    return function


IMAGE, LAST, PER_CHANNEL = (8, 16, 48, 48), (8, 48, 48, 16), (16,)
KERNELS = {
    "sum of 10⁶": Kernel(lambda x: x.sum(), ((10**6,),), 1.0),
    "sum along rows": Kernel(lambda x: x.sum(1), ((16, 20000),), 1.0),
    "sum down columns": Kernel(lambda x: x.sum(0), ((20000, 16),), 1.0),
    "sum over batch and image": Kernel(lambda x: x.sum((0, 2, 3)), (IMAGE,), 1.0),
    "variance down columns": Kernel(lambda x: x.var(0), ((20000, 16),), 3.0),
    "cumsum": Kernel(lambda x: x.cumsum(1), ((4, 20000),), 1.0),
    "logsumexp": Kernel(lambda x: x.logsumexp(1), ((8, 20000),)),
    "softmax": Kernel(lambda x: F.softmax(x, -1), ((8, 20000),)),
    "softmax down columns": Kernel(lambda x: F.softmax(x, 0), ((20000, 8),)),
    "log_softmax": Kernel(lambda x: F.log_softmax(x, -1), ((8, 20000),)),
    "batch_norm, NCHW": Kernel(batch_norm("NCHW"), (IMAGE, PER_CHANNEL, PER_CHANNEL), 3.0),
    "batch_norm, NHWC": Kernel(batch_norm("NHWC"), (LAST, PER_CHANNEL, PER_CHANNEL), 3.0),
    "layer_norm": Kernel(lambda x, w, b: F.layer_norm(x, [5000], w, b),
                         ((64, 5000), (5000,), (5000,)), 3.0),
    "group_norm": Kernel(lambda x: F.group_norm(x, 4), (IMAGE,), 3.0),
    "product of 64 terms": Kernel(lambda x, y: x @ y, ((64, 64), (64, 64))),
    "product of 4096 terms": Kernel(lambda x, y: x @ y, ((64, 4096), (4096, 64))),
    "conv2d, 3×3": Kernel(lambda x, w: F.conv2d(x, w, padding=1), (IMAGE, (16, 16, 3, 3))),
    "conv2d, 1×1": Kernel(lambda x, w: F.conv2d(x, w), (IMAGE, (32, 16, 1, 1))),
    "conv2d, depthwise": Kernel(lambda x, w: F.conv2d(x, w, padding=1, groups=16),
                                (IMAGE, (16, 1, 3, 3))),
    "exp, tanh, erf, log": Kernel(lambda x: x.exp() + x.tanh() + x.erf() + (x * x + 1).log(),
                                  ((10000,),)),
}  # fmt: skip
"""Each by a name for the table."""


class Model(NamedTuple):
    """What builds a net, and the shape of its input."""

    build: Callable
    shape: tuple


def convolutions() -> nn.Layer:
    """Convolutions, each with a batch norm, and no kinks: what a kink decides is no rounding."""
    layers, before = [], 3
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2)):
        layers += [nn.Conv2D(before, channels, 3, stride, 1), nn.BatchNorm2D(channels), nn.Silu()]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(before, 10))


def attention() -> nn.Layer:
    """An encoder's layer: layer norms and softmax."""
    return nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu")


def mobile() -> nn.Layer:
    net = paddle.vision.models.MobileNetV2(scale=0.25, num_classes=10)
    for layer in net.sublayers():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return net


MODELS = {
    "convolutions with batch norms": Model(convolutions, (4, 3, 32, 32)),
    "encoder layer": Model(attention, (4, 64, 32)),
    "MobileNetV2 ×0.25, 64 px, batch 2": Model(mobile, (2, 3, 64, 64)),
}


def run_as(executor: str, function: Callable) -> Callable:
    """The function in an executor."""
    if executor == "eager":
        return function
    return paddle.jit.to_static(function, backend=executor)


def cotangent(y, rng):
    """Numbers to weight a result by, so that all its elements reach the gradients."""
    return paddle.to_tensor(rng.standard_normal(y.shape).astype("float32")).astype(y.dtype)


def run_kernel(kernel: Kernel, dtype: str, executor: str, seed: int = 0) -> list[np.ndarray]:
    """The result of a kernel and the gradients of its inputs."""
    rng = np.random.default_rng(seed)
    arrays = [(rng.standard_normal(s) + kernel.mean).astype("float32") for s in kernel.shapes]
    inputs = [paddle.to_tensor(a.astype(dtype), stop_gradient=False) for a in arrays]
    y = run_as(executor, kernel.function)(*inputs)
    (y * cotangent(y, rng)).sum().backward()
    return [y.numpy(), *(x.grad.numpy() for x in inputs)]


def run_model(model: Model, dtype: str, executor: str, seed: int = 0) -> list[np.ndarray]:
    """The result of a model and the gradients of its parameters."""
    paddle.seed(seed)
    rng, net = np.random.default_rng(seed), model.build()
    net.train()
    net.to(dtype=dtype)
    x = paddle.to_tensor(rng.standard_normal(model.shape).astype("float32")).astype(dtype)
    y = run_as(executor, net.forward)(x)
    (y * cotangent(y, rng)).sum().backward()
    return [y.numpy(), *(p.grad.numpy() for p in net.parameters() if p.grad is not None)]


def run_workload(workload: Workload, dtype: str, executor: str, seed: int = 0) -> list[np.ndarray]:
    """The loss, or what is predicted, of a workload and the gradients of its parameters. A seed
    shuffles the numbers of each array of the batch.
    """
    rng, (net, batch) = np.random.default_rng(seed), built(paddle, workload)
    batch = [paddle.to_tensor(rng.permutation(x.numpy().ravel()).reshape(x.shape)) for x in batch]
    net.to(dtype=dtype)
    batch = [x.astype(dtype) if x.dtype == "float32" else x for x in batch]
    y = run_as(executor, bound(workload.apply(paddle), net))(batch)
    if workload.kind == "predict":
        return [y.numpy()]
    y.backward()
    return [y.numpy(), *(p.grad.numpy() for p in net.parameters() if p.grad is not None)]


def errors(found: list[np.ndarray], exact: list[np.ndarray]) -> list[float]:
    """‖a - b‖ / ‖b‖ of each array; one that is 0 but for rounding, as the gradient of a bias
    before a batch norm, has no relative error: 0.
    """
    norms = [float(np.linalg.norm(b)) for b in exact]
    return [
        float(np.linalg.norm(a.astype("float64") - b)) / norm if norm > 1e-9 * max(norms) else 0.0
        for a, b, norm in zip(found, exact, norms, strict=True)
    ]


def medians(case: Kernel | Model | Workload, executors=EXECUTORS, seeds=SEEDS) -> dict[str, list]:
    """For each executor the error of each array, the median over seeds."""
    run_case = {Kernel: run_kernel, Model: run_model, Workload: run_workload}[type(case)]
    found = {name: [] for name in executors}
    for seed in range(seeds):
        exact = run_case(case, "float64", "eager", seed)
        for name in executors:
            found[name].append(errors(run_case(case, "float32", name, seed), exact))
    return {name: np.median(each, axis=0).tolist() for name, each in found.items()}


def measure(case: Kernel | Model | Workload, executors=EXECUTORS) -> dict[str, float]:
    """The largest error of each executor for one seed."""
    return {name: max(each) for name, each in medians(case, executors, 1).items()}


def worst_ratio(found: dict[str, list]) -> float:
    """The largest ratio, over all arrays, of native code's error to the interpreter's, or to that
    of one rounding where this is larger.
    """
    pairs = zip(found["native"], found["interpreter"], strict=True)
    return max(a / max(b, HALF_UNIT) for a, b in pairs)


def operators() -> dict[str, dict[str, float]]:
    """The largest errors of each operator's results, over the cases of `tests/ops`."""
    from tests.executors import test_native_operators as suite

    found: dict[str, dict[str, float]] = {}
    for chunk in suite.chunks("float32"):
        for case, *pair in suite.errors(*suite.computed(chunk, "float32")):
            row = found.setdefault(case.rpartition("-")[0], dict.fromkeys(EXECUTORS[1:], 0.0))
            for name, error in zip(row, pair, strict=True):
                row[name] = max(row[name], error)
    return found


def run(threads: int, arguments=()) -> None:
    nets = {w.title: w for w in WORKLOADS.values() if w.net(paddle) is not None}
    rows = {name: medians(case) for name, case in {**KERNELS, **MODELS, **nets}.items()}
    one = {op: {e: [x] for e, x in row.items()} for op, row in operators().items()}
    for title, found in (("errors against float64", rows), ("operators", one)):
        table = Table("", *EXECUTORS, "native / interpreter", title=title)
        for name, row in found.items():
            cells = (f"{max(row[e]):.1e}" if e in row else "" for e in EXECUTORS)
            table.add_row(name, *cells, f"{worst_ratio(row):.1f}")
        Console().print(table)
