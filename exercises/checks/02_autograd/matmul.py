"""Checks of 02_autograd/matmul."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The two rules of a matrix product, for stacks and vectors too",
    level="hard",
    minutes=45,
    before=("02_autograd/unbroadcast",),
    slots={"ops.matmul.vjp.x": "for_x", "ops.matmul.vjp.y": "for_y"},
    hints=(
        "For two matrices, which products of g with x or y have the right shape? Then: over which "
        "leading axes was an input repeated, and what does that ask of its cotangent?",
        "`t.sum_to(shape)` (minipaddle/engine/ops/var.py) sums what broadcasting repeated. Give a "
        "vector back the axis that matmul gave it (`unsqueeze`), to `g` too, and take it away at "
        "the end.",
        "for_x:  if y is a vector: y and g get a last axis\n"
        "        if x is a vector: g gets an axis before its last\n"
        "        t = g @ (y with its last two axes exchanged: y.mT)\n"
        "        return t summed to x's shape\n"
        "for_y:  the same with x.mT @ g, and a y that is a vector loses its last axis",
    ),
    wrong={
        "forgetting to transpose y": "column.mT → column",
        "forgetting to transpose x": "row.mT → row",
        "exchanging the factors": "paddle.matmul(row.mT, g) → paddle.matmul(g, row.mT)",
        "not summing over the stacks that x was repeated for": (
            "products.sum_to(x_spec.shape) → products"
        ),
        "not summing over the stacks that y was repeated for": (
            "products.sum_to(y_spec.shape) → products"
        ),
        "transposing every axis of y, the stack's too": "column.mT → column.T",
        "transposing every axis of x, the stack's too": "row.mT → row.T",
        "a column y without its second axis": "y.unsqueeze(-1) if len(y.shape) == 1 else y → y",
        "a row x without its first axis": "x.unsqueeze(0) if len(x.shape) == 1 else x → x",
        "no axis for an x that is a vector": "len(x_shape) == 1 → False",
        "no axis for a y that is a vector": "len(y_shape) == 1 → False",
        "cutting the rule off the tape: no second derivative": (
            "products.sum_to(x_spec.shape) → products.detach().sum_to(x_spec.shape)"
        ),
    },
    unkillable={
        "column = y.unsqueeze(-1) if len(y.shape) == 1 else y → "
        "column = y.unsqueeze(+1) if len(y.shape) == 1 else y": "after a vector's only axis, place "
        "-1 is place 1",
    },
)


@exercise.mistake("keeping all of x where its shape is enough")
def for_x(g, x, y):
    g = g.unsqueeze(-1) if len(y.shape) == 1 else g
    g = g.unsqueeze(-2) if len(x.shape) == 1 else g
    return paddle.matmul(g, (y.unsqueeze(-1) if len(y.shape) == 1 else y).mT).sum_to(x.shape)


SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 2)),
    ((2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 2)),
    ((1, 2, 3), (2, 3, 1)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 1, 1, 3), (1, 2, 3, 1)),
    ((2, 1, 1, 1, 1, 2, 3), (1, 2, 1, 1, 1, 3, 1)),
]


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, size=shape).astype("float64")


def rules(yours, x, y, g):
    """Your two cotangents for arrays."""
    x, y, g = (paddle.to_tensor(a) for a in (x, y, g))
    return yours.for_x(g, x.spec, y), yours.for_y(g, x, y.spec)


@exercise.example
def two_matrices(yours):
    """Z = X @ Y: g @ Yᵀ for X, Xᵀ @ g for Y. Square ones first, where a missing ᵀ still fits."""
    for n, k, m in ((2, 2, 2), (2, 3, 4), (1, 3, 1)):
        x, y, g = numbers((n, k)), numbers((k, m), 1), numbers((n, m), 2)
        gx, gy = rules(yours, x, y, g)
        expect(gx, g @ y.T, given={"x": x, "y": y, "g": g})
        expect(gy, x.T @ g, given={"x": x, "y": y, "g": g})


@exercise.example
def one_matrix_for_a_whole_stack(yours):
    """Five matrices times the same y: y receives the sum of five products; and the other way."""
    x, y, g = numbers((5, 2, 3)), numbers((3, 4), 1), numbers((5, 2, 4), 2)
    gx, gy = rules(yours, x, y, g)
    expect(gx, np.einsum("bnm,km->bnk", g, y), given={"x": [5, 2, 3], "y": [3, 4]})
    expect(gy, np.einsum("bnk,bnm->km", x, g), given={"x": [5, 2, 3], "y": [3, 4]})
    x, y, g = numbers((2, 3)), numbers((5, 3, 4), 1), numbers((5, 2, 4), 2)
    gx, gy = rules(yours, x, y, g)
    expect(gx, np.einsum("bnm,bkm->nk", g, y), given={"x": [2, 3], "y": [5, 3, 4]})
    expect(gy, np.einsum("nk,bnm->bkm", x, g), given={"x": [2, 3], "y": [5, 3, 4]})


@exercise.example
def vectors(yours):
    """An x of shape [3] is a row, a y of shape [3] a column; g lacks the axis that was added."""
    x, y, a = numbers(3), numbers(3, 1), numbers((3, 2), 2)
    given = {"x": x, "y": y, "a": a}
    gx, gy = rules(yours, x, y, np.array(2.0))
    expect((gx, gy), (2 * y, 2 * x), given=given, why="a row times a column")
    g = np.array([1.0, 10.0])
    gx, gy = rules(yours, x, a, g)
    expect((gx, gy), (a @ g, np.outer(x, g)), given=given, why="a row times a matrix")
    gx, gy = rules(yours, a.T, y, g)
    expect((gx, gy), (np.outer(g, y), a @ g), given=given, why="a matrix times a column")
    x, g = numbers((2, 2, 3)), numbers((2, 2), 1)
    gx, gy = rules(yours, x, y, g)
    right = np.einsum("bn,k->bnk", g, y), np.einsum("bnk,bn->k", x, g)
    expect((gx, gy), right, given={"x": x, "y": y}, why="a stack times a column")


@exercise.property(shapes=st.sampled_from(SHAPES), seed=st.integers(0, 99), examples=20)
def as_finite_differences_say(yours, shapes, seed):
    """The engine's matmul on your rules, for every mixture of matrices, stacks and vectors."""
    x, y = numbers(shapes[0], seed), numbers(shapes[1], seed + 1)
    with exercise.plugged(yours):
        expect_gradients(paddle.matmul, [x, y])


