"""Checks of 21_eight_bits/zero_points."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o

exercise = Exercise(
    title="Zero points, and their correction in a product",
    level="medium",
    minutes=25,
    before=("21_eight_bits/integer_dot",),
    slots={
        "quantization.zero_point": "zero_point",
        "quantization.zero_correction": "zero_correction",
        "quantization.unit": "unit",
    },
    hints=(
        "Values from 0 to 25.5 in 8 bits: which whole number stands for 0, which for 25.5? And for "
        "values from -25.5 to 0?",
        "Σ (q - zero) · w = Σ q · w - zero · Σ w. The second term does not depend on q: it is the "
        "same for each row.",
        "step = (high - low) / (largest - least), at least LEAST\n"
        "scale = step · largest;  zero = least - round(low / step)\n"
        "correction = zero as int32 · sums;  unit = w_scale · scale / w_high",
    ),
    wrong={
        "one step too many": "largest - least → largest - least + 1",
        "a zero point that is not whole": "paddle.round(low / step) → low / step",
        "the zero point on the other side": "least - paddle.round(low / step) → "
                                            "least + paddle.round(low / step)",
        "from 0 on": "least - paddle.round(low / step) → -paddle.round(low / step)",
        "a scale that is a step": "step * largest → step",
        "a scale that is the range": "step * largest → high - low",
        "steps of zero": "paddle.clip((high - low) / (largest - least), min=LEAST) → "
                         "(high - low) / (largest - least)",
        "always 8 bits": (
            "-2 ** (bits - 1) → -128", "2 ** (bits - 1) - 1 → 127",
        ),
        "the correction in floats": "zero.astype('int32') * sums → zero * sums.astype('float32')",
        "the correction with another sign": "zero.astype('int32') * sums → "
                                            "-zero.astype('int32') * sums",
        "no high": "w_scale * scale / w_high → w_scale * scale",
        "the scale forgotten": "w_scale * scale / w_high → w_scale / w_high",
        "the scale below": "w_scale * scale / w_high → w_scale / scale / w_high",
    },
    unkillable={
        "zero_point: right only for small arrays": "all are 0-D",
        "zero_point: right only for arrays that are not empty": "all are 0-D",
        "zero_point: right only for finite numbers": "a range is finite",
        "zero_point: always float32": "it is float32",
        "zero_correction: right only for arrays that are not empty": "a layer has outputs",
        "zero_correction: right only for finite numbers": "whole numbers are finite",
        "unit: right only for arrays that are not empty": "a layer has outputs",
        "unit: right only for finite numbers": "scales are finite",
        "unit: always float32": "it is float32",
    },
)  # fmt: skip


def single(x):
    return paddle.to_tensor(x, dtype="float32")


def check(yours, low, high, bits):
    """Against the same in double precision, and for what it is meant to do."""
    given = {"low": low, "high": high, "bits": bits}
    scale, zero = yours.zero_point(single(low), single(high), bits)
    for x in (scale, zero):
        expect((x.shape, str(x.dtype)), ([], "paddle.float32"), given=given, why="shape and dtype")
    least, largest = -(1 << bits - 1), (1 << bits - 1) - 1
    step = max((np.float32(high) - np.float32(low)) / (largest - least), 1e-7)
    expect(scale.item(), float(step * largest), given=given, why="the scale", rtol=1e-5, atol=0)
    expect(zero.item() % 1, 0.0, given=given, why="the zero point is a whole number")
    near = abs(zero.item() - (least - low / step)) <= 0.501
    expect_that(near, "not the whole number nearest to 0.0", given=given, got=zero)


@exercise.example
def the_example(yours):
    """From 0 to 25.5 in steps of 0.1."""
    given = {"low": 0.0, "high": 25.5, "bits": 8}
    scale, zero = yours.zero_point(single(0.0), single(25.5), 8)
    expect((scale.item(), zero.item()), (12.7, -128.0), given=given, rtol=1e-5)
    got = yours.zero_correction(single(3.0), paddle.to_tensor([10, -20], dtype="int32"))
    expect(got.numpy(), np.array([30, -60], "int32"), given={"zero": 3.0, "sums": [10, -20]})


@exercise.property(
    low=st.sampled_from([0.0, -1.0, -3.3, -1e-4, -700.0]),
    high=st.sampled_from([0.0, 1.0, 2.7, 1e-5, 900.0]),
    bits=st.integers(2, 8),
)
def any_range(yours, low, high, bits):
    """Values of one sign or of both; none but zero; any number of bits."""
    check(yours, low, high, bits)


@exercise.property(seed=st.integers(0, 99), outputs=st.integers(1, 300))
def the_product_is_right(yours, seed, outputs):
    """Corrections are exact in int32, however large; units for all outputs at once."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(2**23), 2**23, outputs).astype("int32")
    zero = float(rng.integers(-128, 128))
    given = {"zero": zero, "sums": sums}
    z, t = single(zero), paddle.to_tensor(sums)
    got = yours.zero_correction(z, t)
    expect((z.item(), t.numpy()), (zero, sums), given=given, why="what was given is as before")
    expect(str(got.dtype), "paddle.int32", given=given, why="the dtype of the correction")
    expect(got.numpy(), (int(zero) * sums.astype("int64")).astype("int32"), given=given)
    w_scale = rng.uniform(0.1, 3, outputs if seed % 2 else ()).astype("f")
    scale = float(np.float32(rng.uniform(0.1, 9)))
    wide = np.asarray(w_scale, "float64") * scale / 127
    for given_scale in (single(scale), scale):
        t = paddle.to_tensor(w_scale)
        got = yours.unit(given_scale, t, 127)
        given = {"scale": scale, "w_scale": w_scale, "w_high": 127}
        expect(got.numpy().astype("float64"), wide, given=given, rtol=3e-7, atol=0)
        expect(str(got.dtype), "paddle.float32", given=given, why="the dtype of the unit")
        expect(t.numpy(), w_scale, given=given, why="w_scale is as it was")


@exercise.example
def in_the_engine(yours):
    """A layer whose input is never negative, in 8 bits and in 4."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(30, 5)).eval()
    x = np.random.default_rng(0).uniform(0.0, 2.0, (9, 30)).astype("f")
    for bits, most in ((8, 0.01), (4, 0.12)):
        config = QuantConfig(o.MinMaxObserver(bits), o.AbsMaxChannelWiseWeightObserver())
        with exercise.plugged(yours), paddle.no_grad():
            ptq = PTQ(config)
            observed = ptq.quantize(net)
            wanted = observed(paddle.to_tensor(x)).numpy()
            found = ptq.convert(observed)(paddle.to_tensor(x)).numpy()
        off = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
        expect_that(off < most, "the results of floats, nearly", given={"bits": bits}, got=off)
