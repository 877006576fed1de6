"""Checks of 02_autograd/accumulate."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_gradients

exercise = Exercise(
    title="A value used twice receives both gradients",
    level="easy",
    minutes=10,
    slots={"autograd.accumulate": "accumulate"},
    hints=(
        "What does the chain rule do with two paths from x to y? And what should a record hold "
        "that only one path has reached so far?",
        "It is called in the loop of `pull_back` (minipaddle/engine/core/grad.py). Note that the "
        "dict may hold the very tensor `g` for another record too.",
        "if the record is in the dict:\n"
        "    put there the sum of what it held and g (a new tensor)\n"
        "otherwise put g there",
    ),
    wrong={
        "forgetting to accumulate: the last one wins": "cotangents[record] + g → g",
        "keeping the first one only": "cotangents[record] = cotangents[record] + g → pass",
        "adding in place, into a tensor that others hold": (
            "cotangents[record] = cotangents[record] + g → cotangents[record].add_(g)"
        ),
        "subtracting": "cotangents[record] + g → cotangents[record] - g",
        "taking the mean": "cotangents[record] + g → (cotangents[record] + g) * 0.5",
        "counting the first contribution twice": (
            "cotangents[record] = g → cotangents[record] = g + g"
        ),
        "cutting what arrived off the tape: no second derivative": (
            "cotangents[record] + g → cotangents[record].detach() + g"
        ),
    },
)


@exercise.example
def the_first_to_arrive(yours):
    """Nothing had arrived: now g has, the very tensor; other records keep what they had."""
    g, other = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([9.0])
    cotangents = {"other": other}
    yours.accumulate(cotangents, "x", g)
    expect(cotangents, {"other": [9.0], "x": [1.0, 2.0]}, given={"g": [1.0, 2.0], "before": {}})


@exercise.example
def used_twice(yours):
    """y = (x + 1) · x · 2 at x = 3: one use of x sends 8, another 6, and dy/dx is 14."""
    cotangents = {}
    for arriving in (8.0, 6.0):
        yours.accumulate(cotangents, "x", paddle.to_tensor(arriving))
    expect(cotangents["x"], 14.0, given={"arriving": [8.0, 6.0]})
    yours.accumulate(cotangents, "x", paddle.to_tensor(-1.0))
    expect(cotangents["x"], 13.0, given={"arriving": [8.0, 6.0, -1.0]})


@exercise.example
def a_shared_tensor_stays_what_it_was(yours):
    """The same g was handed to a and b; then another reaches a. What b holds must not change."""
    g = paddle.to_tensor([1.0])
    cotangents = {}
    for record, arriving in (("a", g), ("b", g), ("a", paddle.to_tensor([10.0]))):
        yours.accumulate(cotangents, record, arriving)
    expect(cotangents, {"a": [11.0], "b": [1.0]}, given={"to a and b": [1.0], "then to a": [10.0]})
    for record in "cdefghi" * 2:
        yours.accumulate(cotangents, record, g)
    expect(len(cotangents), 9, given={"to": "a, b, … i"})
    expect((cotangents["c"], cotangents["i"]), ([2.0], [2.0]), given={"to c and i, twice": [1.0]})


@exercise.example
def a_sum_in_the_engine(yours):
    """y = a + b + 10 a: dy/da = 11, dy/db = 1."""
    with exercise.plugged(yours):
        a, b = (paddle.to_tensor([x], stop_gradient=False) for x in (2.0, 5.0))
        ten = a * 10
        (a + b + ten).backward()
    expect((a.grad, b.grad), ([11.0], [1.0]), given={"y": "a + b + 10 a"})


@exercise.property(powers=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def as_finite_differences_say(yours, powers):
    """A polynomial of x, made of products: x is used as often as it says."""

    def polynomial(x):
        total = x
        for n in powers:
            term = x
            for _ in range(n):
                term = term * x
            total = total + term
        return total

    with exercise.plugged(yours):
        expect_gradients(polynomial, [np.array([0.5, -1.5])], given={"powers": powers})


@exercise.example
def the_second_derivative(yours):
    """The sum is made of tensor operations: gradients of gradients pass it."""
    with exercise.plugged(yours):
        expect_gradients(lambda x: x * x * x.tanh(), [np.array([0.5, -1.0])], order=2)


@exercise.example
def results_of_a_tuple(yours):
    """An operator of several results: what arrives at each of them adds up by itself."""
    with exercise.plugged(yours):
        x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
        a, b, c = paddle.unstack(x)
        (a * b + b * c + c * 10).backward()
    expect(x.grad, [2.0, 4.0, 12.0], given={"x": [1.0, 2.0, 3.0], "y": "x₀x₁ + x₁x₂ + 10x₂"})


@exercise.example
def weights_that_are_shared(yours):
    """A recurrence uses one weight in every step; descending its gradient finds the halving."""
    with exercise.plugged(yours):
        w = paddle.to_tensor([1.0], dtype="float64", stop_gradient=False)
        sgd = paddle.optimizer.SGD(0.05, parameters=[w])
        for _ in range(100):
            h = paddle.to_tensor([1.0], dtype="float64")
            for _ in range(4):
                h = h * w
            ((h - 0.0625) ** 2).backward()
            sgd.step()
            sgd.clear_grad()
    rate, expected = 0.05, 1.0
    for _ in range(100):
        expected -= rate * 2 * (expected**4 - 0.0625) * 4 * expected**3
    expect(w, [expected], given={"the gradient of (w⁴ - 1/16)²": "8 w³ (w⁴ - 1/16)"})


def arriving(yours, *gs):
    """What is held after all of them have arrived."""
    cotangents = {}
    for g in gs:
        yours.accumulate(cotangents, "x", g)
    return cotangents["x"]


exercise.holds(
    arriving,
    lambda f, g: f + g,
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 3), (0, 3)],
    infinite=[np.inf],
    tensors=True,
)
