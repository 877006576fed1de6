"""Checks of 05_convolutions/conv_backward."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The way back through a convolution",
    level="hard",
    minutes=60,
    before=("05_convolutions/im2col",),
    slots={"ops.conv_input_grad.body": "input_grad", "ops.conv_weight_grad.body": "weight_grad"},
    hints=(
        "One weight, w[o, c, i, j]: which pixels of x does it meet while the kernel slides, and "
        "which elements of g does each of these meetings change?",
        "pixels(i, j, ...) of the padded image has the shape of one channel of g. einsum "
        "multiplies the two and adds up over images and places; for x the same index takes what "
        "comes back.",
        "for every tap (i, j):\n"
        "    gradient of w at (i, j) = sum over n, p, q of g · (the pixels the tap meets)\n"
        "    gradient of the padded x, at these pixels, += sum over o of g · w at (i, j)\n"
        "cut the padding off",
    ),
    wrong={
        "taps that share a pixel overwrite each other": (
            "x[pixels(i, j, out, stride, dilation)] += back.reshape(x.shape[0], x.shape[1], *out)"
            " → x[pixels(i, j, out, stride, dilation)] = back.reshape(x.shape[0], x.shape[1], *out)"
        ),
        "forgetting to cut the padding off": (
            "return x[:, :, above:above + size[0], left:left + size[1]] → return x[:, :, "
            ":size[0], :size[1]]"
        ),
        "forgetting to pad": "((0, 0), (0, 0), *padding) → ((0, 0), (0, 0), (0, 9), (0, 9))",
        "forgetting the stride": (
            (
                "slice(top, top + (out[0] - 1) * stride[0] + 1, stride[0]) → slice(top, top + "
                "out[0])"
            ),
            (
                "slice(left, left + (out[1] - 1) * stride[1] + 1, stride[1]) → slice(left, "
                "left + out[1])"
            ),
        ),
        "forgetting the dilation": "(i * dilation[0], j * dilation[1]) → (i, j)",
        "exchanging the axes of the dilation": (
            "(i * dilation[0], j * dilation[1]) → (i * dilation[1], j * dilation[0])"
        ),
        "the kernel upside down": "(..., i, j) → (..., -1 - i, -1 - j)",
        "the mean over the images instead of the sum": (
            "m.einsum('ngopq,ngcpq->goc', g, met).reshape(w.shape[:2]) → "
            "m.einsum('ngopq,ngcpq->goc', g, met).reshape(w.shape[:2]) / len(x)"
        ),
        "only the first image": (
            "m.einsum('ngopq,ngcpq->goc', g, met) → m.einsum('ngopq,ngcpq->goc', g[:1], met[:1])"
        ),
        "the groups' filters mixed up": (
            "w.reshape(groups, -1, *w.shape[1:]) → w.reshape(-1, groups, "
            "*w.shape[1:]).swapaxes(0, 1)"
        ),
        "padding above taken for padding below": (
            "(above, below), (left, right) = padding → (below, above), (left, right) = padding"
        ),
    },
    unkillable={
        "out, g, w = (g.shape[2:], _parts(g, groups), w.reshape(groups, -1, "
        "*w.shape[1:])) → out, g, w = (g.shape[2:], _parts(g, groups), w.reshape(groups, "
        "-2, *w.shape[1:]))": "NumPy takes any negative size",
    },
)

HOW = ("stride", "padding", "dilation", "groups")
PLAIN = dict(zip(HOW, ((1, 1), ((0, 0), (0, 0)), (1, 1), 1), strict=True))


def row(*numbers):
    """One image, or filter, of one row."""
    return np.array(numbers, dtype=float).reshape(1, 1, 1, -1)


@exercise.example
def three_pixels_two_taps(yours):
    """y = [1·10 + 2·20, 2·10 + 3·20]. The middle pixel is in both, so both send something back."""
    x, w, g = row(1, 2, 3), row(10, 20), row(1, 100)
    given = {"x": "[1, 2, 3]", "w": "[10, 20]", "g": "[1, 100]"}
    got = yours.weight_grad(np, x, g, kernel=(1, 2), **PLAIN)
    expect(got, row(201, 302), given=given, why="the gradient for w")
    got = yours.input_grad(np, g, w, size=(1, 3), **PLAIN)
    expect(got, row(10, 1020, 2000), given=given, why="the gradient for x")


@exercise.example
def which_pixels(yours):
    """Places 0, 3, 6 down and 0, 2 to the right; tap (1, 2) with dilation 2 is 2 and 4 further."""
    field = np.arange(100).reshape(1, 1, 10, 10)
    got = field[yours.pixels(1, 2, (3, 2), (3, 2), (2, 2))]
    expect(got, [[[[24, 26], [54, 56], [84, 86]]]], given={"x": "0 ... 99 in ten rows"})


@exercise.example
def in_single_precision(yours):
    """What is given in float32 comes back in float32."""
    x, g = (np.ones(s, "float32") for s in ((1, 1, 3, 3), (1, 1, 2, 2)))
    for got in (
        yours.weight_grad(np, x, g, kernel=(2, 2), **PLAIN),
        yours.input_grad(np, g, g, size=(3, 3), **PLAIN),
    ):
        expect_that(got.dtype == "float32", "float32", got=str(got.dtype))


def terms(x_shape, w_shape, g_shape, stride, padding, dilation, groups):
    """Every product w[o, c, i, j] · x[n, d, a, b] that is part of y[n, o, p, q]."""
    filters = w_shape[0] // groups
    for n, o, p, q in np.ndindex(*g_shape):
        for c, i, j in np.ndindex(*w_shape[1:]):
            a = p * stride[0] + i * dilation[0] - padding[0][0]
            b = q * stride[1] + j * dilation[1] - padding[1][0]
            if 0 <= a < x_shape[2] and 0 <= b < x_shape[3]:
                yield (n, o, p, q), (o, c, i, j), (n, o // filters * w_shape[1] + c, a, b)


two = st.tuples(st.integers(1, 2), st.integers(1, 2))
pair = st.tuples(st.integers(0, 2), st.integers(0, 2))


@exercise.property(
    kernel=two, stride=st.tuples(st.integers(1, 3), st.integers(1, 3)), dilation=two,
    padding=st.tuples(pair, pair), out=two, spare=pair,
    groups=st.integers(1, 2), channels=st.integers(1, 2), filters=st.integers(1, 2),
    seed=st.integers(0, 9),
)  # fmt: skip
def as_the_sum_says(yours, kernel, stride, dilation, padding, out, spare, groups, channels,
                    filters, seed):  # fmt: skip
    """Product after product of the convolution: each sends g · w to x, and g · x to w."""
    rng = np.random.default_rng(seed)
    size = tuple(  # the last pixels may be such that no place reaches them
        max(1, (o - 1) * s + d * (k - 1) + 1 + e % s - a - b)
        for o, k, s, d, e, (a, b) in zip(out, kernel, stride, dilation, spare, padding, strict=True)
    )
    out = tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, d, (a, b) in zip(size, kernel, stride, dilation, padding, strict=True)
    )
    x = rng.normal(size=(2, channels * groups, *size))
    w = rng.normal(size=(filters * groups, channels, *kernel))
    g = rng.normal(size=(2, filters * groups, *out))
    at = dict(zip(HOW, (stride, padding, dilation, groups), strict=True))
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for y, of_w, of_x in terms(x.shape, w.shape, g.shape, **at):
        gx[of_x] += g[y] * w[of_w]
        gw[of_w] += g[y] * x[of_x]
    got = yours.weight_grad(np, x, g, kernel=kernel, **at)
    expect(got, gw, given={"x": x, "g": g, "kernel": kernel, **at}, why="the gradient for w")
    got = yours.input_grad(np, g, w, size=size, **at)
    expect(got, gx, given={"g": g, "w": w, "size": size, **at}, why="the gradient for x")


@exercise.example
def as_finite_differences_say(yours):
    """backward() through paddle's conv2d, to second order: the three operators are a family."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 2, 4, 5)), rng.normal(size=(4, 1, 2, 2))

    def program(x, w):
        return (F.conv2d(x, w, None, [2, 1], [0, 1, 1, 0], [1, 2], 2) ** 2).sum()

    with exercise.plugged(yours):
        expect_gradients(program, [x, w])
        expect_gradients(lambda w: program(paddle.to_tensor(x), w), [w], order=2)


