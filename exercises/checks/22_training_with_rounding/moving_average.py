"""Checks of 22_training_with_rounding/moving_average."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect
from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

exercise = Exercise(
    title="The moving average: a scale that follows",
    level="easy",
    minutes=10,
    slots={"quantization.moving_average": "moving_average"},
    hints=(
        "With rate 0.5, what do three magnitudes 8, 4, 2, one after the other, weigh at the end, "
        "and what is their mean?",
        "The new weight is 1 whatever the rate: it is added to `state` as the magnitude is added "
        "to `accum`. Both lose the same share first.",
        "state ← state · rate + 1\naccum ← accum · rate + top",
    ),
    wrong={
        "the largest of all": "accum * rate + top → paddle.maximum(accum, top)",
        "weights that are not counted": "state * rate + 1.0 → state",
        "the new one with 1 - rate": "accum * rate + top → accum * rate + (1 - rate) * top",
        "a plain sum": "accum * rate + top → accum + top",
        "a count": "state * rate + 1.0 → state + 1.0",
        "the two exchanged": (
            "return (state * rate + 1.0, accum * rate + top) → "
            "return accum * rate + top, state * rate + 1.0"
        ),
        "the new one loses too": "accum * rate + top → (accum + top) * rate",
        "always 0.9": ("state * rate + 1.0 → state * 0.9 + 1.0", "accum * rate → accum * 0.9"),
        "the last one alone": "accum * rate + top → top",
        "the scale instead of the sum": "accum * rate + top → (accum * rate + top) / (state * rate "
                                        "+ 1.0)",
    },
)  # fmt: skip


def check(yours, values, rate, dtype):
    """One step on arrays of a dtype, against NumPy in double precision."""
    arrays = [np.asarray(v, dtype) for v in values]
    tensors = [paddle.to_tensor(a) for a in arrays]
    given = dict(zip(("state", "accum", "top"), arrays, strict=True)) | {"rate": rate}
    with np.errstate(all="ignore"):
        got = yours.moving_average(*tensors, rate)
        state, accum, top = (a.astype("float64") for a in arrays)
        expected = state * rate + 1, accum * rate + top
    for x, y, what in zip(got, expected, ("state", "accum"), strict=True):
        expect(str(x.dtype), f"paddle.{dtype}", given=given, why=f"the dtype of {what}")
        expect(x.shape, [*y.shape], given=given, why=f"the shape of {what}")
        rtol = 1e-14 if dtype == "float64" else 1e-6
        expect(x.numpy().astype("float64"), y, given=given, why=what, rtol=rtol, atol=0)
    for t, a in zip(tensors, arrays, strict=True):
        expect(t.numpy(), a, given=given, why="what was given is as before")


@exercise.example
def the_example(yours):
    """A mean of 2 meets a magnitude of 4."""
    check(yours, (1.0, 2.0, 4.0), 0.5, "float32")


@exercise.property(
    values=st.tuples(*[st.sampled_from([0.0, 1.0, 3.5, 1e-9, 700.0, np.inf])] * 3),
    rate=st.sampled_from([0.0, 0.1, 0.9, 0.99, 1.0]),
    dtype=st.sampled_from(["float32", "float64"]),
    shape=st.sampled_from([(), (1,), (3,), (0,), (20, 30)]),
)
def any_values(yours, values, rate, dtype, shape):
    """Numbers and arrays of any shape."""
    if rate == 0.0 and np.inf in values:
        return
    check(yours, [np.full(shape, v) for v in values], rate, dtype)


@exercise.property(
    tops=st.lists(st.floats(0.25, 8).map(lambda v: round(v, 2)), min_size=1, max_size=5),
    rate=st.sampled_from([0.5, 0.9]),
    examples=8,
)
def in_the_engine(yours, tops, rate):
    """A quanter in training: its scale is the weighted mean of what it saw, and of 1 before."""
    quanter = FakeQuanterWithAbsMaxObserver(moving_rate=rate)._instance(None)
    weights = rate ** np.arange(len(tops), -1, -1)
    expected = (weights * np.array([1.0, *tops])).sum() / weights.sum()
    with exercise.plugged(yours):
        for top in tops:
            quanter(paddle.to_tensor([0.1, -top]))
    got = quanter.scales().item()
    expect(got, float(expected), given={"magnitudes": tops, "rate": rate}, rtol=1e-5)
