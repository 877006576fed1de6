"""Products with one-hot rows look up rows of a table."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.canonicalize_matmul import canonicalize_matmul
from tests.passes.programs import program_of, results

TABLE = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
PLACES = np.array([[0, 4, 2], [-1, 5, 1]])


def pick(places, table, start=0, compare=paddle.equal):
    """Rows of the table by a product; zeros for places that it lacks."""
    counted = paddle.arange(start, start + 5, dtype=places.dtype).reshape([1, 1, 5])
    return paddle.matmul(compare(places.unsqueeze(-1), counted).astype("float32"), table)


def program(places="int64", shape=(5, 3), **how):
    specs = Spec(PLACES.shape, np.dtype(places)), Spec(shape, np.dtype("float32"))
    return program_of(lambda x, y: pick(x, y, **how), *specs)


def names(program) -> list[str]:
    return [r.op.name for r in dead_code(canonicalize_matmul(program)).records]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_are_looked_up(dtype):
    """The places outside of the table give zeros, as no number of their one-hot rows is 1."""
    before = program(dtype)
    assert {"product", "equal"}.isdisjoint(names(before))
    assert "take" in names(before)
    want = np.where((PLACES >= 0) & (PLACES < 5), 1, 0)[..., None] * TABLE[PLACES.clip(0, 4)]
    for each in (before, canonicalize_matmul(before), optimized(before).program):
        np.testing.assert_array_equal(results(each, [PLACES.astype(dtype), TABLE])[0], want)


def test_a_table_that_is_not_finite():
    """Zero times infinity is NaN: one such number is in the sums of its whole column."""
    table = TABLE.copy()
    table[3, 1], table[1, 2] = np.nan, -np.inf
    before = program()
    arrays = [PLACES[:1].repeat(2, 0), table]
    with np.errstate(invalid="ignore"):
        got, want = (results(p, arrays)[0] for p in (canonicalize_matmul(before), before))
    assert np.isnan(want[..., 1:]).all()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "how",
    [{"start": 1}, {"compare": paddle.less_equal}, {"places": "float32"}, {"shape": (2, 5, 3)}],
)
def test_other_products_stay(how):
    assert "take" not in names(program(**how))
