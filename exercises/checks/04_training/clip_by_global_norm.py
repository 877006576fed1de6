"""Checks of 04_training/clip_by_global_norm."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="One factor for all gradients",
    level="easy",
    minutes=15,
    slots={"nn.clip_by_global_norm": "clip_by_global_norm"},
    hints=(
        "Which factor makes a vector of length 5 one of length 2.5? And which leaves alone one "
        "that is short enough?",
        "The norm is one number for the whole list: sum the squares of every gradient, then all "
        "the sums, then take the root once. norm.clip(min=...) keeps the factor from exceeding 1.",
        "norm = root of the sum over all g of (g * g).sum()\n"
        "factor = limit / (norm, but at least limit)\nreturn every g times the factor, as a list",
    ),
    wrong={
        "clipping each gradient by itself": (
            "g * factor → g * (limit / (g * g).sum().sqrt().clip(min=limit))"
        ),
        "cutting every element": "g * factor → g.clip(-limit, limit)",
        "lengthening short gradients too": "norm.clip(min=limit) → norm",
        "forgetting the root": (
            "paddle.sqrt(sum(((g * g).sum() for g in grads))) → sum(((g * g).sum() for g in "
            "grads))"
        ),
        "a sum of norms": (
            "paddle.sqrt(sum(((g * g).sum() for g in grads))) → sum((paddle.sqrt((g * "
            "g).sum()) for g in grads))"
        ),
        "scaling to length 1": "limit / norm.clip(min=limit) → 1 / norm.clip(min=limit)",
        "leaving the last gradient out of the norm": (
            "((g * g).sum() for g in grads) → ((g * g).sum() for g in grads[:max(1, len(grads) "
            "- 1)])"
        ),
        "writing into the gradients": "g * factor → g.multiply_(factor)",
        "absolute values instead of squares": "g * g → g.abs()",
    },
)  # fmt: skip


def tensors(arrays):
    return [paddle.to_tensor(a, dtype="float64") for a in arrays]


@exercise.example
def the_example(yours):
    """Length 7 and limit 3.5: everything is halved. Limit 10: nothing happens."""
    arrays = [[2.0, 3.0], [6.0]]
    grads, given = tensors(arrays), {"grads": arrays}
    halved = [[1.0, 1.5], [3.0]]
    expect(yours.clip_by_global_norm(grads, 3.5), halved, given={**given, "limit": 3.5})
    expect(yours.clip_by_global_norm(grads, 10.0), arrays, given={**given, "limit": 10.0})
    expect(grads, arrays, given=given, why="a gradient given was written into")


@exercise.example
def zeros_stay(yours):
    """No direction, no length, no division by zero."""
    expect(yours.clip_by_global_norm(tensors([[0.0, 0.0]]), 1.0), [[0.0, 0.0]], given={"grads": 0})


@exercise.property(
    shapes=st.lists(st.sampled_from([(1,), (2,), (2, 2), ()]), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    limit=st.sampled_from([0.5, 1.0, 2.0, 50.0]),
)
def in_the_engine(yours, shapes, seed, limit):
    """paddle.nn.ClipGradByGlobalNorm, against NumPy's norm of all elements in one vector."""
    rng = np.random.default_rng(seed)
    arrays = [np.round(rng.normal(size=shape) * 2, 1) for shape in shapes]
    length = np.linalg.norm(np.concatenate([a.ravel() for a in arrays]))
    expected = [a * min(1.0, limit / length) if length else a for a in arrays]
    pairs = [(paddle.zeros(a.shape), g) for a, g in zip(arrays, tensors(arrays))]
    with exercise.plugged(yours):
        clipped = nn.ClipGradByGlobalNorm(limit)(pairs)
    expect([g for _, g in clipped], expected, given={"grads": arrays, "limit": limit})


@exercise.example
def no_tensor_is_read(yours):
    """No `if` on a tensor: the decision is left to the numbers."""
    read, tensor = [], type(paddle.ones([1]))
    asked = {name: getattr(tensor, name) for name in ("__bool__", "__float__", "item", "numpy")}
    try:
        for name in asked:
            setattr(tensor, name, lambda self, *_, name=name: read.append(name) or 1.0)
        yours.clip_by_global_norm(tensors([[3.0], [4.0]]), 2.5)
    except TypeError:
        pass  # __bool__ must give a bool: it was asked
    finally:
        for name, method in asked.items():
            setattr(tensor, name, method)
    expect_that(not read, "no tensor turned into a Python number or bool", got=read)


@exercise.example
def a_cliff(yours):
    """w⁴ from w = 3 with rate 0.1 flies off without clipping; with it the walk ends near 0."""
    w = paddle.create_parameter([1], "float64", default_initializer=nn.initializer.Constant(3.0))
    clip = nn.ClipGradByGlobalNorm(5.0)
    optimizer = paddle.optimizer.SGD(0.1, parameters=[w], grad_clip=clip)
    with exercise.plugged(yours):
        for _ in range(30):
            (w**4).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
    expect_that(abs(w.item()) < 0.5, "|w| below 0.5 after 30 steps", got=w.item())


@exercise.example
def a_list_of_ten(yours):
    """As many gradients as a network has."""
    grads = [[float(k)] for k in range(10)]
    given = {"grads": grads, "limit": 1.0}
    right = [[k / np.sqrt(285.0)] for k in range(10)]
    expect(yours.clip_by_global_norm(tensors(grads), 1.0), right, given=given)


def shortened(*arrays):
    length = np.sqrt(sum((a * a).sum() for a in arrays))
    return [a * min(1.0, 0.5 / length) if length else a for a in arrays]


exercise.holds(
    lambda yours, *grads: yours.clip_by_global_norm(grads, 0.5),
    shortened,
    [(3, 4), (2,)],
    large=[(40, 30), (2,)],
    empty=[(0, 3), (2,)],
    tensors=True,
)
