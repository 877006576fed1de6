"""Checks of 05_convolutions/max_pool."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The way back through max pooling: the winner takes all",
    level="hard",
    minutes=50,
    before=("05_convolutions/output_size",),
    slots={"ops.max_pool_grad.body": "max_pool_grad"},
    hints=(
        "Nudge a pixel that is not the largest of its window: how far does the result move? And if "
        "you nudge the largest?",
        "For place (i, j) in a window, x[..., i::stride, j::stride] are its pixels in all windows "
        "at once. Comparing them with y says where this place has won.",
        "put the image into a frame of nan, as far as the windows reach\n"
        "waiting = True for every window\n"
        "for every place (i, j) in a window, in reading order:\n"
        "    wins = waiting and (the pixels at this place equal y)\n"
        "    gradient at these pixels += g where wins\n"
        "    those windows wait no longer\n"
        "cut the frame off",
    ),
    wrong={
        "all equal pixels win": "waiting & (framed[at] == y) → framed[at] == y",
        "the last of equal pixels wins": (
            "range(broad) → reversed(range(broad))",
            "range(tall) → reversed(range(tall))",
        ),
        "windows that overlap overwrite each other": (
            "back[at] += g * wins → back[at] = m.where(wins, g, back[at])"
        ),
        "everybody receives": "back[at] += g * wins → back[at] += g",
        "zeros around the image": "m.nan → 0",
        "forgetting to cut the frame off": "back[inside] → back[:, :, :rows, :columns]",
        "windows side by side, whatever the stride": (
            "(..., slice(i, last[0] + 1, down), slice(j, last[1] + 1, right)) → (..., slice(i, "
            "i + (high - 1) * tall + 1, tall), slice(j, j + (wide - 1) * broad + 1, broad))"
        ),
        "the gradient of the mean": "back[at] += g * wins → back[at] += g / (tall * broad)",
        "forgetting g": "back[at] += g * wins → back[at] += 1.0 * wins",
        "column by column instead of row by row": (
            "for j in range(broad): → for i in [*range(tall)]:",
            "for i in range(tall): → for j in range(broad):",
        ),
    },
)  # fmt: skip


def by_definition(g, x, windows):
    """Window by window, pixel by pixel."""
    (tall, down, above, _), (broad, right, left, _) = windows
    out = np.zeros_like(x)
    for n, c, p, q in np.ndindex(*g.shape):
        best = None
        for i, j in np.ndindex(tall, broad):
            a, b = p * down + i - above, q * right + j - left
            inside = 0 <= a < x.shape[2] and 0 <= b < x.shape[3]
            if inside and (best is None or x[n, c, a, b] > x[n, c][best]):
                best = a, b
        out[n, c][best] += g[n, c, p, q]
    return out


def maxima(x, windows):
    """What pooling makes of x, window by window."""
    (tall, down, above, high), (broad, right, left, wide) = windows
    y = np.zeros((*x.shape[:2], high, wide))
    for p, q in np.ndindex(high, wide):
        top, side = p * down - above, q * right - left
        window = x[:, :, max(top, 0) : top + tall, max(side, 0) : side + broad]
        y[:, :, p, q] = window.max((2, 3))
    return y


@exercise.example
def five_pixels_in_a_row(yours):
    """Two windows, [1, 7, 7] and [7, 2, 9]: the first 7 wins its window, the 9 the other."""
    x, y, g = (
        np.array(a, dtype=float).reshape(1, 1, 1, -1) for a in ([1, 7, 7, 2, 9], [7, 9], [10, 20])
    )
    windows = ((1, 1, 0, 1), (3, 2, 0, 2))
    got = yours.max_pool_grad(np, g, x, y, windows=windows)
    given = {"x": "[1, 7, 7, 2, 9]", "g": "[10, 20]", "windows": windows}
    expect(got.ravel(), [0.0, 10.0, 0.0, 0.0, 20.0], given=given)


def axis(kernel):
    return st.tuples(st.just(kernel), st.integers(1, 3), st.integers(0, kernel // 2))


axes = st.integers(1, 3).flatmap(axis)


@exercise.property(
    down=axes, right=axes, size=st.tuples(st.integers(3, 6), st.integers(3, 6)),
    ceil=st.booleans(), lift=st.integers(0, 3), seed=st.integers(0, 9), examples=60,
)  # fmt: skip
def through_the_engine(yours, down, right, size, ceil, lift, seed):
    """Any windows on images of few different values (so that many tie): backward of max_pool2d."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 1, (2, 2, *size)) + lift * 1.0
    given = {"x": x}
    kernel, stride, padding = ([a, b] for a, b in zip(down, right, strict=True))
    given |= {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
    tx = paddle.to_tensor(x, stop_gradient=False)
    with exercise.plugged(yours):
        y = F.max_pool2d(tx, kernel, stride, padding, ceil_mode=ceil)
        windows = tuple(
            (k, s, p, n) for k, s, p, n in zip(kernel, stride, padding, y.shape[2:], strict=True)
        )
        if any((n - 1) * s - p >= m for (_, s, p, n), m in zip(windows, size, strict=True)):
            return  # a window that meets no pixel has no winner
        g = rng.normal(size=y.shape)
        y.backward(paddle.to_tensor(g))
    expect(tx.grad, by_definition(g, x, windows), given=given | {"g": g})


@exercise.example
def on_the_edge(yours):
    """Negative pixels, one row of padding: were there zeros around the image, these would win."""
    x = -np.arange(1.0, 17).reshape(1, 1, 4, 4)
    windows = ((2, 2, 1, 3), (2, 2, 1, 3))
    g = np.arange(1.0, 10).reshape(1, 1, 3, 3)
    got = yours.max_pool_grad(np, g, x, maxima(x, windows), windows=windows)
    expect(got, by_definition(g, x, windows), given={"x": x, "g": g, "windows": windows})


@exercise.example
def pixels_after_the_last_window(yours):
    """Two windows in each row of six pixels: the last three win nothing."""
    x = np.random.default_rng(0).permutation(36).reshape(1, 1, 6, 6) / 10
    windows = ((2, 1, 0, 2), (2, 1, 0, 2))
    g = np.arange(1.0, 5).reshape(1, 1, 2, 2)
    got = yours.max_pool_grad(np, g, x, maxima(x, windows), windows=windows)
    expect(got, by_definition(g, x, windows), given={"x": x, "g": g, "windows": windows})


@exercise.example
def in_single_precision(yours):
    """What is given in float32 comes back in float32, and x has any floating dtype."""
    x, y, g = np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1), "float32")
    got = yours.max_pool_grad(np, g, x, y, windows=((2, 2, 0, 1), (2, 2, 0, 1)))
    expect_that(got.dtype == "float32", "float32", got=str(got.dtype))