@exercise.example
def the_second_derivative(yours):
    """A rule made of tensor operations can be differentiated too."""
    with exercise.plugged(yours):
        arrays = [numbers((2, 3)), numbers((3, 2), 2)]
        expect_gradients(lambda x, y: paddle.matmul(x, y) ** 2, arrays, order=2)


@exercise.example
def only_what_is_needed_is_kept(yours):
    """With x alone wanting a gradient, the tape keeps y and not x."""
    with exercise.plugged(yours):
        values, out, _ = OPS["matmul"].saves[0b01]
        got = {"inputs kept": list(values), "result kept": out}
        expect_that(values == (1,) and not out, "for_x asks for y and the shape of x", got=got)
        values, out, _ = OPS["matmul"].saves[0b10]
        got = {"inputs kept": list(values), "result kept": out}
        expect_that(values == (0,) and not out, "for_y asks for x and the shape of y", got=got)


@exercise.example
def attention_learns_with_it(yours):
    """Self-attention is products of stacks; it learns to copy the first of five tokens."""
    with exercise.plugged(yours):
        paddle.seed(0)
        attend = nn.MultiHeadAttention(8, 2)
        x = paddle.randn([4, 5, 8])
        adam = paddle.optimizer.Adam(learning_rate=0.02, parameters=attend.parameters())
        losses = []
        for _ in range(30):
            loss = ((attend(x) - x[:, :1]) ** 2).mean()
            loss.backward()
            adam.step()
            adam.clear_grad()
            losses.append(loss.item())
    expect_that(losses[-1] < 0.5 * losses[0], "half the loss after 30 steps", got=losses[::10])


def spec(*shape):
    return Spec(shape, np.dtype("float64"))


def stacks(n, *front):
    """The shapes of two stacks of matrices, n rows each."""
    return [(*front, n, 4), (*front, n, 4)]


OPTIONS = {"large": stacks(20, 2), "empty": stacks(3, 0), "infinite": [np.inf], "tensors": True}

exercise.holds(
    lambda yours, g, y: yours.for_x(g, spec(*g.shape[:-1], y.shape[-2]), y),
    lambda g, y: np.einsum("...nm,...km->...nk", g, y),
    stacks(3, 2),
    **OPTIONS,
)
exercise.holds(
    lambda yours, g, x: yours.for_y(g, x, spec(*x.shape[:-2], x.shape[-1], g.shape[-1])),
    lambda g, x: np.einsum("...nk,...nm->...km", x, g),
    stacks(3, 2),
    **OPTIONS,
)
