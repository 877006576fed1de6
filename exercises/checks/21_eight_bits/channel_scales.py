"""Checks of 21_eight_bits/channel_scales."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o

exercise = Exercise(
    title="Per-channel scales",
    level="easy",
    minutes=15,
    slots={"quantization.channel_scales": "channel_scales"},
    hints=(
        "A weight [3, 5] has its outputs along axis 1. How many scales are there, and over which "
        "axis is the largest taken?",
        "Magnitudes first, then the largest over all axes but one. What if there is no other axis, "
        "and what if all numbers of a channel are zero?",
        "others = all axes but `axis`\n|x|, its largest over the others (as it is, if there are "
        "none)\nat least LEAST",
    ),
    wrong={
        "one scale for all": "d != axis → True",
        "the largest, not the largest magnitude": "paddle.abs(x) → x",
        "over the wrong axis": "d != axis → d == axis",
        "the mean magnitude": "top.max(axis=others) → top.mean(axis=others)",
        "the least magnitude": "top.max(axis=others) → top.min(axis=others)",
        "scales of zero": "paddle.clip(top, min=LEAST) → top",
        "the axes stay": "top.max(axis=others) → top.max(axis=others, keepdim=True)",
        "an addition in the place of a bound": "paddle.clip(top, min=LEAST) → top + LEAST",
        "always outputs in the first axis": "d != axis → d != 0",
        "a bound of 1": "paddle.clip(top, min=LEAST) → paddle.clip(top, min=1.0)",
    },
    unkillable={"channel_scales: right only for positive axes": "it is given no others"},
)


def check(yours, x, axis):
    given = {"x": x.copy(), "axis": axis}
    t = paddle.to_tensor(x)
    got = yours.channel_scales(t, axis)
    others = tuple(d for d in range(x.ndim) if d != axis)
    expected = np.maximum(abs(x.astype("float64")).max(axis=others), 1e-7)
    expect(got.shape, [x.shape[axis]], given=given, why="the shape of the scales")
    expect(str(got.dtype), str(t.dtype), given=given, why="the dtype of the scales")
    expect(got.numpy().astype("float64"), expected, given=given, rtol=1e-7, atol=0)
    same = np.array_equal(t.numpy(), x, equal_nan=True)
    expect_that(same, "x was written into", given=given, got=t)


@exercise.example
def the_example(yours):
    """Two outputs, one ten times as large."""
    check(yours, np.array([[3.0, 30.0], [1.2, -9.0]], "f"), 1)


@exercise.property(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    wide=st.sampled_from(["float32", "float64"]),
    data=st.data(),
)
def any_weights(yours, shape, seed, wide, data):
    """Weights of one axis up to four, some channels of zeros, large and small ones."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-12, 6, shape)
    x *= rng.random(shape) > 0.4
    check(yours, x.astype(wide), axis)


@exercise.example
def large_and_infinite(yours):
    """A large weight, and one with an infinity."""
    x = np.random.default_rng(0).normal(size=(40, 30, 3)).astype("f")
    check(yours, x, 1)
    check(yours, x[:0], 0)
    x[1, 2, 0] = -np.inf
    check(yours, x, 0)


@exercise.example
def in_the_engine(yours):
    """A convolution with filters of very different size, on whole numbers of your scales."""
    conv = paddle.nn.Conv2D(2, 3, 3)
    scale = np.array([1.0, 0.01, 100.0], "f")[:, None, None, None]
    weight = np.random.default_rng(0).normal(size=conv.weight.shape).astype("f") * scale
    conv.weight.set_value(weight)
    net = paddle.nn.Sequential(conv).eval()
    x = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 2, 6, 6)).astype("f"))
    config = QuantConfig(o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver())
    with exercise.plugged(yours), paddle.no_grad():
        ptq = PTQ(config)
        observed = ptq.quantize(net)
        wanted = observed(x).numpy()
        found = ptq.convert(observed)(x).numpy()
    axes = (0, 2, 3)
    off = np.sqrt(((found - wanted) ** 2).sum(axes) / (wanted**2).sum(axes))
    expect_that(off.max() < 0.02, "each channel within 2 % of that of floats", got=off)
