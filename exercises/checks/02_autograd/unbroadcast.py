"""Checks of 02_autograd/unbroadcast."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The derivative of repeating is summing",
    level="medium",
    minutes=20,
    before=("01_arrays/broadcast_shapes",),
    slots={"autograd.sum_to": "sum_to"},
    hints=(
        "Write a few shapes that broadcast to [2, 3] under it, lined up at the last axis. In which "
        "two ways can an axis have been repeated?",
        "The walk calls it in `fit` (minipaddle/engine/core/grad.py). `t.sum(axis=..., "
        "keepdim=True)` keeps the axis it sums, with size 1.",
        "while g has more axes than shape: sum its first axis away\n"
        "for each axis of shape whose size is 1:\n"
        "    sum g over it, and keep the axis",
    ),
    wrong={
        "summing the last axes instead of the first": "g.sum(axis=0) → g.sum(axis=-1)",
        "losing the axis of size 1": "g.sum(axis=axis, keepdim=True) → g.sum(axis=axis)",
        "forgetting the stretched axes": "size == 1 → False",
        "forgetting the axes in front": "range(extra) → range(0)",
        "taking the mean instead of the sum": "g.sum(axis=0) → g.mean(axis=0)",
        "taking one copy instead of the sum of all": "g.sum(axis=0) → g[0]",
        "cutting the sum off the tape: no second derivative": "return g → return g.detach()",
    },
)

axes = st.lists(st.integers(1, 3), max_size=3)


@exercise.example
def a_bias_in_every_row(yours):
    """Each column of g holds the cotangents of one element of the bias: they add up."""
    g = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    for shape, expected in (
        ((3,), [3.0, 5.0, 7.0]),
        ((1, 3), [[3.0, 5.0, 7.0]]),
        ((2, 1), [[3.0], [12.0]]),
        ((1, 1), [[15.0]]),
        ((1,), [15.0]),
        ((), 15.0),
        ((2, 3), g),
    ):
        got = yours.sum_to(paddle.to_tensor(g), shape)
        expect(got, expected, given={"g": g, "shape": shape})


@exercise.example
def nothing_to_add_up(yours):
    """An axis of size 0 was repeated no times at all: the sum of nothing is 0."""
    got = yours.sum_to(paddle.ones([2, 3, 1, 2, 1, 1, 1, 2]), (3, 1, 1, 1, 1, 1, 2))
    expect(got, np.full((3, 1, 1, 1, 1, 1, 2), 4.0), given={"g": "ones of eight axes"})
    got = yours.sum_to(paddle.zeros([0, 3]), (1, 3))
    expect(got, np.zeros((1, 3)), given={"g": "zeros of shape [0, 3]", "shape": (1, 3)})


@exercise.property(full=axes, front=axes, ones=st.lists(st.booleans(), min_size=3, max_size=3))
def broadcasting_and_summing_are_adjoint(yours, full, front, ones):
    """⟨broadcast x, g⟩ = ⟨x, sum_to g⟩ for every x: that is what being its adjoint means."""
    shape = tuple(1 if one else n for n, one in zip(full, ones, strict=False))
    rng = np.random.default_rng(len(shape))
    g, x = rng.normal(size=(*front, *full)), rng.normal(size=shape)
    got = yours.sum_to(paddle.to_tensor(g), shape)
    given = {"shape of g": g.shape, "shape": shape}
    expect(got.shape, list(shape), given=given, why="the shape of the result")
    expect((got.numpy() * x).sum(), (np.broadcast_to(x, g.shape) * g).sum(), given=given,
           why="⟨x, sum_to g⟩ differs from ⟨broadcast x, g⟩")  # fmt: skip


@exercise.property(
    shapes=st.sampled_from([((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((1, 2, 1), (3, 1, 2))])
)
def as_finite_differences_say(yours, shapes):
    """x * y of the engine, where either is repeated."""
    rng = np.random.default_rng(0)
    with exercise.plugged(yours):
        expect_gradients(lambda x, y: x * y, [rng.normal(size=s) for s in shapes])


@exercise.example
def the_second_derivative(yours):
    """Gradients of gradients pass through the sum as well."""
    with exercise.plugged(yours):
        expect_gradients(lambda x, b: (x * b).tanh(), [np.ones((2, 2)), np.array([[0.5], [1.0]])],
                         order=2)  # fmt: skip


@exercise.example
def a_normalised_network_learns_with_it(yours):
    """Scales and shifts of a layer written by hand are repeated in every row of a batch."""
    with exercise.plugged(yours):
        paddle.seed(0)
        x = paddle.randn([16, 4])
        scale, shift = paddle.ones([4]), paddle.zeros([1, 1])
        scale.stop_gradient = shift.stop_gradient = False
        out = nn.Linear(4, 1)
        sgd = paddle.optimizer.SGD(0.1, parameters=[scale, shift, *out.parameters()])
        for _ in range(60):
            loss = F.mse_loss(out(x * scale + shift), x[:, :1] * 3 + 1)
            loss.backward()
            sgd.step()
            sgd.clear_grad()
    expect_that(loss.item() < 0.02, "a loss below 0.02 after 60 steps", got=loss.item())


exercise.holds(
    lambda yours, g: yours.sum_to(g, tuple(g.shape[1:])),
    lambda g: g.sum(0),
    [(3, 4)],
    large=[(30, 40)],
    empty=[(0, 3)],
    infinite=[np.inf],
    tensors=True,
)
