"""Checks of 21_eight_bits/integer_dot."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.ops.quantization import matmul_integer

exercise = Exercise(
    title="The integer dot product",
    level="medium",
    minutes=20,
    slots={"quantization.matmul": "matmul_whole"},
    hints=(
        "127 · 127 added up a thousand times: does a float32 hold the sum exactly? And ten "
        "thousand times?",
        "Pieces of K: columns of x, which are its last axis, and rows of y, which are the last but "
        "one. What comes back if K is 0?",
        "total = 0\nfor k = 0, TERMS, … below K (once if K is 0):\n    that piece of x and of y as "
        "float32, multiplied\n    total ← total + the result as int32",
    ),
    wrong={
        "in int8": (
            "x[..., k:k + TERMS].astype('float32') → x[..., k:k + TERMS]",
            "y[..., k:k + TERMS, :].astype('float32') → y[..., k:k + TERMS, :]",
        ),
        "all at once in float32": "TERMS = 1024 → TERMS = 1 << 20",
        "half as many in float32, but too many": "TERMS = 1024 → TERMS = 4096",
        "sums as floats": "m.matmul(a, b).astype('int32') → m.matmul(a, b)",
        "sums in int16": "m.matmul(a, b).astype('int32') → m.matmul(a, b).astype('int16')",
        "the last piece alone": (
            "total + m.matmul(a, b).astype('int32') → m.matmul(a, b).astype('int32')"
        ),
        "the rest of K forgotten": (
            "range(0, max(x.shape[-1], 1), TERMS) → range(0, max(x.shape[-1] // TERMS * TERMS, 1), "
            "TERMS)"
        ),
        "float16": (
            "x[..., k:k + TERMS].astype('float32') → x[..., k:k + TERMS].astype('float16')",
            "y[..., k:k + TERMS, :].astype('float32') → y[..., k:k + TERMS, :].astype('float16')",
        ),
        "nothing for K = 0": "max(x.shape[-1], 1) → x.shape[-1]",
        "pieces of columns": "y[..., k:k + TERMS, :] → y[..., :, k:k + TERMS]",
    },
    unkillable={
        "TERMS = 1024 → TERMS = 1023": "smaller pieces are exact too",
        "for k in range(0, max(x.shape[-1], 1), TERMS): → "
        "for k in range(0, max(x.shape[-1], 2), TERMS):": "one piece either way",
    },
)


def check(yours, x, y):
    given = {"x": x.copy(), "y": y.copy()}
    got = yours.matmul_whole(np, x, y)
    expected = np.matmul(x.astype("int64"), y.astype("int64"))
    expect(str(np.asarray(got).dtype), "int32", given=given, why="the dtype of the result")
    expect(got.shape, expected.shape, given=given, why="the shape of the result")
    expect(got.astype("int64"), expected, given=given, rtol=0, atol=0)
    same = np.array_equal(x, given["x"]) and np.array_equal(y, given["y"])
    expect_that(same, "an input was written into", given=given)


@exercise.example
def the_example(yours):
    """Two products of 100 and 100."""
    check(yours, np.array([[100, 100]], "int8"), np.array([[100], [100]], "int8"))


@exercise.example
def exact_to_the_last_bit(yours):
    """Long sums of large numbers, odd ones among them; -128 times -128."""
    for terms in (1, 1023, 1024, 1025, 2048, 5000, 60001):
        x = np.full((1, terms), -128, "int8")
        x[0, ::7] = 127
        y = np.full((terms, 2), -127, "int8")
        y[:, 1] = -128
        check(yours, x, y)
    x = np.full((1, 1025), -128, "int8")
    x[0, -1] = 127
    check(yours, x, x.T)


@exercise.property(
    batch=st.sampled_from([(), (2,), (3, 1)]),
    sizes=st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 4)),
    seed=st.integers(0, 99),
)
def any_matrices(yours, batch, sizes, seed):
    """Any sizes, 0 among them; batches that broadcast; arrays that lie backwards; a row alone."""
    rows, terms, columns = sizes
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (*batch, rows, terms)).astype("int8")
    y = rng.integers(-128, 128, (2, terms, columns)).astype("int8")
    check(yours, x, y)
    check(yours, x[..., ::-1, ::-1], y[0])
    if rows and not batch:
        check(yours, x[0], y[0])


@exercise.example
def in_the_engine(yours):
    """The operator of whole products, run by the interpreter."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, shape).astype("int8") for shape in ((7, 3000), (3000, 5)))
    with exercise.plugged(yours):
        got = matmul_integer(paddle.to_tensor(x), paddle.to_tensor(y)).numpy()
    expect(got, x.astype("int32") @ y.astype("int32"), given={"x": x, "y": y}, rtol=0, atol=0)
