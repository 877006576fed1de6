"""Checks of 04_training/initializer."""

import math

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="How large the first weights are",
    level="easy",
    minutes=15,
    slots={
        "nn.initializer.fans": "fans",
        "nn.initializer.kaiming_std": "kaiming_std",
        "nn.initializer.xavier_std": "xavier_std",
    },
    hints=(
        "A sum of n independent terms of variance s² has the variance n s². Which s makes that 1? "
        "And how many terms does one output of a 5 x 5 convolution of 3 channels have?",
        "Chapter 4, 'How large should the first weights be?', has the first formula; math.prod "
        "multiplies the sizes of a window.",
        "fans: less than two sizes: their product, twice; two: as they are; more: outputs, inputs "
        "and the window come in this order, both are multiplied by its places\n"
        "kaiming: gain / root of fan\nxavier: gain / root of the mean fan",
    ),
    wrong={
        "a kernel read as a matrix": (
            "if len(shape) == 2: → pass",
            "(inputs * places, outputs * places) → (outputs, inputs)",
        ),
        "forgetting the window": "(inputs * places, outputs * places) → (inputs, outputs)",
        "exchanging the fans of a kernel": (
            "(inputs * places, outputs * places) → (outputs * places, inputs * places)"
        ),
        "reading a matrix as [outputs, inputs]": "return shape → return shape[::-1]",
        "the variance for the deviation": "math.sqrt(fan) → fan",
        "half of the variance": "(fan_in + fan_out) / 2 → fan_in + fan_out",
        "only the fan in": "(fan_in + fan_out) / 2 → fan_in",
        "forgetting the gain": "gain / math.sqrt(fan) → 1 / math.sqrt(fan)",
        "adding up the window": "math.prod(window) → sum(window)",
    },
)  # fmt: skip


@exercise.example
def the_fans(yours):
    """A number, a vector, a matrix [inputs, outputs], kernels [outputs, inputs, *window]."""
    for shape, expected in {
        (): (1, 1), (7,): (7, 7), (64, 32): (64, 32), (8, 3, 5, 5): (75, 200), (4, 2, 3): (6, 12),
        (2, 5, 3, 1, 2): (30, 12), (2, 5, 3, 1, 2, 1, 1, 7): (210, 84),
    }.items():  # fmt: skip
        expect(tuple(yours.fans(shape)), expected, given={"shape": shape})


@exercise.property(fan=st.integers(1, 400), other=st.integers(1, 400), gain=st.integers(1, 4))
def the_formulas(yours, fan, other, gain):
    """Variance times fan is the square of the gain."""
    given = {"fan": fan, "gain": gain}
    expect(yours.kaiming_std(fan, gain) ** 2 * fan, float(gain**2), given=given)
    given = {"fan_in": fan, "fan_out": other, "gain": gain}
    square = yours.xavier_std(fan, other, gain) ** 2
    expect(square * (fan + other), 2.0 * gain**2, given=given)


@exercise.example
def enormous_fans(yours):
    """A hundred million inputs and a small gain: exact to the last digits all the same."""
    got = yours.kaiming_std(10**8, 1e-6), yours.xavier_std(10**8, 3 * 10**8, 1e-6)
    right = 1e-10, 1e-10 / math.sqrt(2)
    expect(got, right, given={"fan": 10**8, "gain": 1e-6}, rtol=1e-12, atol=0)


@exercise.example
def in_the_engine(yours):
    """paddle.nn.initializer draws with your deviations: 20,000 numbers have them within 3 %."""
    paddle.seed(0)
    init, shape = nn.initializer, [40, 20, 5, 5]  # fan in 500, fan out 1000
    expected = {
        init.KaimingNormal(): math.sqrt(2 / 500),
        init.KaimingUniform(mode="fan_out"): math.sqrt(2 / 1000),
        init.XavierNormal(): math.sqrt(2 / 1500),
        init.XavierUniform(gain=3.0): 3 * math.sqrt(2 / 1500),
    }
    with exercise.plugged(yours):
        for drawn, std in expected.items():
            found = paddle.create_parameter(shape, "float32", default_initializer=drawn)
            expect(found.numpy().std(), std, given={"initializer": repr(drawn)}, rtol=0.03)


@exercise.example
def a_signal_through_twenty_layers(yours):
    """256 units wide and 20 deep: the signal arrives as large as it set out."""
    paddle.seed(0)
    x = paddle.randn([64, 256])
    he = nn.initializer.KaimingNormal()
    with exercise.plugged(yours):
        for _ in range(20):
            x = F.relu(nn.Linear(256, 256, weight_attr=he)(x))
    spread = float(np.sqrt((x.numpy() ** 2).mean()))
    expect_that(0.3 < spread < 3, "a spread between 0.3 and 3 after 20 layers", got=spread)
