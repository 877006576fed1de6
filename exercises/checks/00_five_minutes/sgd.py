"""Checks of 00_five_minutes/sgd."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="One step downhill",
    level="easy",
    minutes=5,
    slots={"optimizer.sgd": "sgd"},
    hints=(
        "If g is positive, the loss grows when p grows. In which direction should p move?",
        "The formula is in the task. Tensors know +, - and *; the result is a new tensor.",
        "return p minus (lr times g)",
    ),
    wrong={
        "climbing instead of descending": "p - lr * g → p + lr * g",
        "forgetting the learning rate": "lr * g → g",
        "looking only at the sign of g": "lr * g → lr * g.sign()",
        "giving the step, not the new value": "p - lr * g → -lr * g",
        "dividing by the learning rate": "lr * g → g / lr",
        "shrinking p along with the step": "p - lr * g → (p - lr * g) * (1 - lr)",
        "exchanging p and g": "p - lr * g → g - lr * p",
        "writing into p itself": "return p - lr * g → p.subtract_(lr * g); return p",
    },
)


@exercise.example
def the_example(yours):
    """Against g, and a tenth as far."""
    p, g, lr = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([10.0, -10.0]), paddle.to_tensor(0.1)
    given = {"p": [1.0, 2.0], "g": [10.0, -10.0], "lr": 0.1}
    expect(yours.sgd(p, g, lr), [0.0, 3.0], given=given, atol=1e-6)
    expect(p, [1.0, 2.0], given=given, why="p itself was written into; return a new value")


@exercise.property(p=st.integers(-9, 9), g=st.integers(-9, 9), lr=st.sampled_from([0.5, 0.25, 1.0]))
def in_the_optimizer(yours, p, g, lr):
    """paddle.optimizer.SGD takes one step with your rule."""
    w = paddle.create_parameter(
        [2], "float64", default_initializer=nn.initializer.Assign([p, p + 1.0])
    )
    optimizer = paddle.optimizer.SGD(learning_rate=lr, parameters=[w])
    (w * float(g)).sum().backward()
    with exercise.plugged(yours):
        optimizer.step()
    expect(w, np.array([p, p + 1.0]) - lr * g, given={"p": [p, p + 1.0], "g": [g, g], "lr": lr})


@exercise.example
def a_line_is_found(yours):
    """Points on y = 2x + 1; a hundred of your steps find the 2 and the 1."""
    paddle.seed(0)
    x = paddle.to_tensor([[-1.0], [0.0], [1.0], [2.0]])
    net = nn.Linear(1, 1)
    optimizer = paddle.optimizer.SGD(learning_rate=0.2, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(100):
            F.mse_loss(net(x), 2 * x + 1).backward()
            optimizer.step()
            optimizer.clear_grad()
    found = [net.weight.item(), net.bias.item()]
    close = np.allclose(found, [2.0, 1.0], atol=1e-3)
    expect_that(close, "weight 2 and bias 1 after a hundred steps", got=found)


exercise.holds(
    lambda yours, p, g: yours.sgd(p, g, paddle.to_tensor(0.1, dtype=p.dtype)),
    lambda p, g: p - 0.1 * g,
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 3), (0, 3)],
    infinite=[np.inf],
    tensors=True,
)
