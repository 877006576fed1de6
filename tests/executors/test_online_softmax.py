"""Rows of a softmax that are cut: against the interpreter, float64 and NumPy."""

from math import inf
from random import Random

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.codegen.products import online_softmax
from minipaddle.engine.codegen.scalar import C
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.executors import compiler as c
from minipaddle.engine.executors.native import Executable
from tests.executors.schedules import Drawn, low_thresholds
from tests.executors.test_back_to_back_gemm import run
from tests.passes.programs import draw_arrays, program_of, results

pytestmark = pytest.mark.skipif(c.compiler() is None, reason="no C compiler: install gcc or clang")

SHAPES = (21, 8), (1700, 8), (1700, 5)
"""Queries, keys and values: three blocks of columns, the last one in part."""


def attention(q, k, v):
    return F.softmax(paddle.matmul(q, k, transpose_y=True) * 0.3, -1) @ v


def added(q, k, v, mask):
    return F.softmax(paddle.matmul(q, k, transpose_y=True) + mask, -1) @ v


def online(program) -> int:
    return sum(map(online_softmax.is_online, program.records))


def compiled(program) -> Executable:
    made = Executable(program)
    assert online(made.program) == 1
    return made


def same(wanted, found, **how) -> None:
    np.testing.assert_allclose(found, np.asarray(wanted), **{"rtol": 2e-5, "atol": 2e-6} | how)


