"""Every model, eager and converted: outputs, gradients, buffers, and twenty steps of training."""

import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.jit.tree import describe, flatten
from tests.jit.models import (
    MODELS,
    TRAININGS,
    collect,
    default_dtype,
    fill,
    floats,
    inputs,
    leaves,
    loss_of,
    mapped,
    parameters,
    tensors,
)  # fmt: skip
from tests.near import assert_same

pytestmark = pytest.mark.sweep(one_in=4)

collect()
O = paddle.optimizer
OPTIMIZERS = [O.SGD, O.Momentum, O.Adam, O.AdamW, O.RMSProp, O.Adagrad, O.NAdam]
RATE = 0.01
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
trainings = pytest.mark.parametrize("training", TRAININGS, ids=lambda t: t.name)


def close(eager, static, what):
    """Equal, or nearly so: a program's numbers may be 0-D tensors where Python had numbers."""
    if isinstance(static, paddle.Tensor) and isinstance(eager, bool | int | float):
        static = static.item()
    if not isinstance(eager, paddle.Tensor):
        assert (
            eager == pytest.approx(static, rel=1e-6)
            if isinstance(eager, float)
            else (eager == static)
        ), what
        return
    assert isinstance(static, paddle.Tensor), what
    assert eager.spec == static.spec, what
    assert_same(static.numpy(), eager.numpy(), what, rounding=2e-6)


def plain(results):
    """Copies: a step may return a tensor that the next step changes."""
    return mapped(results, lambda x: x.detach().clone() if isinstance(x, paddle.Tensor) else x)


def agree(eager, static, what="result"):
    a, b = flatten(eager), flatten(static)
    assert describe(a[1]) == describe(b[1]), what
    for k, (x, y) in enumerate(zip(a[0], b[0], strict=True)):
        close(x, y, f"{what}, leaf {k}")


def known(eager, static):
    """Gradients in pairs. Where the way to a tensor was not taken this time, eager mode has no
    gradient; a program, which knows both ways, has zeros.
    """
    static = [
        None if a is None and b is not None and not b.any() else b
        for a, b in zip(eager, static, strict=True)
    ]
    return eager, static


def seen(gradients) -> list:
    return [g for g in gradients if g.any()]


def converted(net):
    return paddle.jit.to_static(net)


def buffers(net) -> list:
    return net.buffers() if isinstance(net, paddle.nn.Layer) else []


def pass_twice(model, net, call, seed):
    """Outputs and gradients of two passes: `.grad` adds up; hooks on an input and a weight."""
    paddle.seed(seed)
    found, xs = [], inputs(call, seed)
    own, noted = parameters(net), []
    handles = []
    if floats(xs) and model.hooks:
        handles.append(floats(xs)[0].register_hook(lambda g: noted.append(g) or g * 2))
    trainable = [w for w in own if not w.stop_gradient]
    if trainable:
        handles.append(trainable[0].register_hook(lambda g: g * 3))
    for _ in range(2):
        y = net(*xs)
        found.append(y)
        if floats(y):
            loss_of(y).backward()
    grads = [x.grad for x in [*floats(xs), *own]]
    for handle in handles:
        handle.remove()
    for w in own:
        w.clear_gradient(set_to_zero=False)
    return found, grads, noted


@models
def test_outputs_and_gradients(model):
    eager, static = model.net(), converted(model.net())
    for seed, (call, training) in enumerate((c, t) for c in model.calls for t in (True, False)):
        for net in (eager, static):
            if isinstance(net, paddle.nn.Layer):
                net.train() if training else net.eval()
        what = f"call {seed}, training {training}"
        (ye, ge, he), (ys, gs, hs) = (pass_twice(model, net, call, seed) for net in (eager, static))
        agree(ye, ys, f"{what}: outputs")
        agree(*known(ge, gs), f"{what}: gradients")
        agree(seen(he), seen(hs), f"{what}: what the hook saw")
        agree(buffers(eager), buffers(static), f"{what}: buffers")


def trained(model, convert) -> tuple:
    """Losses, weights and buffers of twenty steps of an optimizer, each a call of one function."""
    net, make = model.net(), OPTIMIZERS[MODELS.index(model) % len(OPTIMIZERS)]
    xs = inputs(model.calls[0])
    weights = [w for w in parameters(net) if not w.stop_gradient] or floats(xs)
    if not weights:
        pytest.skip("nothing to train")
    opt = make(RATE, parameters=weights)

    def step():
        y = net(*xs)
        loss = loss_of(y)
        if floats(y):
            loss.backward()
            opt.step()
            opt.clear_grad()
        return loss

    paddle.seed(5)
    step = convert(step)
    return [step() for _ in range(20 if model.learns else 3)], weights, buffers(net)


@models
def test_whole_step(model):
    """Twenty steps of an optimizer, captured: the same losses and weights."""
    with default_dtype(model.dtype):
        runs = trained(model, lambda step: step), trained(model, paddle.jit.to_static)
    for what, a, b in zip(("losses", "weights", "buffers"), *runs):
        agree(a, b, what)


def taken(training, convert) -> tuple:
    """Results, weights, gradients and buffers of a training's steps."""
    step, layers = training.made()
    own = [w for layer in layers for w in layer.parameters()]
    fill(own)
    step = convert(step)
    paddle.seed(5)
    batches = [inputs(training.inputs, k) for k in range(3)]
    for x in tensors(batches):
        x.stop_gradient = True
    found = [plain(step(*batches[k % 3])) for k in range(training.steps)]
    if convert is paddle.jit.to_static:
        assert len(step.program_cache) <= 2, step.explain()
    return found, own, [w.grad for w in own], [w for layer in layers for w in layer.buffers()]


@trainings
def test_training(training):
    runs = taken(training, lambda step: step), taken(training, paddle.jit.to_static)
    for what, a, b in zip(("results", "weights", "gradients", "buffers"), *runs):
        agree(a, b, what)


def draws(net, call, seed) -> bool:
    before = paddle.get_rng_state()
    net(*inputs(call, seed))
    return paddle.get_rng_state() != before


def recorded() -> dict:
    path = Path(__file__).parents[1] / "data" / "to_static_paddle.json"
    return json.loads(path.read_text())["cases"]


@models
def test_values_of_paddle(model):
    """Outputs in eval mode, with the same weights and inputs, as Paddle 3.3.1 gives them."""
    case, found = recorded().get(model.name, {"verdict": "not asked"}), []
    if "values" not in case:
        pytest.skip(f"Paddle: {case['verdict']}")
    net = model.net()
    if isinstance(net, paddle.nn.Layer):
        net.eval()
    for seed, call in enumerate(model.calls):
        paddle.seed(seed)
        found += leaves(net(*inputs(call, seed)))
        if draws(net, call, seed):
            pytest.skip("the model draws random numbers")
    for x, wanted in zip(found, case["values"], strict=False):
        if wanted is not None and isinstance(x, paddle.Tensor):
            y = x.astype("float64").numpy()
            np.testing.assert_allclose([y.sum(), (y**2).sum()], wanted, rtol=1e-4, atol=1e-4)


def test_there_are_enough():
    assert len({m.name for m in MODELS}) + len({t.name for t in TRAININGS}) >= 60
