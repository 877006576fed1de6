"""Checks of 20_half_precision/unscale."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Check and unscale the gradients of a scaled loss",
    level="medium",
    minutes=20,
    before=("20_half_precision/policy",),
    slots={"amp.check_and_unscale": "check_and_unscale"},
    hints=(
        "The gradients are [60000, 60000] in float16, whose largest number is 65504. Is there "
        "anything wrong with them? And with their sum?",
        "`paddle.isfinite(g).all()` is a 0-D tensor of bool for one gradient; `&` joins two of "
        "them. `astype(g.dtype)` brings a quotient back.",
        "finite: a tensor True\n"
        "for each gradient: finite ← finite and all of it is finite; its quotient, in its dtype\n"
        "return the quotients and not finite",
    ),
    wrong={
        "the verdict turned round": "~finite → finite",
        "only the last gradient is looked at": (
            "finite & paddle.isfinite(g).all() → paddle.isfinite(g).all()"
        ),
        "one finite number is enough": "paddle.isfinite(g).all() → paddle.isfinite(g).any()",
        "NaN overlooked": "paddle.isfinite(g) → ~paddle.isinf(g)",
        "infinities overlooked": "paddle.isfinite(g) → ~paddle.isnan(g)",
        "the sum is looked at": (
            "paddle.isfinite(g).all() → paddle.isfinite(g.astype('float16').sum())"
        ),
        "multiplied": "g / scale → g * scale",
        "quotients in float32": "(g / scale).astype(g.dtype) → g / scale",
        "a scale of half precision": "g / scale → g / scale.astype(g.dtype)",
        "left as they are": "(g / scale).astype(g.dtype) → g",
        "only finite gradients come back": (
            "unscaled.append((g / scale).astype(g.dtype)) → "
            "unscaled = [*unscaled, (g / scale).astype(g.dtype)][-1:]"
        ),
    },
)


@exercise.mistake("asking in Python")
def check_and_unscale(gradients, scale):
    found, unscaled = False, []
    for g in gradients:
        if not bool(paddle.isfinite(g).all()):
            found = True
        unscaled.append((g / scale).astype(g.dtype))
    return unscaled, paddle.to_tensor(found)


@exercise.mistake("stopping at the first infinity")
def check_and_unscale(gradients, scale):  # noqa: F811
    finite = paddle.to_tensor(True)
    for g in gradients:
        finite = finite & paddle.isfinite(g).all()
    return [paddle.where(finite, (g / scale).astype(g.dtype), g) for g in gradients], ~finite


def ask(yours, arrays, scale):
    """Quotients and verdict, as arrays; what was given must be as before."""
    tensors = [paddle.to_tensor(a) for a in arrays]
    unscaled, found = yours.check_and_unscale(tensors, paddle.to_tensor(scale, dtype="float32"))
    given = {"gradients": arrays, "scale": scale}
    expect(len(unscaled), len(arrays), given=given, why="as many as there were")
    for a, x, y in zip(arrays, tensors, unscaled, strict=True):
        expect(str(y.dtype), str(x.dtype), given=given, why="the dtype of a gradient")
        same = np.array_equal(x.numpy(), a, equal_nan=True)
        expect_that(same, "a gradient was written into", given=given, got=x)
    expect(str(found.dtype), "paddle.bool", given=given, why="the dtype of the verdict")
    expect(found.shape, [], given=given, why="the shape of the verdict")
    return [y.numpy() for y in unscaled], found.item(), given


@exercise.example
def the_example(yours):
    """An infinity among three numbers."""
    got, found, given = ask(yours, [np.array([8.0, np.inf], "f"), np.array([4.0], "f")], 4.0)
    expect(got, [np.array([2.0, np.inf], "f"), np.array([1.0], "f")], given=given)
    expect(found, True, given=given)


@exercise.example
def finite_numbers_whose_sum_is_not(yours):
    """float16: 60000 + 60000 is infinite, but both are gradients as they should be."""
    got, found, given = ask(yours, [np.full(20, 60000, "float16")] * 2, 65536.0)
    expect(got[0].astype("float32"), np.full(20, 60000 / 65536, "f"), given=given, rtol=1e-3)
    expect(found, False, given=given)


numbers = st.sampled_from([0.0, 1.0, -3.0, 1e-4, 6e4, np.inf, -np.inf, np.nan])
dtypes = st.sampled_from(["float16", "float32", "float64", "bfloat16"])
gradient = st.tuples(dtypes, st.lists(numbers, max_size=4))


@exercise.property(drawn=st.lists(gradient, min_size=1, max_size=9), power=st.integers(0, 17))
def any_gradients(yours, drawn, power):
    """Many gradients of several dtypes, empty ones among them; scales up to 2^17."""
    scale = 2.0**power
    arrays = [paddle.to_tensor(own, dtype=dtype).numpy() for dtype, own in drawn]
    with np.errstate(all="ignore"):
        got, found, given = ask(yours, arrays, scale)
    for a, y in zip(arrays, got, strict=True):
        wide = a.astype("float64")
        expect(y.astype("float64"), wide / scale, given=given, rtol=2e-3, atol=1e-7)
    expect(found, not all(np.isfinite(a.astype("float64")).all() for a in arrays), given=given)


@exercise.example
def to_the_last_digit(yours):
    """float64 loses nothing; small numbers, large arrays and a number without axes arrive."""
    got, found, given = ask(yours, [np.array(3.0, "float16")], 4.0)
    expect([got[0].item(), found], [0.75, False], given=given)
    x = np.random.default_rng(0).normal(size=(30, 40)) * 1e-9
    got, found, given = ask(yours, [x, x.astype("f"), x[:0]], 8.0)
    expect(got[0], x / 8, given=given, rtol=1e-15, atol=0)
    expect(got[1], (x / 8).astype("f"), given=given, rtol=1e-7, atol=0)
    expect(found, False, given=given)


@exercise.example
def a_captured_step(yours):
    """In the engine: one program, which leaves a bad step out and goes on after it."""
    w = paddle.create_parameter([2], "float32", is_bias=True)
    sgd = paddle.optimizer.SGD(1.0, parameters=[w])
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0)

    def step(slope):
        scaler.scale((slope * w).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        sgd.clear_grad()

    step, found = paddle.jit.to_static(step), []
    with exercise.plugged(yours), np.errstate(all="ignore"):
        for slope in (2.0, np.inf, 1.0):
            step(paddle.to_tensor(slope))
            found.append((w.numpy()[0].item(), scaler.get_loss_scaling().item()))
    expect(found, [(-2.0, 8.0), (-2.0, 4.0), (-3.0, 4.0)], given={"slopes": [2.0, np.inf, 1.0]})
