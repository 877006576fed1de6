"""Checks of 02_autograd/operator."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import expit

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="An operator's formula and its derivative",
    level="easy",
    minutes=20,
    before=("00_five_minutes/relu",),
    slots={"ops.silu.body": "silu", "ops.silu.vjp": "silu_rule"},
    hints=(
        "silu is a product of two factors that both depend on x. What does the product rule say, "
        'and where does g, "how much the loss changes with the result", come in?',
        'Look at `viz.code("tanh", "sigmoid")`: a formula in `m`, a rule in tensors. Where the '
        "formula takes exp from `m`, the rule can call `F.sigmoid`.",
        "silu:       s = 1 / (1 + exp(-x));  return x * s\n"
        "silu_rule:  s = sigmoid(x)\n"
        "            slope = s + x * (derivative of sigmoid, in s)\n"
        "            return g * slope",
    ),
    wrong={
        "leaving out the second term of the product rule": "s * (1 + x * (1 - s)) → s",
        "leaving out the first term of the product rule": "1 + x * (1 - s) → x * (1 - s)",
        "forgetting the chain rule: g is not used": "g * slope → slope",
        "a wrong sign in the derivative of the sigmoid": "1 + x * (1 - s) → 1 - x * (1 - s)",
        "computing the sigmoid alone": "x * sigmoid → sigmoid",
        "a sigmoid with the sign of x turned round": "m.exp(-x) → m.exp(x)",
        "cutting the rule off the tape: no second derivative": (
            "F.sigmoid(x) → F.sigmoid(x.detach())"
        ),
    },
)

numbers = st.lists(st.integers(-24, 24).map(lambda k: k / 4), min_size=1, max_size=4)


@exercise.example
def the_formula(yours):
    """silu(0) = 0, silu(x) is nearly x for large x, and nearly 0 for very negative x."""
    for x in (0.0, 1.0, -1.0, 20.0, -20.0):
        expect(yours.silu(np, np.array([x])), [x * expit(x)], given={"x": x})


@exercise.example
def the_rule(yours):
    """At 0 the slope is σ(0) = 1/2, so g = 2 becomes 1."""
    for x, g in ((0.0, 2.0), (1.0, 1.0), (-2.0, 3.0)):
        s = expit(x)
        got = yours.silu_rule(paddle.to_tensor([g]), paddle.to_tensor([x]))
        expect(got, [g * (s + x * s * (1 - s))], given={"g": g, "x": x}, rtol=1e-5)


@exercise.property(x=numbers)
def as_finite_differences_say(yours, x):
    """The engine's silu, on your formula and your rule, against central differences."""
    with exercise.plugged(yours):
        expect(F.silu(paddle.to_tensor(x, dtype="float64")), x * expit(x), given={"x": x})
        expect_gradients(F.silu, [np.array(x)])


@exercise.example
def the_second_derivative(yours):
    """The rule is made of tensor operations, so backward can walk through it too."""
    with exercise.plugged(yours):
        expect_gradients(F.silu, [np.array([-1.5, 0.0, 0.5, 3.0])], order=2)


@exercise.example
def large_numbers(yours):
    """Far to the left the result is 0, far to the right x, in float32 too, and no nan between."""
    x = [-200.0, -90.0, 90.0, 200.0]
    with exercise.plugged(yours):
        t = paddle.to_tensor(x, stop_gradient=False)
        y = F.silu(t)
        y.sum().backward()
    expect(y, [0.0, 0.0, 90.0, 200.0], given={"x": x})
    expect(t.grad, [0.0, 0.0, 1.0, 1.0], given={"x": x})


@exercise.example
def a_network_learns_with_it(yours):
    """Two layers with silu between them fit a parabola."""
    x = paddle.linspace(-1, 1, 32).reshape([-1, 1])
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(1, 16), nn.Silu(), nn.Linear(16, 1))
        adam = paddle.optimizer.Adam(learning_rate=0.03, parameters=net.parameters())
        for _ in range(150):
            loss = F.mse_loss(net(x), x * x)
            loss.backward()
            adam.step()
            adam.clear_grad()
    expect_that(loss.item() < 0.005, "a loss below 0.005 after 150 steps", got=loss.item())


SHAPES = {"large": [(40, 30)] * 2, "empty": [(0, 3)] * 2}

exercise.holds(
    lambda yours, x: yours.silu(np, x),
    lambda x: x * expit(x),
    [(3, 4)],
    large=[(40, 30)],
    empty=[(0, 3)],
    infinite=[np.inf],
)
exercise.holds(
    lambda yours, g, x: yours.silu_rule(g, x),
    lambda g, x: g * expit(x) * (1 + x * (1 - expit(x))),
    [(3, 4), (3, 4)],
    infinite=[np.inf],
    tensors=True,
    **SHAPES,
)
