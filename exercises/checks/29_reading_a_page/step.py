"""Checks of 29_reading_a_page/step."""

import numpy as np
from scipy.special import expit

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="A step with a slope: a threshold that can be learned",
    level="easy",
    minutes=15,
    before=("02_autograd",),
    slots={"ocr.binarize": "binarize"},
    hints=(
        "1 / (1 + exp(-x)) has a name, and the engine has a function of that name, which does not "
        "overflow. What is x here?",
        "Its derivative by x is exp(-x) / (1 + exp(-x))². Write s for the step: then 1 - s is "
        "exp(-x) / (1 + exp(-x)). So what is the product of s and 1 - s, and what comes in with k?",
        "the step: sigmoid of k times (probability - threshold)\n"
        "the slope: k times step times (1 - step)",
    ),
    wrong={
        "exp overflows, and the derivative is nan": (
            "F.sigmoid(k * (probability - threshold)) → "
            "1.0 / (1.0 + (-k * (probability - threshold)).exp())"
        ),
        "a cut": "F.sigmoid(k * (probability - threshold)) → "
        "(probability > threshold).astype(probability.dtype)",
        "a line that is cut off": "F.sigmoid(k * (probability - threshold)) → "
        "(0.5 + k / 4 * (probability - threshold)).clip(0.0, 1.0)",
        "0 above and 1 below": "k * (probability - threshold) → k * (threshold - probability)",
        "k before the difference": "k * (probability - threshold) → k * probability - threshold",
        "k is always 50": "k * (probability - threshold) → 50.0 * (probability - threshold)",
        "flat for the threshold": "probability - threshold → probability - "
        "getattr(threshold, 'detach', lambda: threshold)()",
        "from -1 to 1": "F.sigmoid(k * (probability - threshold)) → "
        "F.tanh(k * (probability - threshold))",
        "the slope without k": "k * step * (1.0 - step) → step * (1.0 - step)",
        "the slope of something else": "1.0 - step → 1.0 + step",
        "the slope at the threshold everywhere": "k * step * (1.0 - step) → k * 0.25 + 0.0 * step",
    },
    unkillable={"slope: right only for finite numbers": "a step is a number from 0 to 1"},
)


@exercise.example
def in_the_task(yours):
    """Three probabilities, and the slopes at two steps."""
    got = yours.binarize(paddle.to_tensor([0.25, 0.5, 0.75]), 0.5, k=8.0)
    expect(got, [expit(-2.0), 0.5, expit(2.0)], given="[0.25, 0.5, 0.75], 0.5, k=8.0")
    expect(yours.slope(paddle.to_tensor([0.5, 0.75]), k=8.0), [2.0, 1.5], given="[0.5, 0.75], k=8")
    got = yours.binarize(paddle.to_tensor([0.3, 0.34]), 0.3)
    expect(got, [0.5, expit(2.0)], given="[0.3, 0.34], 0.3", why="k is 50 if it is not given")
    expect(yours.slope(paddle.to_tensor([0.5])), [12.5], given="[0.5]", why="k is 50, too")


def call(yours, probability, threshold):
    return yours.binarize(probability, threshold, 3.0)


exercise.holds(
    call,
    lambda p, t: expit(3.0 * (p - t)),
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 4), (0, 4)],
    infinite=(np.inf, -np.inf),
    tensors=True,
)
exercise.holds(
    call, lambda p, t: expit(3.0 * (p - t)), [(2, 3, 4), (3, 1)], large=[(2, 300), (1,)],
    tensors=True,
)  # fmt: skip
exercise.holds(
    lambda yours, step: yours.slope(step, 7.0),
    lambda s: 7.0 * (s - s * s),
    [(3, 4)],
    large=[(40, 30)],
    empty=[(0, 4)],
    tensors=True,
)


@exercise.example
def half_precision(yours):
    """float16 stays float16, for a tensor of a threshold and for a number."""
    p = paddle.to_tensor(np.linspace(0, 1, 9), "float16")
    for threshold in (0.5, paddle.to_tensor([0.5], "float16")):
        got = yours.binarize(p, threshold)
        expect(str(got.dtype), str(p.dtype), given={"probability": p}, why="the dtype")
        wanted = expit(50 * (np.linspace(0, 1, 9) - 0.5))
        expect(got.astype("float64"), wanted, given={"probability": p}, rtol=2e-3, atol=1e-6)


@exercise.example
def the_engine_derives_it(yours):
    """First and second derivative by both, and your slope is the first."""
    rng = np.random.default_rng(0)
    for shapes in (((2, 3), (2, 3)), ((2, 3), (1,))):
        inputs = [rng.uniform(0.28, 0.32, shape) for shape in shapes]
        for order in (1, 2):
            expect_gradients(yours.binarize, inputs, order=order)
    p = paddle.to_tensor(rng.uniform(0.2, 0.4, 200), stop_gradient=False)
    step = yours.binarize(p, 0.3)
    step.sum().backward()
    expect(yours.slope(step), p.grad, given={"probability": p}, rtol=1e-9, atol=1e-12,
           why="your slope is not the derivative of your step")  # fmt: skip
    expect_gradients(lambda s: yours.slope(s, 3.0), [rng.uniform(0, 1, 4)])


@exercise.example
def far_from_the_threshold(yours):
    """So far that exp overflows: 0 or 1, and flat."""
    for dtype in ("float32", "float64"):
        p = paddle.to_tensor([-1e30, -1e4, -20.0, 20.0, 1e4, 1e30], dtype, stop_gradient=False)
        t = paddle.zeros([1], dtype)
        t.stop_gradient = False
        got = yours.binarize(p, t)
        got.sum().backward()
        given = {"probability": p.detach(), "threshold": 0.0}
        expect(got, [0.0, 0, 0, 1, 1, 1], given=given, atol=1e-30)
        expect(p.grad, [0.0] * 6, given=given, atol=1e-30, why="the gradient of the probability")
        expect(t.grad, [0.0], given=given, atol=1e-30, why="the gradient of the threshold")


@exercise.example
def a_threshold_is_learned(yours):
    """In a captured program: dark pixels are at 0.2 and 0.4, bright ones at 0.6. The threshold
    begins at 0.3 and moves between them.
    """
    p = paddle.to_tensor([0.2, 0.4, 0.6] * 8)
    text = paddle.to_tensor([0.0, 0.0, 1.0] * 8)
    threshold = paddle.create_parameter([1], "float32")
    threshold.set_value(np.array([0.3], "float32"))
    descent = paddle.optimizer.SGD(0.01, [threshold])

    def loss_of(p, text):
        return (ocr.binarize(p, threshold, 20.0) - text).square().mean()

    with exercise.plugged(yours):
        captured = paddle.jit.to_static(loss_of)
        losses = []
        for _ in range(40):
            loss = captured(p, text)
            loss.backward()
            descent.step()
            descent.clear_grad()
            losses.append(loss.item())
    expect_that(losses[-1] < losses[0] / 10, "the loss stays as large", got=losses[::8])
    where = threshold.item()
    expect_that(0.45 < where < 0.55, "the threshold is not between dark and bright", got=where)
