"""Checks of 05_convolutions/taps."""

import tracemalloc

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="A convolution without patches: a sum over taps",
    level="easy",
    minutes=20,
    before=("05_convolutions/output_size",),
    slots={"conv.correlate": "correlate"},
    hints=(
        "Take one tap alone: its weights are a matrix [filter, channel], what it meets is a matrix "
        "[channel, pixel]. What do the two make?",
        "m.matmul multiplies the last two axes and broadcasts those before them: "
        "[group, filter, channel] with [batch, group, channel, pixel].",
        "total = weights of the first tap @ its slice\n"
        "for every other tap: add its weights @ its slice\n"
        "return total",
    ),
    wrong={
        "leaving the first tap out": "m.matmul(w[0], slices[0]) → m.matmul(w[0], slices[0]) * 0",
        "leaving the last tap out": "len(slices) → max(1, len(slices) - 1)",
        "the last tap alone": (
            "total += m.matmul(w[tap], slices[tap]) → total = m.matmul(w[tap], slices[tap])"
        ),
        "the taps in reverse order": (
            "total += m.matmul(w[tap], slices[tap]) → total += m.matmul(w[-tap], slices[tap])"
        ),
        "every tap with the weights of the first": (
            "total += m.matmul(w[tap], slices[tap]) → total += m.matmul(w[0], slices[tap])"
        ),
        "adding up in a slice": (
            "total = m.matmul(w[0], slices[0]) → total = slices[0] if w.shape[2] == w.shape[3] "
            "else m.matmul(w[0], slices[0]); total[...] = m.matmul(w[0], slices[0])"
        ),
        "copying all slices first, as im2col does": (
            "total = m.matmul(w[0], slices[0]) → slices = list(m.stack(slices)); total = "
            "m.matmul(w[0], slices[0])"
        ),
        "summing groups together": (
            "return total → return total * 0 + total.sum(axis=1, keepdims=True)"
        ),
        "the mean over the taps": "return total → return total / len(slices)",
    },
)


def compare(yours, slices, w):
    given = {"slices": slices, "w": w}
    before = [s.copy() for s in slices]
    expected = np.zeros((slices[0].shape[0], *w.shape[1:3], slices[0].shape[3]))
    for n, g, o, p in np.ndindex(*expected.shape):
        for t, s in enumerate(slices):
            expected[n, g, o, p] += sum(w[t, g, o, c] * s[n, g, c, p] for c in range(w.shape[3]))
    got = yours.correlate(np, slices, w)
    expect(slices, before, given=given, why="the slices must not change")
    expect(got, expected, given=given)


@exercise.example
def two_taps_on_three_places(yours):
    """Weights 10 and 1 on the pixels 1, 2, 3, 4: the slices are [1, 2, 3] and [2, 3, 4]."""
    flat = np.arange(1.0, 5).reshape(1, 1, 1, 4)
    w = np.array([10.0, 1.0]).reshape(2, 1, 1, 1)
    got = yours.correlate(np, [flat[..., :3], flat[..., 1:]], w)
    expect(got, [[[[12.0, 23.0, 34.0]]]], given={"pixels": flat, "weights": w})


sizes = {name: st.integers(1, 3) for name in ("batch", "groups", "channels", "filters", "taps")}


@exercise.property(**sizes, pixels=st.integers(1, 4), seed=st.integers(0, 9))
def as_the_sum_says(yours, batch, groups, channels, filters, taps, pixels, seed):
    """One product after the other."""
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(batch, groups, channels, pixels + taps))
    slices = [flat[..., t : t + pixels] for t in range(taps)]
    compare(yours, slices, rng.normal(size=(taps, groups, filters, channels)))


@exercise.example
def without_copies(yours):
    """49 taps on a picture of 32 channels: no more memory than a few results take."""
    flat = np.ones((1, 1, 32, 4096), "float32")
    slices = [flat[..., t : t + 4000] for t in range(49)]
    w = np.ones((49, 1, 32, 32), "float32")
    tracemalloc.start()
    y = yours.correlate(np, slices, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expect_that(y.dtype == "float32", "float32, as it was given", got=str(y.dtype))
    expect_that(peak < 4 * y.nbytes, "at most four times the memory of the result",
                got=f"{peak / y.nbytes:.0f} times")  # fmt: skip


@exercise.example
def the_engines_convolutions(yours):
    """paddle's conv2d on it, with stride, padding, dilation and groups, and both gradients."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(2, 2, 3, 2))
    with exercise.plugged(yours):
        got = F.conv2d(paddle.to_tensor(x), paddle.to_tensor(w), None, 2, 1, 1, 2)
        expect_gradients(
            lambda x, w: (F.conv2d(x, w, None, [1, 2], 1, [2, 1], 2) ** 2).sum(),
            [x[:1, :, :, :4], w],
        )
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    parts = [np.einsum("ncpqij,cij->npq", views[:, 2 * k : 2 * k + 2], w[k]) for k in range(2)]
    expect(got, np.stack(parts, axis=1), given={"x": x, "w": w, "stride": 2, "groups": 2})


@exercise.example
def a_network_learns_on_it(yours):
    """Lying and standing bars: filters that your sum applies learn to tell them apart."""
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


def two_slices(flat):
    return [flat[..., :-1], flat[..., 1:]]


exercise.holds(
    lambda yours, flat, w: yours.correlate(np, two_slices(flat), w),
    lambda flat, w: np.einsum("tgoc,tngcp->ngop", w, two_slices(flat)),
    [(2, 1, 3, 5), (2, 1, 2, 3)],
    large=[(2, 1, 3, 40), (2, 1, 2, 3)],
    empty=[(0, 1, 3, 5), (2, 1, 2, 3)],
    infinite=[np.inf],
)
