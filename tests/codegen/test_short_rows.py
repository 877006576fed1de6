"""Reductions along short rows, whose lanes are rows: against the interpreter, and their C."""

import re

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from tests.passes.programs import program_of, results

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def spread(x):
    """Two stages, and results of rows and of elements at each."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    return centred, (centred * centred).mean(-1), mean


FUNCTIONS = {
    "softmax": lambda x: F.softmax(x * 2.0, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "norm": lambda x: x / paddle.sqrt((x * x).sum(-1, keepdim=True) + 1e-3),
    "extremes": lambda x: (x.max(-1), x.min(-1), x - x.max(-1, keepdim=True)),
    "product": lambda x: (x * 0.5).prod(-1),
    "spread": spread,
    "counted": lambda x: (x.astype("int64") * 3).sum(-1),
    "flags": lambda x: (x > 0).astype("float32").sum(-1),
}
SHAPES = [(16, 2), (32, 10), (17, 31), (2, 3, 16, 5), (70_000, 3)]


LANE = re.compile(r"\[lane\d*\]")


def same(function, *arrays, lanes: int, **how) -> None:
    """Compiled, the function has so many kernels with rows as lanes, and the same results."""
    program = program_of(function, *(Spec(a.shape, a.dtype) for a in arrays))
    made = Executable(program)
    texts = [*made.kernels.texts.values()]
    assert sum(bool(LANE.search(text)) for text in texts) == lanes, "\n".join(texts)
    expected = results(program, arrays)
    for a, b in zip(made(program, [*arrays]), expected, strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 2e-5, "atol": 1e-6} | how)


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name, shape):
    same(FUNCTIONS[name], normal(*shape), lanes=1)


def test_narrow_elements_and_whole_vectors_stay_along_the_row():
    """A vector of bytes has more lanes than a block has rows; a row of 16 needs no other form."""
    same(lambda x: x.all(-1), normal(32, 10) > -2, lanes=0)
    same(lambda x: x.sum(-1), normal(32, 16), lanes=0)
    same(lambda x: x.sum(-1), normal(15, 10), lanes=0)
    half = normal(32, 10).astype("float16")
    same(lambda x: F.softmax(x, -1), half, lanes=0, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -0.0])
def test_numbers_of_every_kind(number):
    """Each row has its own results: one that is not finite leaves the other rows as they are."""
    x = normal(40, 10)
    x[3, 7], x[20], x[21, 0] = number, number, -number
    same(FUNCTIONS["extremes"], x, lanes=1)
    same(FUNCTIONS["softmax"], x, lanes=1)


@pytest.mark.parametrize("rows", [16, 37, 130, 200])
def test_after_a_product(rows):
    """Rows of a product in blocks, whose number is no multiple of the lanes; threads share them."""
    x, w, b = normal(rows, 700), normal(700, 10), normal(10)
    same(lambda x, w, b: F.softmax(x @ w * 0.1 + b, -1), x, w, b, lanes=1, atol=1e-5)


def test_over_the_input():
    """A result may lie where its input was: every row is read before it is written."""
    state = paddle.to_tensor(normal(48, 10))
    wanted = F.softmax(F.softmax(state, -1) * 3.0, -1).numpy()

    def step():
        state.set_value(F.softmax(state, -1))
        state.set_value(F.softmax(state * 3.0, -1))

    paddle.jit.to_static(step, backend="native")()
    np.testing.assert_allclose(state.numpy(), wanted, rtol=2e-5, atol=1e-7)
