"""Checks of 04_training/adam."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Adam, from the first step on",
    level="medium",
    minutes=25,
    before=("04_training/sgd_momentum",),
    slots={"optimizer.adam": "adam"},
    hints=(
        "If g is the same in every step, what are m and v after the first one? What must they be "
        "divided by to be g and g²?",
        "Chapter 4, 'Three ways down a valley': the same rule with a count of steps. Here beta^t "
        "comes in ready, as power1 and power2.",
        "m, v = the two averages, renewed\n"
        "p = p - lr * (m / (1 - power1)) / (sqrt(v / (1 - power2)) + epsilon)\n"
        "return p, m, v, both powers times their betas",
    ),
    wrong={
        "forgetting the bias correction": (
            "moment1 / (1 - power1) → moment1",
            "moment2 / (1 - power2) → moment2",
        ),
        "correcting by one step too many": (
            "1 - power1 → 1 - power1 * beta1",
            "1 - power2 → 1 - power2 * beta2",
        ),
        "correcting as in the first step for ever": (
            "1 - power1 → 1 - beta1",
            "1 - power2 → 1 - beta2",
        ),
        "handing back the corrected averages": (
            "(p, moment1, moment2, power1 * beta1, power2 * beta2) → (p, mean, square, power1 "
            "* beta1, power2 * beta2)"
        ),
        "not moving the powers on": (
            "(p, moment1, moment2, power1 * beta1, power2 * beta2) → (p, moment1, moment2, "
            "power1, power2)"
        ),
        "epsilon inside the root": "paddle.sqrt(square) + epsilon → paddle.sqrt(square + epsilon)",
        "forgetting the root": "paddle.sqrt(square) → square",
        "averaging g instead of g²": "(1 - beta2) * g → 1 - beta2",
        "exchanging the betas": (
            "beta1 * moment1 + (1 - beta1) * g → beta2 * moment1 + (1 - beta2) * g",
            "beta2 * moment2 + (1 - beta2) * g * g → beta1 * moment2 + (1 - beta1) * g * g",
        ),
        "adding g without 1 - beta1": "(1 - beta1) * g → g",
        "climbing": (
            "p - lr * mean / (paddle.sqrt(square) + epsilon) → p + lr * mean / "
            "(paddle.sqrt(square) + epsilon)"
        ),
    },
)  # fmt: skip


def tensor(x):
    return paddle.to_tensor(x, dtype="float64")


def paper(p, grads, lr, beta1, beta2, epsilon):
    """p after every gradient: algorithm 1 of the paper in NumPy's float64, with a count t."""
    m = v = np.zeros_like(p)
    seen = []
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        p = p - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        seen.append(p)
    return seen


@exercise.example
def the_example(yours):
    """The first step of the task."""
    given = {"p": 1.0, "g": 4.0, "lr": 0.5, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.0}
    p, g, m, v = tensor([1.0]), tensor([4.0]), tensor([0.0]), tensor([0.0])
    found = yours.adam(
        p, g, tensor(0.5), m, v, tensor(0.9), tensor(0.99), beta1=0.9, beta2=0.99, epsilon=0.0
    )
    expect(found, [[0.5], [0.4], [0.16], 0.81, 0.9801], given=given)
    expect([p, m, v], [[1.0], [0.0], [0.0]], given=given, why="a tensor given was written into")


@exercise.property(
    seed=st.integers(0, 99),
    steps=st.integers(1, 20),
    beta1=st.sampled_from([0.9, 0.5, 0.0]),
    beta2=st.sampled_from([0.999, 0.75]),
    epsilon=st.sampled_from([1e-8, 0.5]),
)
def as_the_paper_says(yours, seed, steps, beta1, beta2, epsilon):
    """paddle.optimizer.Adam on your rule: two parameters, up to 20 steps, float64."""
    rng = np.random.default_rng(seed)
    starts = [rng.normal(size=2).round(1), rng.normal(size=(1, 2)).round(1)]
    grads = [[rng.normal(size=p.shape).round(1) for _ in range(steps)] for p in starts]
    given = {"starts": starts, "gradients": grads, "lr": 0.5, "beta1": beta1, "beta2": beta2}
    params = [
        paddle.create_parameter(p.shape, "float64", default_initializer=nn.initializer.Assign(p))
        for p in starts
    ]
    optimizer = paddle.optimizer.Adam(0.5, beta1, beta2, epsilon, parameters=params)
    with exercise.plugged(yours):
        for k in range(steps):
            sum((p * tensor(g[k])).sum() for p, g in zip(params, grads)).backward()
            optimizer.step()
            optimizer.clear_grad()
            for p, start, g in zip(params, starts, grads):
                expected = paper(start, g[: k + 1], 0.5, beta1, beta2, epsilon)[-1]
                expect(p, expected, given={**given, "epsilon": epsilon, "step": k + 1})


@exercise.example
def a_hundred_times_the_gradient(yours):
    """Adam measures each parameter by itself: scaling the loss does not change the path."""
    paths = []
    for scale in (1.0, 100.0):
        w = paddle.create_parameter(
            [1], "float64", default_initializer=nn.initializer.Constant(2.0)
        )
        optimizer = paddle.optimizer.Adam(0.1, epsilon=0.0, parameters=[w])
        with exercise.plugged(yours):
            for _ in range(20):
                (scale * w * w).sum().backward()
                optimizer.step()
                optimizer.clear_grad()
        paths.append(w.numpy())
    expect(paths[1], paths[0], given={"loss": "w² and 100 w²"})


@exercise.example
def a_network_learns(yours):
    """Exclusive or, with AdamW, which takes the same step after its decay."""
    paddle.seed(1)
    x = paddle.to_tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = paddle.to_tensor([0, 1, 1, 0])
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(60):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    expect_that(loss.item() < 0.1, "a loss below 0.1 after 60 steps", got=loss.item())


def first_step(yours, p, g, m, v):
    """(p, both moments) after the first step, whatever came before."""
    numbers = (paddle.to_tensor(x, dtype=p.dtype) for x in (0.1, 0.9, 0.99))
    lr, *powers = numbers
    return yours.adam(p, g, lr, m, v * v, *powers, beta1=0.9, beta2=0.99, epsilon=1e-3)[:3]


def by_paper(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v * v + 0.01 * g * g
    return p - 0.1 * (m / (1 - 0.9)) / (np.sqrt(v / (1 - 0.99)) + 1e-3), m, v


exercise.holds(
    first_step,
    by_paper,
    [(3, 4)] * 4,
    large=[(40, 30)] * 4,
    empty=[(0, 3)] * 4,
    infinite=[np.inf],
    tensors=True,
)
