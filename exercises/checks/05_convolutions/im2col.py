"""Checks of 05_convolutions/im2col."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="A convolution as one product of matrices",
    level="hard",
    minutes=45,
    before=("01_arrays/strides", "05_convolutions/output_size"),
    slots={"ops.conv.body": "conv"},
    hints=(
        "You stand on a pixel of a patch. How many bytes further is the same pixel of the patch to "
        "the right? And how many bytes further is the next pixel of your own patch?",
        "x.strides has the bytes of one step along each axis of x. Two axes of the view may step "
        "along the same axis of x: one by the stride, one by the dilation.",
        "patches: shape (N, H', W', C, KH, KW)\n"
        "         strides (image, down · stride, right · stride, channel, down · dilation, "
        "right · dilation)\n"
        "conv:    pad, take the patches, reshape to [places, groups, C/groups · KH · KW]\n"
        "         w to [groups, O/groups, C/groups · KH · KW]\n"
        "         for all groups at once: rows @ columns; then the filters back to axis 1",
    ),
    wrong={
        "copying the patches": (
            "m.lib.stride_tricks.as_strided(x, shape, (*steps, *inside)) → "
            "m.lib.stride_tricks.as_strided(x, shape, (*steps, *inside)).copy()"
        ),
        "strides of a contiguous array instead of those of x": (
            "to_image, to_channel, down, right = x.strides → right = x.itemsize; down = right "
            "* wide; to_channel = down * high; to_image = to_channel * channels"
        ),
        "stepping by one pixel from place to place": (
            "(to_image, down * stride[0], right * stride[1]) → (to_image, down, right)"
        ),
        "forgetting the dilation inside a patch": (
            "(to_channel, down * dilation[0], right * dilation[1]) → (to_channel, down, right)"
        ),
        "the dilation also from place to place": "stride[0] → dilation[0]",
        "exchanging down and right": (
            "to_image, to_channel, down, right = x.strides → to_image, to_channel, right, down "
            "= x.strides"
        ),
        "turning the kernel upside down": "w.reshape → w[:, :, ::-1, ::-1].reshape",
        "ignoring the groups' order": (
            "w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2) → w.reshape(w.shape[0] "
            "// groups, groups, -1).transpose(1, 2, 0)"
        ),
        "leaving the filters at the end": (
            "return y.swapaxes(0, 1).reshape(images, high, across, w.shape[0])"
            ".transpose(0, 3, 1, 2) → return y.swapaxes(0, 1).reshape(images, high, across, -1)"
        ),
        "reshaping the filters to the front": (
            "return y.swapaxes(0, 1).reshape(images, high, across, w.shape[0])"
            ".transpose(0, 3, 1, 2) → return y.swapaxes(0, 1).reshape(images, -1, high, across)"
        ),
        "forgetting the padding": "m.pad(x, ((0, 0), (0, 0), *padding)) → x",
        "padding as much after as before": "padding → ((before, before) for before, _ in padding)",
    },
    unkillable={
        "places = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip((high, wide), "
        "kernel, stride, dilation, strict=True)] → places = [(n - d * (k - 1) - 1) // s "
        "+ 1 for n, k, s, d in zip((high, wide), kernel, stride, dilation, "
        "strict=False)]": "all are pairs",
        "columns = w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2) → columns "
        "= w.reshape(groups, w.shape[0] // groups, -2).swapaxes(1, 2)": "any negative size will do",
    },
)


@exercise.example
def four_patches(yours):
    """A 2 x 2 kernel lies on four places of 3 x 3 pixels."""
    x = np.arange(1.0, 10).reshape(1, 1, 3, 3)
    got = yours.patches(np, x, (2, 2), (1, 1), (1, 1))
    expect(got.shape, (1, 2, 2, 1, 2, 2), given={"x": x, "kernel": (2, 2)})
    expect(got[0, 1, 0], [[[4.0, 5.0], [7.0, 8.0]]], given={"x": x, "place": (1, 0)})


def by_definition(x, kernel, stride, dilation):
    """Every number looked up where the formula says it stands."""
    (n, c, *size), taps = x.shape, list(np.ndindex(*kernel))
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    starts = [range(0, m - r, s) for m, r, s in zip(size, reach, stride, strict=True)]
    out = np.zeros((n, len(starts[0]), len(starts[1]), c, *kernel))
    for p, a in enumerate(starts[0]):
        for q, b in enumerate(starts[1]):
            for i, j in taps:
                out[:, p, q, :, i, j] = x[:, :, a + i * dilation[0], b + j * dilation[1]]
    return out


two = st.tuples(st.integers(1, 3), st.integers(1, 3))


@exercise.property(kernel=two, stride=two, dilation=two, more=two, transposed=st.booleans())
def patches_are_a_view(yours, kernel, stride, dilation, more, transposed):
    """The right numbers, and every one of them in the memory of x."""
    size = [d * (k - 1) + e for k, d, e in zip(kernel, dilation, more, strict=True)]
    x = np.arange(2.0 * 3 * size[0] * size[1]).reshape(2, 3, *size)
    if transposed:  # the same numbers, lying in memory with the columns first
        x = np.ascontiguousarray(x.transpose(3, 1, 0, 2)).transpose(2, 1, 3, 0)
    given = {"x": x, "kernel": kernel, "stride": stride, "dilation": dilation}
    got = yours.patches(np, x, kernel, stride, dilation)
    expect(got, by_definition(x, kernel, stride, dilation), given=given)
    expect_that(np.shares_memory(got, x), "a view: no number is copied", given=given)


def convolution(x, w, stride, padding, dilation, groups):
    """Every filter with the channels of its group, by the definition of patches."""
    wide = np.pad(x, ((0, 0), (0, 0), *padding))
    seen = by_definition(wide, w.shape[2:], stride, dilation)
    filters, channels = w.shape[0] // groups, w.shape[1]
    maps = []
    for o, one in enumerate(w):
        first = o // filters * channels
        maps.append((seen[:, :, :, first : first + channels] * one).sum((3, 4, 5)))
    return np.stack(maps, axis=1)


@exercise.property(
    kernel=two,
    stride=two,
    dilation=two,
    padding=st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2),
    groups=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def the_engines_convolution(yours, kernel, stride, dilation, padding, groups, seed):
    """paddle's conv2d, which now runs on yours."""
    rng = np.random.default_rng(seed)
    size = [d * (k - 1) + 3 for k, d in zip(kernel, dilation, strict=True)]
    x, w = rng.normal(size=(2, 2 * groups, *size)), rng.normal(size=(3 * groups, 2, *kernel))
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    flat = [p for pair in padding for p in pair]
    with exercise.plugged(yours):
        got = F.conv2d(*map(paddle.to_tensor, (x, w)), None, stride, flat, dilation, groups)
    expect(got, convolution(x, w, **at), given={"x": x, "w": w, **at})


