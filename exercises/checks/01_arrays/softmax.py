"""Checks of 01_arrays/softmax."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import softmax as reference

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that
from minipaddle.learn.simulated_device import DeviceArray, DeviceModule

exercise = Exercise(
    title="Scores to probabilities, without overflow",
    level="easy",
    minutes=15,
    slots={"ops.softmax.body": "softmax"},
    hints=(
        "e^(x - c) = e^x / e^c. What becomes of the quotient if all scores of one sum lose the "
        "same c, and which c makes the largest exponent 0?",
        "m.max and m.sum take axis= and keepdims=True, which leaves an axis of size 1: it "
        "broadcasts against x again.",
        "c = the largest score along the axis, the axis kept\n"
        "e = exp of (x - c)\n"
        "return e over its sum along the axis, the axis kept",
    ),
    wrong={
        "forgetting to subtract the maximum": "x - top → x",
        "one maximum for the whole array": "m.max(x, axis=axis, keepdims=True) → m.max(x)",
        "subtracting the mean": "m.max → m.mean",
        "subtracting the minimum": "m.max → m.min",
        "dividing by the sum of everything": (
            "m.sum(weights, axis=axis, keepdims=True) → m.sum(weights)"
        ),
        "losing the axis of the sum": (
            "m.sum(weights, axis=axis, keepdims=True) → m.sum(weights, axis=axis)"
        ),
        "always the last axis": (
            "m.max(x, axis=axis, keepdims=True) → m.max(x, axis=-1, keepdims=True)",
            ("m.sum(weights, axis=axis, keepdims=True) → m.sum(weights, axis=-1, keepdims=True)"),
        ),
        "writing into x": "weights = m.exp(x - top) → x -= top; weights = m.exp(x)",
        "NumPy instead of m": "m.exp → __import__('numpy').exp",
    },
)


@np.errstate(all="ignore")
def called(yours, x, **axis):
    """The reader's body on NumPy, quiet as the engine is."""
    return yours.softmax(np, x, **axis)


@exercise.example
def one_to_three(yours):
    """e^0 : e^(log 3) = 1 : 3."""
    x = np.log([[1.0, 3.0], [2.0, 2.0]])
    expect(called(yours, x), [[0.25, 0.75], [0.5, 0.5]], given={"x": x})
    x = x[:, :, None] * [1, 1]
    expect(called(yours, x), np.full((2, 2, 2), 0.5), given={"x": x})


@exercise.example
def huge_scores(yours):
    """e^1000 is no float, nor is 1 / e^-1000; their softmax is as ordinary as any."""
    for x, expected in [
        ([[400.0, -400.0]], [[1.0, 0.0]]),
        ([[800.0, 0.0]], [[1.0, 0.0]]),
        ([[1e4, 1e4], [-1e4, -1e4]], [[0.5, 0.5], [0.5, 0.5]]),
        ([[1e4, -1e4, 1e4]], [[0.5, 0.0, 0.5]]),
    ]:
        why = f"other values for {x}"
        expect(called(yours, np.array(x)), expected, given={"x": x}, why=why)


@exercise.example
def down_the_columns(yours):
    """axis=0: every column sums to 1."""
    x = np.log([[1.0, 1.0], [3.0, 1.0]])
    expect(called(yours, x, axis=0), [[0.25, 0.5], [0.75, 0.5]], given={"x": x, "axis": 0})


@exercise.example
def x_stays_as_it_is(yours):
    """The array you are given is the memory of somebody's tensor."""
    x = np.array([[1.0, 2.0]])
    called(yours, x)
    expect(x, [[1.0, 2.0]], given={"x before": [[1.0, 2.0]]}, why="x was written into")


@exercise.example
def on_another_device(yours):
    """The same lines, given an `m` that is not NumPy and arrays that NumPy cannot read."""
    x = np.array([[0.0, 1.0], [2.0, 2.0]])
    try:
        y = yours.softmax(DeviceModule(), DeviceArray(x), axis=1)
    except TypeError as error:
        expect_that(False, "nothing but m's functions and x's own methods", got=str(error))
    expect_that(isinstance(y, DeviceArray), "a result that lives where x does", got=y)
    expect(y._array, reference(x, axis=1), given={"x": x, "axis": 1})


KINDS = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}


@exercise.property(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    size=st.sampled_from([1.0, 100.0, 1e4]),
    kind=st.sampled_from(sorted(KINDS)),
    last=st.integers(0, 2),
    back=st.booleans(),
    seed=st.integers(0, 99),
    examples=50,
)
def in_the_engine(yours, shape, size, kind, last, back, seed):
    """paddle.nn.functional.softmax on your body: any axis, any size, any floating dtype."""
    axis = last % len(shape) - len(shape) * back
    x = paddle.to_tensor(np.random.default_rng(seed).normal(0, size, shape), dtype=kind)
    given = {"x": x, "axis": axis}
    with exercise.plugged(yours):
        y = F.softmax(x, axis=axis)
    expect_that(y.dtype == x.dtype, f"a result of {x.dtype}", given=given, got=y.dtype)
    exact = reference(x.astype("float64").numpy(), axis=axis)
    expect(y.astype("float64"), exact, given=given, rtol=KINDS[kind], atol=KINDS[kind])


@exercise.example
def gradients_flow_through_it(yours):
    """The engine's derivative takes the result of your body, so it must be exact."""
    x = np.random.default_rng(0).normal(size=(2, 3))
    with exercise.plugged(yours):
        expect_gradients(lambda x: (F.softmax(x, axis=0) * F.softmax(x)).sum(), [x])


@exercise.example
def a_model_learns_with_it(yours):
    """Three clouds of points, a linear layer: the loss has your softmax in every gradient."""
    random = np.random.default_rng(0)
    label = np.arange(60) % 3
    points = random.normal(size=(60, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[label]
    x, labels = paddle.to_tensor(points, dtype="float32"), paddle.to_tensor(label)
    layer = paddle.nn.Linear(2, 3)
    sgd = paddle.optimizer.SGD(0.2, parameters=layer.parameters())
    with exercise.plugged(yours):
        for _ in range(100):
            F.cross_entropy(layer(x), labels).backward()
            sgd.step()
            sgd.clear_grad()
    share = float((layer(x).argmax(-1).numpy() == label).mean())
    expect_that(share > 0.95, "over 95 % of the points in the right cloud", got=share)


exercise.holds(
    lambda yours, x: called(yours, x, axis=1),
    lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    [(3, 4)],
    large=[(30, 40)],
    empty=[(0, 4)],
    infinite=[-np.inf],
)