@exercise.example
def a_network_learns(yours):
    """Lying and standing bars: two layers of filters learn to tell them apart on your gradients."""
    rng, labels = np.random.default_rng(0), np.arange(32) % 2
    x = rng.normal(size=(32, 1, 6, 6)).astype("float32") * 0.1
    for image, label in zip(x, labels, strict=True):
        image[(0, 2) if label else (0, slice(None), 3)] += 1
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 4, 3), nn.ReLU(), nn.Conv2D(4, 2, 3, stride=2, padding=1),
                        nn.AdaptiveAvgPool2D(1), nn.Flatten())  # fmt: skip
    adam = paddle.optimizer.Adam(0.03, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(40):
            loss = F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(labels))
            loss.backward()
            adam.step()
            adam.clear_grad()
    expect_that(loss.item() < 0.05, "a loss below 0.05 after 40 steps", got=loss.item())


def sent(x_shape, w_shape, g, x=None, w=None):
    """The gradient for w, given x, or for x, given w: product after product."""
    found = np.zeros(w_shape if w is None else x_shape)
    for y, of_w, of_x in terms(x_shape, w_shape, g.shape, **PLAIN):
        if w is None:
            found[of_w] += g[y] * x[of_x]
        else:
            found[of_x] += g[y] * w[of_w]
    return found


exercise.holds(
    lambda yours, x, g: yours.weight_grad(np, x, g, kernel=(2, 2), **PLAIN),
    lambda x, g: sent(x.shape, (3, 2, 2, 2), g, x=x),
    [(2, 2, 4, 4), (2, 3, 3, 3)],
    large=[(1, 2, 8, 9), (1, 3, 7, 8)],
    empty=[(0, 2, 4, 4), (0, 3, 3, 3)],
    infinite=[np.inf],
)
exercise.holds(
    lambda yours, g, w: yours.input_grad(np, g, w, size=(g.shape[2] + 1, 4), **PLAIN),
    lambda g, w: sent((len(g), 2, g.shape[2] + 1, 4), w.shape, g, w=w),
    [(2, 3, 3, 3), (3, 2, 2, 2)],
    large=[(2, 3, 7, 3), (3, 2, 2, 2)],
    empty=[(0, 3, 3, 3), (3, 2, 2, 2)],
    infinite=[np.inf],
)
