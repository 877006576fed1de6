"""A workload as a step in Paddle's names (ours and Paddle's) and in PyTorch's: a function without
arguments. All frameworks start from the same weights and see the same data.
"""

from __future__ import annotations

import math

import numpy as np

from .workloads import WORKLOADS
from .workloads.workload import Workload, is_torch

STEPS = {WORKLOADS[name].title: WORKLOADS[name] for name in ("tiny", "gpt", "resnet")}
"""What the benchmarks of eager execution and of programs measure."""


def seeded_weights(shapes: dict[str, tuple]) -> dict[str, np.ndarray]:
    """Weights by name: scaled normals for matrices and kernels, ones and zeros for the rest.

    (In Paddle the running statistics of batch norm are parameters, which nothing trains.)
    """
    rng = np.random.default_rng(0)
    out = {}
    for name, shape in sorted(shapes.items()):
        if len(shape) > 1:
            fan = int(np.prod(shape[1:])) if len(shape) > 2 else max(shape)
            out[name] = (rng.normal(size=shape) * math.sqrt(1 / fan)).astype("float32")
        else:
            out[name] = np.full(shape, float(name.endswith(("weight", "_variance"))), "float32")
    return out


def weights_of(workload: Workload) -> dict[str, np.ndarray]:
    """The weights of a workload by Paddle's names, with Paddle's shapes."""
    import minipaddle

    net = workload.net(minipaddle)
    if net is None:
        return {}
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
    return workload.weights() if workload.weights else seeded_weights(shapes)


def give_weights(framework, net, weights: dict[str, np.ndarray]) -> None:
    """Give `net` the weights its names stand for; PyTorch's Linear holds the transpose."""
    turned = set()
    if is_torch(framework):
        linear = framework.nn.Linear
        turned = {f"{n}.weight" for n, layer in net.named_modules() if isinstance(layer, linear)}
    for name, p in net.named_parameters():
        value = weights[name].T if name in turned else weights[name]
        if is_torch(framework):
            p.data.copy_(framework.tensor(np.ascontiguousarray(value)))
        else:
            p.set_value(value)


def built(framework, workload: Workload, weights=None):
    """The net with its weights, and the batch as tensors."""
    net = workload.net(framework)
    if net is not None:
        give_weights(framework, net, weights_of(workload) if weights is None else weights)
        if workload.kind == "predict":
            net.eval()
    make = framework.tensor if is_torch(framework) else framework.to_tensor
    return net, [make(a) for a in workload.batch()]


def optimizer_of(framework, workload: Workload, net):
    """`torch` fuses an optimizer's kernels if asked to, and people who want speed ask."""
    name, rate = workload.optimizer
    if is_torch(framework):
        return getattr(framework.optim, name)(net.parameters(), lr=rate, fused=True)
    return getattr(framework.optimizer, name)(learning_rate=rate, parameters=net.parameters())


def step_of(framework, workload: Workload, *, weights=None, apply=None, convert=None, whole=None):
    """A step as the framework's users write it; calling it gives what came out, as tensors.

    `convert` takes the function that computes the loss or the prediction, `whole` the whole step;
    `apply` is the first of these in another spelling than `workload.apply`.
    """
    net, batch = built(framework, workload, weights)
    compute, convert = (apply or workload.apply)(framework), convert or unchanged
    if net is None:  # Paddle converts no loop in a function that it finds in a closure
        forward = bound(convert(compute), net)
    else:
        forward = convert(bound(compute, net))
    make = {"train": trained, "gradient": differentiated, "predict": predicted}[workload.kind]
    step = make(framework, workload, net, forward)
    step = (whole or unchanged)(step)
    if workload.kind == "predict" and net is not None:  # without weights nothing is recorded
        guard = framework.inference_mode if is_torch(framework) else framework.no_grad

        def predict():
            with guard():
                return step(batch)

        return predict
    return lambda: step(batch)


def unchanged(function):
    return function


def bound(compute, net):
    def forward(batch):
        return compute(net, *batch)

    return forward


def trained(framework, workload, net, forward):
    optimizer = optimizer_of(framework, workload, net)
    clear = optimizer.zero_grad if is_torch(framework) else optimizer.clear_grad

    def train(batch):
        loss = forward(batch)
        loss.backward()
        optimizer.step()
        clear()
        return loss

    return train


def differentiated(framework, workload, net, forward):
    parameters = list(net.parameters())

    def gradient(batch):
        loss = forward(batch)
        if is_torch(framework):
            return loss, *framework.autograd.grad(loss, parameters)
        return loss, *framework.grad(loss, parameters)

    return gradient


def predicted(framework, workload, net, forward):
    return forward


def numbers(result) -> list[float]:
    """What came out of a step, as few numbers: scalars, and the mean size of anything larger."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    arrays = [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in parts]
    return [float(a.reshape(())) if a.size == 1 else float(abs(a).mean()) for a in arrays]
