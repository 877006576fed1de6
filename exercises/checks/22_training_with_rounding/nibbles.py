"""Checks of 22_training_with_rounding/nibbles."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect
from minipaddle.nn.quant import weight_dequantize, weight_only_linear, weight_quantize

exercise = Exercise(
    title="Packing nibbles: two numbers in a byte",
    level="easy",
    minutes=15,
    slots={"quantization.pack": "pack", "quantization.unpack": "unpack"},
    hints=(
        "-1 as a byte is 1111 1111. What happens to the upper number if these bits are joined with "
        "it as they are?",
        "Pack: the lower four bits of `low` alone, `high` four places further up. Unpack: the "
        "upper nibble comes down with its sign; how does the lower one get its sign?",
        "pack: (low & 15) | (high << 4)\nunpack: the lower one up by four places and down again; "
        "the upper one down",
    ),
    wrong={
        "the signs of the lower ones spill over": "low & 15 → low",
        "the two exchanged": "low & 15 | high << 4 → high & 15 | low << 4",
        "unpacked in the other order": "return (x << 4 >> 4, x >> 4) → return x >> 4, x << 4 >> 4",
        "lower ones without signs": "x << 4 >> 4 → x & 15",
        "upper ones without signs": "return (x << 4 >> 4, x >> 4) → "
                                    "return x << 4 >> 4, x >> 4 & 15",
        "one place too few": ("high << 4 → high << 3", "x << 4 >> 4 → x << 5 >> 5"),
        "seven bits": "low & 15 → low & 7",
        "joined by and": "low & 15 | high << 4 → low & 15 & high << 4",
        "the lower ones stay up": "x << 4 >> 4 → x << 4",
        "numbers from 0 to 15": (
            "low & 15 | high << 4 → low + 8 | high + 8 << 4",
            "return (x << 4 >> 4, x >> 4) → return (x & 15) - 8, (x >> 4 & 15) - 8",
        ),
    },
)  # fmt: skip


def byte(low, high):
    """By numbers, without bits."""
    value = low % 16 + 16 * (high % 16)
    return value - 256 if value > 127 else value


def check(yours, low, high):
    low, high = np.asarray(low, "int8"), np.asarray(high, "int8")
    given = {"low": low, "high": high}
    tensors = paddle.to_tensor(low), paddle.to_tensor(high)
    got = yours.pack(*tensors)
    expect(str(got.dtype), "paddle.int8", given=given, why="the dtype of the bytes")
    packed = np.array([byte(int(a), int(b)) for a, b in zip(low.ravel(), high.ravel())], "int8")
    packed = packed.reshape(low.shape)
    expect(got.numpy(), packed, given=given, why="the bytes")
    x = paddle.to_tensor(packed)
    for found, right, what in zip(yours.unpack(x), (low, high), given, strict=True):
        expect(str(found.dtype), "paddle.int8", given={"x": packed}, why=f"the dtype of {what}")
        expect(found.numpy(), right, given={"x": packed}, why=what)
    for t, a in zip((*tensors, x), (low, high, packed), strict=True):
        expect(t.numpy(), a, given=given, why="what was given is as before")


@exercise.example
def the_example(yours):
    """Two bytes, with their bits."""
    check(yours, [3, -1], [-2, 0])


@exercise.example
def every_pair(yours):
    """All 256 of them at once; none; a single one."""
    low, high = np.meshgrid(np.arange(-8, 8), np.arange(-8, 8))
    check(yours, low, high)
    check(yours, np.zeros((0, 3)), np.zeros((0, 3)))
    check(yours, -5, 6)


@exercise.property(
    rows=st.integers(1, 5), pairs=st.integers(1, 3), seed=st.integers(0, 99), examples=12
)
def in_the_engine(yours, rows, pairs, seed):
    """A weight in four bits, and a product with it."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(rows, 2 * pairs)).astype("f")
    x = rng.normal(size=(2, rows)).astype("f")
    top = np.maximum(abs(weight).max(0), 1e-30)
    right = np.round(weight / top * 7) * top / 7
    with exercise.plugged(yours):
        q, scale = weight_quantize(paddle.to_tensor(weight), "weight_only_int4")
        found = weight_dequantize(q, scale, "weight_only_int4").numpy()
        y = weight_only_linear(paddle.to_tensor(x), q, weight_scale=scale, weight_dtype="int4")
    expect(q.shape, [pairs, rows], given={"weight": weight}, why="the shape of the bytes")
    expect(found, right, given={"weight": weight}, rtol=1e-5, atol=1e-6)
    expect(y.numpy(), x @ right, given={"weight": weight, "x": x}, rtol=1e-4, atol=1e-5)
