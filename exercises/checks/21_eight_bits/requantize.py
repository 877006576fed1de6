"""Checks of 21_eight_bits/requantize."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o

exercise = Exercise(
    title="Requantize: floats into whole numbers again",
    level="easy",
    minutes=15,
    slots={"ops.quantize.body": "quantize"},
    hints=(
        "With 8 bits and a scale of 2.0, which whole number is nearest to 1.0, and which to 3.0?",
        "Clip last, after the zero point was added. NaN is neither above `low` nor below it: which "
        "of the two questions leads it to `low`?",
        "y = round(x / scale · high) + zero\nwhere y > low: y, else low\nwhere that < high: it, "
        "else high",
    ),
    wrong={
        "cut off": "m.round(x / scale * high) → m.floor(x / scale * high)",
        "halves up": "m.round(x / scale * high) → m.floor(x / scale * high + 0.5)",
        "the zero point forgotten": "m.round(x / scale * high) + zero → m.round(x / scale * high)",
        "the zero point taken away": (
            "m.round(x / scale * high) + zero → m.round(x / scale * high) - zero"
        ),
        "NaN that is the largest": "m.where(y > low, y, low) → m.where(y < low, low, y)",
        "nothing clipped above": "m.where(y < high, y, high) → y",
        "nothing clipped below": "m.where(y > low, y, low) → y",
        "as many below 0 as above": "m.where(y > low, y, low) → m.where(y > -high, y, -high)",
        "a scale that is a step": "x / scale * high → x / scale",
        "always 8 bits": "x / scale * high → x / scale * 127",
        "clipped before the zero point": (
            "y = m.round(x / scale * high) + zero → y = m.round(x / scale * high)",
            "return m.where(y < high, y, high) → return m.where(y < high, y, high) + zero",
        ),
    },
    unkillable={
        "y = m.where(y > low, y, low) → y = m.where(y >= low, y, low)": "equal numbers",
        "return m.where(y < high, y, high) → return m.where(y <= high, y, high)": "equal numbers",
    },
)


def right(x, scale, zero, low, high):
    """In numbers of Python."""
    if np.isnan(x):
        return low
    y = x / scale * high
    y = round(float(y)) if np.isfinite(y) else y
    return min(max(y + zero, low), high)


def check(yours, x, scale, zero, bits):
    at = {"low": -(1 << bits - 1), "high": (1 << bits - 1) - 1}
    x, before = np.asarray(x), np.array(x)
    given = {"x": before, "scale": scale, "zero": zero, **at}
    with np.errstate(all="ignore"):
        got = np.asarray(yours.quantize(np, x, scale, zero, **at))
        every = np.broadcast_arrays(before, scale, zero)
        numbers = zip(*(a.ravel() for a in every), strict=True)
        expected = np.array([right(*one, **at) for one in numbers], "float64")
    expect(got.shape, every[0].shape, given=given, why="the shape of the result")
    expect(str(got.dtype), str(x.dtype), given=given, why="the dtype of the result")
    expected = expected.reshape(got.shape).astype(x.dtype)
    expect(got, expected, given=given, rtol=0, atol=0)
    expect_that(np.array_equal(x, before, equal_nan=True), "x was written into", got=x)


@exercise.example
def the_example(yours):
    """Three numbers in 8 bits; the last one is clipped."""
    check(yours, np.array([0.5, -1.0, 9.0], "f"), np.float32(1), np.float32(0), 8)


@exercise.example
def halves_ends_and_nan(yours):
    """Halves go to the even neighbour; infinities are clipped; NaN is the least number."""
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -7.5, -9.0, np.inf, -np.inf, np.nan], "f")
    for zero in (0.0, 3.0, -8.0):
        check(yours, x, np.float32(7), np.float32(zero), 4)


@exercise.property(
    seed=st.integers(0, 99), bits=st.integers(2, 8), wide=st.sampled_from(["f", "d"])
)
def any_numbers(yours, seed, bits, wide):
    """Scales for each column, zero points, and both precisions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 4)).astype(wide) * 10.0 ** rng.integers(-9, 3)
    scale = (abs(x).max(0) * rng.uniform(0.3, 2)).astype(wide)
    zero = np.array(rng.integers(-(1 << bits - 1), 1 << bits - 1), wide)
    check(yours, x, scale, zero, bits)
    check(yours, x[:0], scale, zero, bits)


@exercise.example
def many_numbers(yours):
    """A large array that lies backwards, and a single number."""
    x = np.random.default_rng(0).normal(size=(20, 30)).astype("f")
    check(yours, x[::-1, ::2], np.float32(3), np.float32(-128), 8)
    check(yours, x[0, 0], np.float32(3), np.float32(0), 8)
    x = np.arange(1000, dtype="f") / 7
    check(yours, x, np.float32(97.3), np.float32(0), 8)


@exercise.example
def in_the_engine(yours):
    """A network on whole numbers, whose captured form has your formula in it."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(6, 4), paddle.nn.ReLU(), paddle.nn.Linear(4, 2))
    ptq = PTQ(QuantConfig(activation=o.MinMaxObserver(), weight=o.AbsmaxObserver()))
    x = np.random.default_rng(0).normal(size=(5, 6)).astype("f")
    observed = ptq.quantize(net.eval())
    with paddle.no_grad():
        wanted = observed(paddle.to_tensor(x)).numpy()
        with exercise.plugged(yours):
            whole = ptq.convert(observed)
            found = paddle.jit.to_static(lambda x: whole(x))(paddle.to_tensor(x)).numpy()
    off = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    expect_that(off < 0.03, "results within 3 % of those of floats", given={"x": x}, got=off)
