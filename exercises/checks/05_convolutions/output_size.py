"""Checks of 05_convolutions/output_size."""

import re

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="How large is the result of a convolution?",
    level="easy",
    minutes=15,
    slots={"conv.out_size": "output_size"},
    hints=(
        "A kernel of 3 taps with dilation 2 lies on an axis. How many pixels are there from its "
        "first tap to its last, both included?",
        "Put the kernel at the very beginning of the padded axis. How many pixels are left after "
        "it, and how often can it move on by the stride?",
        "for each axis:\n"
        "    reach = pixels from the first tap to the last\n"
        "    room = padding before + pixels + padding after - reach\n"
        "    if room is negative: raise ValueError(what does not fit into what)\n"
        "    places = the first one, and one for every whole stride in room",
    ),
    wrong={
        "forgetting the first place": "room // s + 1 → room // s",
        "forgetting the padding after": "before + n + after → before + n",
        "padding twice what comes before": "before + n + after → n + 2 * before",
        "forgetting the dilation": "d * (k - 1) + 1 → k",
        "dilating the last tap too": "d * (k - 1) + 1 → d * k",
        "rounding up": "room // s → -(-room // s)",
        "forgetting the stride": "room // s → room",
        "an empty result instead of an error": "room < 0 → room < -1000",
        "refusing a kernel as large as the image": "room < 0 → room <= 0",
        "an error that does not say what was given": (
            "f'a kernel of {k} taps with dilation {d} reaches over {reach} pixels and does not "
            "fit into {n} pixels with padding {before} and {after}: pad more, or take a "
            "smaller kernel' → f'the kernel reaches over {reach} pixels and does not fit into "
            "{n} pixels with padding {before} and {after}: pad more, or take a smaller "
            "kernel'"
        ),
        "a list instead of a tuple": "tuple(out) → out",
    },
    unkillable={
        "for n, k, s, (before, after), d in zip(size, kernel, stride, padding, "
        "dilation, strict=True): → for n, k, s, (before, after), d in zip(size, kernel, "
        "stride, padding, dilation, strict=False):": "all have a number for each axis",
    },
)

NAMES = ("size", "kernel", "stride", "padding", "dilation")


def compare(yours, expected, *sizes):
    given = dict(zip(NAMES, sizes, strict=True))
    got = yours.output_size(*sizes)
    expect_that(isinstance(got, tuple), "a tuple", given=given, got=type(got).__name__)
    expect(got, expected, given=given)


@exercise.example
def three_taps_on_eight_pixels(yours):
    """Without padding the last place begins at pixel 5: six places. A zero on each side: eight."""
    compare(yours, (6, 8), (8, 8), (3, 3), (1, 1), ((0, 0), (1, 1)), (1, 1))


@exercise.example
def a_stride_of_two(yours):
    """It begins at pixels 0, 2 and 4; from 6 on it would stand out."""
    compare(yours, (3,), (8,), (3,), (2,), ((0, 0),), (1,))
    compare(yours, (3,) * 8, (8,) * 8, (3,) * 8, (2,) * 8, ((0, 0),) * 8, (1,) * 8)


@exercise.example
def it_just_fits(yours):
    """A kernel as large as the image has one place, whatever the stride."""
    compare(yours, (1, 1), (5, 3), (3, 3), (1, 4), ((0, 0), (0, 0)), (2, 1))


def counted(n, k, s, pads, d):
    """Places by trying: those from which all taps are inside."""
    inside = range(-pads[0], n + pads[1])
    starts = range(-pads[0], n + pads[1], s)
    return sum(all(start + t * d in inside for t in range(k)) for start in starts)


axis = st.tuples(
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 3),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(1, 3),
)


@exercise.property(axes=st.lists(axis, min_size=1, max_size=3), examples=60)
def as_many_as_there_are(yours, axes):
    """Counted one by one, or refused with a reason when there is none."""
    sizes, places = tuple(zip(*axes, strict=True)), tuple(counted(*a) for a in axes)
    if min(places) > 0:
        compare(yours, places, *sizes)
    else:
        refused(yours, sizes, axes[places.index(0)])


def refused(yours, sizes, bad):
    """A ValueError with the taps, the dilation and the pixels of the axis that is too short."""
    given = dict(zip(NAMES, sizes, strict=True))
    try:
        got = yours.output_size(*sizes)
    except ValueError as error:
        numbers = set(map(int, re.findall(r"\d+", str(error))))
        n, k, _, _, d = bad
        expect_that({n, k, d} <= numbers, f"an error that names {k}, {d} and {n}", given=given,
                    got=str(error))  # fmt: skip
        return
    expect_that(False, "a ValueError: the kernel fits nowhere", given=given, got=got)


@exercise.example
def too_large_a_kernel(yours):
    """Reach 41 on 40 padded pixels: it fits nowhere, and the text says what was given."""
    refused(yours, ((37,), (11,), (50,), ((1, 2),), (4,)), (37, 11, 50, (1, 2), 4))
    with exercise.plugged(yours):
        try:
            y = F.conv2d(paddle.ones([1, 1, 29, 29]), paddle.ones([1, 1, 3, 17]), dilation=[1, 2])
        except ValueError as error:
            expect_that("17" in str(error) and "29" in str(error), "17 and 29", got=str(error))
        else:
            expect_that(False, "a ValueError from paddle's conv2d", got=y.shape)


@exercise.example
def in_the_engine(yours):
    """Every layer below asks you: the network's shapes, and a step of its training."""
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(
            nn.Conv2D(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2D(4, 6, 2, dilation=3)
        )
        x = paddle.ones([2, 1, 9, 12])
        y = net(x)
        expect(y.shape, [2, 6, 2, 3], given={"x": x.shape, "net": str(net)})
        y.mean().backward()
        expect(net[0].weight.grad.shape, [4, 1, 3, 3])
        windows = F.unfold(paddle.to_tensor(np.ones((1, 1, 4, 4))), 2, strides=2)
        expect(windows.shape, [1, 4, 4], given={"unfold": "windows 2 x 2 with stride 2 of 4 x 4"})