@exercise.example
def as_finite_differences_say(yours):
    """All pixels differ: there is one winner, and nudging it is what moves the result."""
    x = np.random.default_rng(0).permutation(30).reshape(1, 1, 5, 6) / 10
    with exercise.plugged(yours):
        expect_gradients(lambda x: (F.max_pool2d(x, 3, 2, 1) ** 2).sum(), [x])


@exercise.example
def a_network_learns(yours):
    """Dark and bright spots: a filter, your pooling, and a loss that falls."""
    rng, labels = np.random.default_rng(0), np.arange(32) % 2
    x = rng.normal(size=(32, 1, 6, 6)).astype("float32") * 0.1
    for image, label, at in zip(x, labels, rng.integers(0, 6, (32, 2)), strict=True):
        image[0, at[0], at[1]] += 2 * label - 1
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 4, 3, padding=1), nn.MaxPool2D(2), nn.MaxPool2D(3),
                        nn.Flatten(), nn.Linear(4, 2))  # fmt: skip
    adam = paddle.optimizer.Adam(0.03, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(40):
            loss = F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(labels))
            loss.backward()
            adam.step()
            adam.clear_grad()
    expect_that(loss.item() < 0.1, "a loss below 0.1 after 40 steps", got=loss.item())


HALVES = ((2, 2, 0, 2), (2, 2, 0, 2))

exercise.holds(
    lambda yours, x, g: yours.max_pool_grad(
        np, g, x, maxima(x, HALVES).astype(x.dtype), windows=HALVES
    ),
    lambda x, g: by_definition(g, x, HALVES),
    [(2, 2, 4, 4), (2, 2, 2, 2)],
    large=[(16, 2, 4, 4), (16, 2, 2, 2)],
    empty=[(0, 2, 4, 4), (0, 2, 2, 2)],
    infinite=[np.inf, -np.inf],
)
