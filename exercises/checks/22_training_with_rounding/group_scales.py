"""Checks of 22_training_with_rounding/group_scales."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.nn.quant import weight_dequantize, weight_quantize

exercise = Exercise(
    title="Group scales: one for so many rows",
    level="easy",
    minutes=15,
    before=("21_eight_bits/channel_scales", "22_training_with_rounding/nibbles"),
    slots={"quantization.group_scales": "group_scales"},
    hints=(
        "Six rows in groups of two: which rows are the second group, and which shape has a view in "
        "which a group is an axis?",
        "Rows lie one after the other, so `reshape([rows // group, group, columns])` cuts them. "
        "Over which of the three axes is the largest taken?",
        "|x| as [rows / group, group, columns]\nthe largest over the middle axis",
    ),
    wrong={
        "the largest, not the largest magnitude": "paddle.abs(x) → x",
        "rows that are far apart": (
            "paddle.abs(x).reshape([rows // group, group, columns]) → "
            "paddle.abs(x).reshape([group, rows // group, columns]).transpose([1, 0, 2])"
        ),
        "over the groups": "groups.max(axis=1) → groups.max(axis=0)",
        "over the columns": "groups.max(axis=1) → groups.max(axis=2)",
        "the mean": "groups.max(axis=1) → groups.mean(axis=1)",
        "the least": "groups.max(axis=1) → groups.min(axis=1)",
        "the axis of a group stays": "groups.max(axis=1) → groups.max(axis=1, keepdim=True)",
        "one for all columns": "groups.max(axis=1) → groups.max(axis=[1, 2], keepdim=True)[:, 0] + "
                               "0 * groups[:, 0]",
    },
)  # fmt: skip
exercise.wrong["one group"] = (
    "paddle.abs(x).reshape([rows // group, group, columns]) → "
    "paddle.abs(x).reshape([1, rows, columns])"
)


def check(yours, x, group):
    given = {"x": x.copy(), "group": group}
    t = paddle.to_tensor(x)
    got = yours.group_scales(t, group)
    starts = range(0, len(x), group)
    expected = [abs(x[k : k + group]).max(0) for k in starts]
    expected = np.array(expected, x.dtype).reshape(len(starts), x.shape[1])
    expect(str(got.dtype), str(t.dtype), given=given, why="the dtype of the scales")
    expect(got.shape, [*expected.shape], given=given, why="the shape of the scales")
    expect(got.numpy(), expected, given=given, rtol=0, atol=0)
    expect(t.numpy(), given["x"], given=given, why="x is as before")


@exercise.example
def the_example(yours):
    """Four rows in two groups."""
    check(yours, np.array([[1.0, 5.0], [-3.0, 0.0], [0.5, 0.5], [0.2, -7.0]], "f"), 2)


@exercise.property(
    groups=st.integers(1, 4),
    group=st.integers(1, 4),
    columns=st.integers(0, 4),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(["float32", "float64"]),
)
def any_weight(yours, groups, group, columns, seed, dtype):
    """Any groups, one row in each among them, or one group; any columns, or none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(groups * group, columns)) * 10.0 ** rng.integers(-9, 9)
    check(yours, x.astype(dtype), group)


@exercise.example
def large_and_infinite(yours):
    """A large weight, and one with an infinity."""
    x = np.random.default_rng(0).normal(size=(64, 30)).astype("f")
    check(yours, x, 16)
    x[5, 3] = -np.inf
    check(yours, x, 16)


@exercise.example
def in_the_engine(yours):
    """Rows of a hundred and of one: in groups of 64 both have a scale that fits."""
    x = np.random.default_rng(0).normal(size=(128, 6)).astype("f")
    x[:64] *= 100
    with exercise.plugged(yours):
        q, scale = weight_quantize(paddle.to_tensor(x), "weight_only_int4", group_size=64)
        y = weight_dequantize(q, scale, "weight_only_int4", group_size=64).numpy()
    for part in (slice(0, 64), slice(64, 128)):
        off = float(np.linalg.norm(y[part] - x[part]) / np.linalg.norm(x[part]))
        expect_that(off < 0.16, "each group is off by less than 16 %", given={"x": x}, got=off)
