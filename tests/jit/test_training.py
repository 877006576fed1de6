"""Whole steps captured: every optimizer, schedule, clip and regularizer, over twenty steps."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn

O, LR = paddle.optimizer, paddle.optimizer.lr
STEPS = 20
OPTIMIZERS = [
    O.SGD, O.Momentum, O.Adam, O.AdamW, O.Adamax, O.Adagrad, O.Adadelta, O.RMSProp, O.Lamb,
    O.NAdam, O.RAdam, O.Rprop, O.ASGD,
]  # fmt: skip
SCHEDULES = {
    "cosine": lambda: LR.CosineAnnealingDecay(0.05, 7),
    "restarts": lambda: LR.CosineAnnealingWarmRestarts(0.05, 4),
    "cyclic": lambda: LR.CyclicLR(0.01, 0.05, 3),
    "exponential": lambda: LR.ExponentialDecay(0.05, 0.9),
    "inverse": lambda: LR.InverseTimeDecay(0.05, 0.5),
    "lambda": lambda: LR.LambdaDecay(0.05, lambda k: 0.9**k),
    "linear": lambda: LR.LinearLR(0.05, 10),
    "warmup": lambda: LR.LinearWarmup(LR.StepDecay(0.05, 4), 5, 0.0, 0.05),
    "several": lambda: LR.MultiStepDecay(0.05, [3, 9]),
    "product": lambda: LR.MultiplicativeDecay(0.05, lambda k: 0.95),
    "natural": lambda: LR.NaturalExpDecay(0.05, 0.1),
    "noam": lambda: LR.NoamDecay(8, 5, 0.1),
    "one cycle": lambda: LR.OneCycleLR(0.05, 20),
    "pieces": lambda: LR.PiecewiseDecay([4, 9], [0.05, 0.02, 0.01]),
    "polynomial": lambda: LR.PolynomialDecay(0.05, 12),
    "steps": lambda: LR.StepDecay(0.05, 4),
}
CLIPS = {
    "global norm": lambda: nn.ClipGradByGlobalNorm(0.3),
    "norm": lambda: nn.ClipGradByNorm(0.2),
    "value": lambda: nn.ClipGradByValue(0.05),
}


def data():
    rng = np.random.default_rng(0)
    return paddle.to_tensor(rng.random((16, 6)).astype("f4")), paddle.to_tensor(
        rng.integers(0, 3, (16, 1))
    )


def network():
    """Without a bias before the batch norm, which takes it away: its gradient is zero but for
    rounding, and Adam makes steps of one size out of any gradient.
    """
    paddle.seed(3)
    first = nn.Linear(6, 8, bias_attr=False)
    return nn.Sequential(first, nn.BatchNorm1D(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


def learned(convert, make, *, after=lambda opt, loss: None):
    """Losses, weights and buffers of a network that `make(parameters)` trained."""
    net = network()
    opt = make(net.parameters())

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        after(opt, loss)
        return loss

    step, (x, y) = convert(step), data()
    losses = [step(x, y).item() for _ in range(STEPS)]
    if convert is not plain:
        assert len(step.program_cache) <= 2, step.explain()
    return losses, [w.numpy() for w in [*net.parameters(), *net.buffers()]], opt.get_lr()


def plain(f):
    return f


def check(make, **options):
    eager, static = (learned(c, make, **options) for c in (plain, paddle.jit.to_static))
    np.testing.assert_allclose(static[0], eager[0], rtol=1e-6)
    for a, b in zip(eager[1], static[1], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=3e-7)  # either is as near to float64
    assert eager[2] == static[2]


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
def test_every_optimizer(kind):
    check(lambda weights: kind(learning_rate=0.01, parameters=weights))


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule(name):
    check(
        lambda weights: O.Momentum(SCHEDULES[name](), parameters=weights),
        after=lambda opt, loss: opt._learning_rate.step(),
    )


def test_a_schedule_that_watches_the_loss():
    check(
        lambda weights: O.SGD(LR.ReduceOnPlateau(0.5, patience=1), parameters=weights),
        after=lambda opt, loss: opt._learning_rate.step(loss),
    )


@pytest.mark.parametrize("name", CLIPS)
def test_every_clip(name):
    check(lambda weights: O.Adam(0.01, parameters=weights, grad_clip=CLIPS[name]()))


@pytest.mark.parametrize("decay", [paddle.regularizer.L1Decay(0.05), 0.1], ids=str)
def test_regularizers(decay):
    check(lambda weights: O.Momentum(0.01, parameters=weights, weight_decay=decay))


def test_a_rate_set_by_hand():
    """`set_lr` between calls reaches the program."""
    found = []
    for convert in (plain, paddle.jit.to_static):
        net = network()
        opt = O.SGD(0.1, parameters=net.parameters())

        def step(x, y):
            loss = F.cross_entropy(net(x), y)  # noqa: B023
            loss.backward()
            opt.step()  # noqa: B023
            opt.clear_grad()  # noqa: B023
            return loss

        step, (x, y) = convert(step), data()
        losses = []
        for k in range(6):
            opt.set_lr(0.1 / (k + 1))
            losses.append(step(x, y).item())
        found.append(losses)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_states_are_saved_and_set():
    """An optimizer's states, saved in the middle of captured steps and set again."""

    def run(interrupt):
        net = network()
        opt = O.Adam(0.05, parameters=net.parameters())

        @paddle.jit.to_static
        def step(x, y):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
            return loss

        net[3].eval()
        (x, y), losses = data(), []
        for k in range(6):
            if k == 3 and interrupt:
                weights = {name: v.clone() for name, v in net.state_dict().items()}
                states = {
                    name: v.clone() if isinstance(v, paddle.Tensor) else v
                    for name, v in opt.state_dict().items()
                }
                step(x, y)
                net.set_state_dict(weights)
                opt.set_state_dict(states)
            losses.append(step(x, y).item())
        return losses

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)


@pytest.mark.parametrize("zeros", [True, False])
def test_a_captured_backward_adds_to_what_is_there_now(zeros):
    """Programs that found a gradient do not serve once it is cleared, and the other way about."""
    x = data()[0]

    def gradients(convert):
        paddle.seed(3)
        net = nn.Linear(6, 3)
        backward = convert(lambda x: net(x).square().mean().backward())
        found = []
        for _ in range(3):
            for k in range(3):
                backward(x[k : k + 4])
                found.append(net.weight.grad.numpy())
            net.weight.clear_gradient(zeros)
        return found

    eager, captured = gradients(lambda f: f), gradients(paddle.jit.to_static)
    np.testing.assert_allclose(captured, eager, rtol=1e-6)
