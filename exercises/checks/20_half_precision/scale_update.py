"""Checks of 20_half_precision/scale_update."""

import math

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Update the scale after a step",
    level="medium",
    minutes=20,
    before=("20_half_precision/unscale",),
    slots={"amp.update_scale": "update_scale"},
    hints=(
        "incr_every = 3, and the steps are good, good, bad, good, good, good. After which of them "
        "does the scale grow?",
        "First the two counts, then the two conditions on the new counts, then the two scales that "
        "are possible, each within its bound, and last which of them holds.",
        "good ← 0 if found else good + 1;  bad ← bad + 1 if found else 0\n"
        "grown = scale · incr_ratio, or scale if that is infinite\n"
        "fallen = scale · decr_ratio, at least 1\n"
        "the scale by good >= incr_every and bad >= decr_every, the count that did it ← 0",
    ),
    wrong={
        "good steps that are not in a row": "paddle.where(found, 0, good + 1) → "
        "paddle.where(found, good, good + 1)",
        "bad steps that are not in a row": "paddle.where(found, bad + 1, 0) → "
        "paddle.where(found, bad + 1, bad)",
        "one step too late": "good >= incr_every → good > incr_every",
        "falling one step too late": "bad >= decr_every → bad > decr_every",
        "an infinite scale": "paddle.where(paddle.isfinite(grown), grown, scale) → grown",
        "a scale below 1": "paddle.maximum(scale * decr_ratio, paddle.ones_like(scale)) → "
        "scale * decr_ratio",
        "the counts go on": "paddle.where(grows, 0, good) → good",
        "the bad ones go on": "paddle.where(falls, 0, bad) → bad",
        "every good step grows": "good >= incr_every → good >= 1",
        "every bad step falls": "bad >= decr_every → bad >= 1",
        "found turned round": (
            "paddle.where(found, 0, good + 1) → paddle.where(found, good + 1, 0)",
            "paddle.where(found, bad + 1, 0) → paddle.where(found, 0, bad + 1)",
        ),
        "ratios of 2": ("scale * incr_ratio → scale * 2.0", "scale * decr_ratio → scale / 2.0"),
        "both counts begin again": "paddle.where(falls, 0, bad) → paddle.where(falls, 0, bad * 0)",
    },
    unkillable={
        "update_scale: right only for small arrays": "all are 0-D",
        "update_scale: right only for arrays that are not empty": "all are 0-D",
        "update_scale: right only for finite numbers": "the scale never becomes infinite",
        "update_scale: always float32": "the scale is float32",
        "update_scale: inexact where numbers are small": "the scale is at least 1",
    },
)  # fmt: skip


@exercise.mistake("asking in Python")
def update_scale(scale, found, good, bad, *, incr_every, decr_every, incr_ratio, decr_ratio):
    if bool(found):
        good, bad = good * 0, bad + 1
        if bool(bad >= decr_every):
            scale, bad = paddle.maximum(scale * decr_ratio, paddle.ones_like(scale)), bad * 0
    else:
        good, bad = good + 1, bad * 0
        if bool(good >= incr_every):
            grown = scale * incr_ratio
            scale, good = paddle.where(paddle.isfinite(grown), grown, scale), good * 0
    return scale, good, bad


class ByHand:
    """The same in numbers of Python."""

    def __init__(self, scale, incr_every, decr_every, incr_ratio, decr_ratio):
        self.scale, self.good, self.bad = scale, 0, 0
        self.how = {"incr_every": incr_every, "decr_every": decr_every}
        self.how |= {"incr_ratio": incr_ratio, "decr_ratio": decr_ratio}

    def update(self, found):
        if found:
            self.good, self.bad = 0, self.bad + 1
            if self.bad == self.how["decr_every"]:
                self.scale, self.bad = max(self.scale * self.how["decr_ratio"], 1.0), 0
        else:
            self.good, self.bad = self.good + 1, 0
            if self.good == self.how["incr_every"]:
                with np.errstate(over="ignore"):
                    grown = float(np.float32(self.scale) * np.float32(self.how["incr_ratio"]))
                self.scale, self.good = grown if math.isfinite(grown) else self.scale, 0
        return self.scale, self.good, self.bad


DTYPES = ("float32", "int32", "int32")


def trace(yours, hand, steps):
    """Compare a run of steps, each from what the one before gave."""
    given = {"scale": hand.scale, **hand.how, "found": steps}
    values = hand.scale, 0, 0
    with np.errstate(over="ignore"):
        for k, found in enumerate(steps):
            state = [paddle.to_tensor(v, dtype=d) for v, d in zip(values, DTYPES, strict=True)]
            scale, good, bad = state
            new = yours.update_scale(scale, paddle.to_tensor(found), good, bad, **hand.how)
            for x, dtype in zip(new, DTYPES, strict=True):
                expect(x.dtype.name, dtype, given=given, why="the dtype of a result")
                expect(x.shape, [], given=given, why="the shape of a result")
            expect([x.item() for x in state], [*values], given=given, why="what is given stays")
            values = hand.update(found)
            got = tuple(x.item() for x in new)
            why = f"(scale, good, bad) after step {k + 1}"
            expect(got, values, given=given, why=why, rtol=1e-7, atol=0)


@exercise.example
def the_example(yours):
    """Two good steps in a row double the scale; a bad one halves it."""
    trace(yours, ByHand(8.0, 2, 1, 2.0, 0.5), [False, False, True, False, True, False, False])


@exercise.example
def its_bounds(yours):
    """It grows no further than float32 reaches, and falls no further than 1."""
    trace(yours, ByHand(2.0**126, 1, 1, 2.0, 0.5), [False] * 4 + [True] * 2)
    trace(yours, ByHand(3.0, 5, 1, 2.0, 0.25), [True] * 3 + [False])


@exercise.property(
    scale=st.sampled_from([1.0, 6.0, 65536.0]),
    every=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    ratios=st.tuples(st.sampled_from([2.0, 1.5, 4.0]), st.sampled_from([0.5, 0.25, 0.9])),
    steps=st.lists(st.booleans(), max_size=12),
    examples=30,
)
def any_steps(yours, scale, every, ratios, steps):
    """Good and bad steps in any order."""
    trace(yours, ByHand(scale, *every, *ratios), steps)


@exercise.example
def a_captured_step(yours):
    """In the engine: one program makes all steps, good and bad."""
    w = paddle.create_parameter([1], "float32", is_bias=True)
    sgd = paddle.optimizer.SGD(1.0, parameters=[w])
    scaler = paddle.amp.GradScaler(True, 8.0, 2.0, 0.25, 2, 1)

    def step(slope):
        scaler.scale((slope * w).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        sgd.clear_grad()

    step, found = paddle.jit.to_static(step), []
    slopes = [1.0, 1.0, math.inf, 1.0, math.nan, 1.0, 1.0]
    with exercise.plugged(yours), np.errstate(all="ignore"):
        for slope in slopes:
            step(paddle.to_tensor(slope))
            found.append(scaler.get_loss_scaling().item())
    expect(found, [8.0, 16.0, 4.0, 4.0, 1.0, 1.0, 2.0], given={"slopes": slopes})