class Counting:
    """An array module that counts the calls of its functions."""

    def __init__(self):
        self.calls = 0

    def __getattr__(self, name):
        self.calls += 1
        return getattr(np, name)


class Array(np.ndarray):
    """An array that counts how often it, or what is made of it, is indexed."""

    indexed = 0

    def __getitem__(self, key):
        Array.indexed += 1
        return super().__getitem__(key)


def effort(yours, size):
    """Calls of array functions and look-ups of elements for one convolution."""
    m, Array.indexed = Counting(), 0
    x = np.ones((2, 2, size, size)).view(Array)
    at = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    yours.conv(m, x, np.ones((3, 2, 3, 3)), **at)
    return m.calls + Array.indexed


@exercise.example
def no_loop_over_pixels(yours):
    """Whether the image has 25 pixels or 900: the same number of steps in Python."""
    small, large = effort(yours, 5), effort(yours, 30)
    expect_that(large == small, "as many calls for 30 x 30 pixels as for 5 x 5",
                got=f"{small} calls for 5 x 5, {large} for 30 x 30")  # fmt: skip


@exercise.example
def a_network_learns_with_it(yours):
    """Lying and standing bars: a filter tells them apart, and yours computes it."""
    rng, labels = np.random.default_rng(0), np.arange(32) % 2
    x = rng.normal(size=(32, 1, 6, 6)).astype("float32") * 0.1
    for image, label in zip(x, labels, strict=True):
        image[(0, 2) if label else (0, slice(None), 3)] += 1
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(),
                        nn.Linear(4, 2))  # fmt: skip
    adam = paddle.optimizer.Adam(0.03, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(40):
            loss = F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(labels))
            loss.backward()
            adam.step()
            adam.clear_grad()
        expect_gradients(
            lambda x, w: (F.conv2d(x, w, stride=2, padding=1) ** 2).sum(),
            [rng.normal(size=(1, 1, 4, 4)), rng.normal(size=(1, 1, 3, 3))],
        )
    expect_that(loss.item() < 0.05, "a loss below 0.05 after 40 steps", got=loss.item())


def windows(x):
    """Every patch of 2 x 2 pixels, as NumPy has them."""
    view = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    return view.transpose(0, 2, 3, 1, 4, 5)


exercise.holds(
    lambda yours, x: yours.patches(np, x, (2, 2), (1, 1), (1, 1)),
    windows,
    [(2, 2, 4, 5)],
    large=[(2, 2, 8, 9)],
    empty=[(0, 2, 4, 5)],
    infinite=[np.inf],
)
exercise.holds(
    lambda yours, x, w: yours.conv(
        np, x, w, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1
    ),
    lambda x, w: np.einsum("npqcij,ocij->nopq", windows(x), w),
    [(2, 2, 4, 5), (3, 2, 2, 2)],
    large=[(2, 2, 8, 9), (3, 2, 2, 2)],
    empty=[(0, 2, 4, 5), (3, 2, 2, 2)],
    infinite=[np.inf],
)