NUMBERS = {
    "small then large": lambda rng: np.repeat([-1e30, 0, 300], [800, 800, 100]),
    "large then small": lambda rng: np.repeat([300, 0, -1e30], [800, 800, 100]),
    "the first block hidden": lambda rng: np.where(np.arange(1700) < 900, -inf, 0),
    "a block in the middle hidden": lambda rng: np.where(np.arange(1700) // 768 == 1, -inf, 0),
    "all hidden": lambda rng: np.full(1700, -inf),
    "an infinite score": lambda rng: np.where(np.arange(1700) == 1000, inf, 0),
    "no number": lambda rng: np.where(np.arange(1700) == 1000, np.nan, 0),
    "some rows hidden": lambda rng: np.where(np.arange(21) < 9, -inf, 0)[:, None] + np.zeros(1700),
    "anything": lambda rng: np.where(rng.random((21, 1700)) < 0.9, -inf, rng.normal(size=1700)),
}


@pytest.mark.parametrize("numbers", NUMBERS)
def test_as_the_interpreter_has_it(numbers):
    mask = NUMBERS[numbers](np.random.default_rng(0)).astype("float32")
    program = program_of(added, *SHAPES, mask.shape)
    made, arrays = compiled(program), draw_arrays(program)
    arrays[3] = mask
    with np.errstate(all="ignore"):
        (wanted,) = results(program, arrays)
    assert np.isnan(wanted).any() == (numbers in ("all hidden", "an infinite score", "no number",
                                                  "some rows hidden"))  # fmt: skip
    same(wanted, run(made, program, arrays)[0])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_against_float64(threads, dtype, monkeypatch):
    """On average at most twice the interpreter's."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    shapes = [(2, 3, *shape) for shape in ((70, 16), (2100, 16), (2100, 8))]
    program = program_of(attention, *(Spec(s, np.dtype(dtype)) for s in shapes))
    made, arrays = compiled(program), draw_arrays(program)
    q, k, v = (a.astype("float128") for a in arrays)
    p = np.exp(q @ k.swapaxes(-1, -2) * 0.3)
    exact = p / p.sum(-1, keepdims=True) @ v
    (ours,), (theirs,) = run(made, program, arrays), results(program, arrays)
    assert np.abs(ours - exact).mean() <= 2 * np.abs(theirs - exact).mean()


FORMULAS = {
    "powers that are halved": (lambda p: p * 0.5, 1),
    "half of them": (lambda p: paddle.where(paddle.ones(p.shape, "bool").tril(), p, p * 0), 1),
    "a power of the weights": (lambda p: p * p, 0),
    "weights and one": (lambda p: p + 1.0, 0),
    "weights that are clipped": (lambda p: paddle.clip(p, max=1e-3), 0),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_is_linear_in_the_weights(formula):
    """Only then may the weights be divided by their sum at the end."""
    between, count = FORMULAS[formula]

    def weighted(q, k, v):
        return between(F.softmax(paddle.matmul(q, k, transpose_y=True))) @ v

    program = program_of(weighted, *SHAPES)
    made, arrays = Executable(program), draw_arrays(program)
    assert online(made.program) == count
    same(results(program, arrays)[0], run(made, program, arrays)[0], atol=1e-4)


def test_dropout_inside():
    """The mask is that of the interpreter, bit by bit, and weights that stay are scaled."""

    def dropped(q, k, v):
        return F.dropout(F.softmax(paddle.matmul(q, k, transpose_y=True)), 0.4) @ v

    program = program_of(dropped, (21, 8), (900, 8), (900, 900))
    made, arrays = compiled(program), draw_arrays(program)
    arrays[2] = np.eye(900, dtype="float32")  # the result shows the weights
    (wanted, *_), (found, *_) = results(program, arrays), run(made, program, arrays)
    assert np.array_equal(wanted == 0, found == 0)
    assert 0.37 < (found == 0).mean() < 0.43
    same(wanted, found)


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes_and_schedules(seed):
    random = Random(seed)
    lead = random.choice(((), (2,), (2, 3), (1, 2)))
    queries, keys = random.choice((8, 17, 70)), random.choice((193, 400, 777))
    width, last = random.choice((2, 8, 33)), random.choice((5, 8, 33))
    turned = random.random() < 0.5  # values, too, are packed into panels

    def attend(q, k, v):
        scores = paddle.matmul(q, k, transpose_y=True)
        if seed % 2:
            hidden = paddle.triu(paddle.ones([queries, keys], "bool"), keys - queries + 1)
            scores = paddle.where(hidden, paddle.full([], -inf), scores)
        return paddle.matmul(F.softmax(scores), v, transpose_y=turned)

    value = (last, keys) if turned else (keys, last)
    program = program_of(attend, *((*lead, *s) for s in ((queries, width), (keys, width), value)))
    arrays = draw_arrays(program, seed)
    with low_thresholds(random), pytest.MonkeyPatch.context() as patch:
        patch.setattr(online_softmax, "FROM", 2)
        made = Executable(program, tuned=Drawn(seed) if random.random() < 0.5 else None)
    same(results(program, arrays)[0], run(made, program, arrays)[0], rtol=1e-4, atol=1e-5)


def test_the_formulas_are_the_readers():
    """C is made of what is plugged in."""

    def fold(m, before, block):
        maximum, shift, factor = online_softmax.fold.reference(m, before, block)
        return maximum, shift, factor * (7.0 if m is C else 1.0)

    program = program_of(attention, *SHAPES)
    plain, arrays = compiled(program), draw_arrays(program)
    with plugged("online_softmax.fold", fold):
        other = compiled(program)
    assert "7.0f" in other.source.own
    assert "7.0f" not in plain.source.own
    with pytest.raises(AssertionError):
        same(*run(plain, program, arrays), run(other, program, arrays)[0])


PAIRS = [(-inf, -inf), (-inf, 2), (2, -inf), (1, 3), (3, 1), (np.nan, 1), (1, np.nan)]


@pytest.mark.parametrize(("before", "block"), PAIRS)
def test_two_blocks_are_one_row(before, block):
    maximum, shift, factor = online_softmax.fold(np, np.float64(before), np.float64(block))
    total = 0.0 if before == -inf else 2.0  # of powers measured from `before`
    with np.errstate(invalid="ignore"):
        found = online_softmax.add(total, factor, np.exp(block - shift))
        wanted = total * np.exp(before - shift) + np.exp(block - shift)
    np.testing.assert_equal(maximum, np.maximum(before, block))
    np.testing.assert_equal(found, wanted)
    assert np.isfinite(shift) or np.isnan(before + block)
