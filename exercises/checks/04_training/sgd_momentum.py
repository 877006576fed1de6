"""Checks of 04_training/sgd_momentum."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Momentum, and Nesterov's look ahead",
    level="easy",
    minutes=15,
    before=("00_five_minutes/sgd",),
    slots={"optimizer.momentum": "momentum", "optimizer.nesterov": "nesterov"},
    hints=(
        "A ball rolls: what of its speed is left, and what does the slope add?",
        "Chapter 4, 'Three ways down a valley', has the rule with a state of its own. Here the "
        "velocity comes in and goes out.",
        "v = mu * velocity + g\nmomentum: return p - lr * v, v\n"
        "nesterov: return p - lr * (g + mu * v), v",
    ),
    wrong={
        "plain gradient descent": "(p - lr * velocity, velocity) → (p - lr * g, g)",
        "damping the gradient by 1 - mu": (
            "momentum(): mu * velocity + g → mu * velocity + (1 - mu) * g"
        ),
        "the learning rate inside the velocity": (
            "momentum(): mu * velocity + g → mu * velocity + lr * g",
            "momentum(): lr * velocity → velocity",
        ),
        "handing back the old velocity": (
            "momentum(): velocity = mu * velocity + g → v = mu * velocity + g",
            "momentum(): lr * velocity → lr * v",
        ),
        "climbing": "p - lr * velocity → p + lr * velocity",
        "no look ahead": "g + mu * velocity → velocity",
        "looking ahead with the whole velocity": "g + mu * velocity → g + velocity",
        "writing into the velocity": (
            "momentum(): velocity = mu * velocity + g → velocity.scale_(mu).add_(g)"
        ),
    },
)  # fmt: skip


def tensor(x):
    return paddle.to_tensor(x, dtype="float64")


@exercise.example
def the_example(yours):
    """The numbers of the task."""
    given = {"p": 1.0, "g": 1.0, "lr": 0.5, "velocity": 4.0, "mu": 0.5}
    p, g, lr, velocity = tensor([1.0]), tensor([1.0]), tensor(0.5), tensor([4.0])
    for rule, expected in (("momentum", [[-0.5], [3.0]]), ("nesterov", [[-0.25], [3.0]])):
        found = getattr(yours, rule)(p, g, lr, velocity, mu=0.5)
        expect(found, expected, given={"rule": rule, **given})
    expect((p, velocity), [[1.0], [4.0]], given=given, why="a tensor given was written into")


def by_hand(p, grads, lr, mu, ahead):
    """p after every gradient, in NumPy."""
    velocity, seen = np.zeros_like(p), []
    for g in grads:
        velocity = mu * velocity + g
        p = p - lr * (g + mu * velocity if ahead else velocity)
        seen.append(p)
    return seen


@exercise.property(
    seed=st.integers(0, 99),
    steps=st.integers(1, 6),
    mu=st.sampled_from([0.0, 0.5, 0.9]),
    lr=st.sampled_from([1.0, 0.25]),
    ahead=st.booleans(),
)
def in_the_optimizer(yours, seed, steps, mu, lr, ahead):
    """paddle.optimizer.Momentum on two parameters, each with a velocity of its own."""
    rng = np.random.default_rng(seed)
    starts = [rng.normal(size=2).round(1), rng.normal(size=(1, 3)).round(1)]
    grads = [[rng.normal(size=p.shape).round(1) for _ in range(steps)] for p in starts]
    given = {"starts": starts, "gradients": grads, "lr": lr, "mu": mu, "use_nesterov": ahead}
    params = [
        paddle.create_parameter(p.shape, "float64", default_initializer=nn.initializer.Assign(p))
        for p in starts
    ]
    optimizer = paddle.optimizer.Momentum(lr, mu, parameters=params, use_nesterov=ahead)
    with exercise.plugged(yours):
        for k in range(steps):
            sum((p * tensor(g[k])).sum() for p, g in zip(params, grads)).backward()
            optimizer.step()
            optimizer.clear_grad()
            for p, start, g in zip(params, starts, grads):
                expect(p, by_hand(start, g[: k + 1], lr, mu, ahead)[-1], given=given)


@exercise.example
def a_narrow_valley(yours):
    """u² + 50 v² from (5, 1): with momentum 80 steps are enough, without they are not."""
    for ahead in (False, True):
        w = paddle.create_parameter(
            [2], "float64", default_initializer=nn.initializer.Assign([5.0, 1.0])
        )
        optimizer = paddle.optimizer.Momentum(0.01, 0.8, parameters=[w], use_nesterov=ahead)
        with exercise.plugged(yours):
            for _ in range(80):
                (w * w * tensor([1.0, 50.0])).sum().backward()
                optimizer.step()
                optimizer.clear_grad()
        left = float(np.linalg.norm(w.numpy()))
        expect_that(left < 0.05, "within 0.05 of the lowest point after 80 steps", got=left)


def step(rule):
    """One step of a rule with lr 0.1 and mu 0.9: a function of yours, p, g, velocity."""
    return lambda yours, p, g, v: getattr(yours, rule)(
        p, g, paddle.to_tensor(0.1, dtype=p.dtype), v, mu=0.9
    )


OPTIONS = {"large": [(40, 30)] * 3, "empty": [(0, 3)] * 3, "infinite": [np.inf], "tensors": True}

exercise.holds(
    step("momentum"),
    lambda p, g, v: (p - 0.1 * (0.9 * v + g), 0.9 * v + g),
    [(3, 4)] * 3,
    **OPTIONS,
)
exercise.holds(
    step("nesterov"),
    lambda p, g, v: (p - 0.1 * (g + 0.9 * (0.9 * v + g)), 0.9 * v + g),
    [(3, 4)] * 3,
    **OPTIONS,
)
