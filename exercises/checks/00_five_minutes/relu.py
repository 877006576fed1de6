"""Checks of 00_five_minutes/relu."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The derivative of relu",
    level="easy",
    minutes=10,
    slots={"ops.relu.vjp": "relu"},
    hints=(
        "If x is -3 and moves a little, does max(x, 0) move? And if x is 3?",
        "`out` tells the two cases apart: it is above 0 exactly where x was. paddle.where chooses "
        "element by element.",
        "where out is above 0: g\nelsewhere: 0",
    ),
    wrong={
        "letting everything pass": "paddle.where(out > 0, g, 0.0) → g",
        "the two cases exchanged": "paddle.where(out > 0, g, 0.0) → paddle.where(out > 0, 0.0, g)",
        "looking at the sign of g": "out → g",
        "multiplying by out": "paddle.where(out > 0, g, 0.0) → g * out",
        "forgetting g": "paddle.where(out > 0, g, 0.0) → paddle.where(out > 0, 1.0, 0.0)",
        "a leaky relu": "0.0 → 0.1 * g",
    },
)


def through(x, scale=1.0):
    """The gradient that arrives at x when the loss is the sum of scale * relu(x)."""
    x = paddle.to_tensor(x, dtype="float64", stop_gradient=False)
    (F.relu(x) * paddle.to_tensor(scale, dtype="float64")).sum().backward()
    return x.grad


@exercise.example
def the_example(yours):
    """Where out is 0 nothing passes; elsewhere g passes as it is, whatever its sign."""
    g, out = paddle.to_tensor([5.0, 5.0, -2.0]), paddle.to_tensor([0.0, 3.0, 1.0])
    expect(yours.relu(g, out), [0.0, 5.0, -2.0], given={"g": [5, 5, -2], "out": [0, 3, 1]})


@exercise.example
def at_zero_nothing_passes(yours):
    """x = 0 gives out = 0, as every negative x does."""
    with exercise.plugged(yours):
        expect(through([0.0]), [0.0], given={"x": [0.0]})


numbers = st.floats(-3, 3).map(lambda v: round(v, 1))
shapes = st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple)
inputs = shapes.flatmap(lambda shape: arrays.arrays("float64", shape, elements=numbers))


@exercise.property(x=inputs)
def in_the_engine(yours, x):
    """Backward through the engine's relu, which now asks your rule."""
    scale = np.arange(x.size).reshape(x.shape) - 1.5
    with exercise.plugged(yours):
        expect(through(x, scale), np.heaviside(x, 0.0) * scale, given={"x": x, "g": scale})


@exercise.example
def as_nudging_says(yours):
    """Nudge the input a little and see how far the output moves; and its gradient, in turn."""
    with exercise.plugged(yours):
        program = lambda x: (F.relu(x) * x * 3.0).sum()
        expect_gradients(program, [np.array([-1.5, -0.5, 0.5, 2.0])], order=2)


@exercise.example
def a_network_learns(yours):
    """Whether two signs agree: no line can say it, four units and your rule can."""
    paddle.seed(1)
    x = paddle.to_tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = paddle.to_tensor([[0.0], [1.0], [1.0], [0.0]])
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(150):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
    expect_that(loss.item() < 0.01, "a loss below 0.01 after 150 steps", got=loss.item())


exercise.holds(
    lambda yours, g, x: yours.relu(g, x.clip(min=0.0)),
    lambda g, x: np.where(x > 0, g, 0.0),
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 3), (0, 3)],
    infinite=[np.inf, -np.inf],
    tensors=True,
)
