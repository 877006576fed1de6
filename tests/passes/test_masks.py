"""What a mask hides: against the formula itself, with the column there and without it."""

import math

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.manager import optimized
from minipaddle.engine.passes.nest import Nest
from minipaddle.passes.epilogue import begins_with_product
from minipaddle.passes.masks import masks
from tests.passes.programs import program_of, results

F, INF = paddle.nn.functional, math.inf
N = 12

HIDING = {
    "a boolean mask": (lambda s, m: F.softmax(paddle.where(m, s, -INF)), bool, False),
    "its opposite": (lambda s, m: F.softmax(paddle.where(m, -INF, s)), bool, True),
    "an added mask": (lambda s, m: F.softmax(s + m), float, -INF),
    "scaled afterwards": (lambda s, m: F.softmax((s + m) * 0.5), float, -INF),
    "divided afterwards": (lambda s, m: F.softmax((m + s) / 8.0), float, -INF),
    "of every text its own": (lambda s, m: F.softmax(s + m[:1]), float, -INF),
}
OPEN = {
    "a large number": (lambda s, m: F.softmax(paddle.where(m, s, -1e9)), bool),
    "no softmax": (lambda s, m: F.relu(paddle.where(m, s, -INF)), bool),
    "turned by a sign": (lambda s, m: F.softmax((s + m) * -1.0), float),
    "a factor": (lambda s, m: F.softmax(s * m), float),
    "for a whole row": (lambda s, m: F.softmax(s + m[:, :1]), float),
    "weights that are shifted": (lambda s, m: F.softmax(s + m) + 1.0, float),
    "a sum of other terms": (lambda s, m: F.softmax(s + m) * s.sum(-1, keepdim=True), float),
}


def traced(function, kind):
    """The program of a product, a mask and what follows; and the group that computes it."""
    mask = Spec((N, N), np.dtype(bool if kind is bool else "float32"))
    program = program_of(lambda x, y, m: function(x @ y, m), (N, 4), (4, N), mask)
    groups = filter(begins_with_product, optimized(program).program.records)
    return program, next(groups).attrs["region"]


def found(region) -> list:
    first, *rest = region.records
    return masks(Nest(rest, region.outputs).merged(), [first])


@pytest.mark.parametrize("form", HIDING)
def test_what_is_hidden_is_0_and_changes_nothing(form):
    function, kind, hidden = HIDING[form]
    program, region = traced(function, kind)
    ((node, value),) = found(region)
    assert value == hidden
    assert node.dtype == program.inputs[2].dtype
    rng = np.random.default_rng(0)
    x, y, m = (rng.standard_normal(r.shape).astype("float32") for r in program.inputs)
    m = np.full((N, N), not hidden) if kind is bool else m
    m[:, 3] = hidden
    (once,) = results(program, [x, y, m])
    y[:, 3] *= -20
    (again,) = results(program, [x, y, m])
    assert (once[:, 3] == 0).all()
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("form", OPEN)
def test_what_hides_nothing(form):
    assert found(traced(*OPEN[form])[1]) == []


def test_each_of_two_masks_hides():
    region = traced(lambda s, m: F.softmax(s + m + m[0]), float)[1]
    assert [value for _, value in found(region)] == [-INF, -INF]
