"""Checks of 01_arrays/strides."""

import itertools
import time

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that
from minipaddle.learn.simulated_device import DeviceArray, DeviceModule

exercise = Exercise(
    title="A view is arithmetic on positions",
    level="medium",
    minutes=20,
    before=("01_arrays/broadcast_shapes",),
    slots={"ops.as_strided.body": "as_strided"},
    hints=(
        "The rows of a 3 x 4 array begin at positions 0, 4, 8. What do you add to them to have all "
        "twelve positions, and what are the shapes of the two things you add?",
        "m.arange(n) * stride are the steps along one axis. reshape(-1, 1, 1) puts them along an "
        "axis with two axes after it, and broadcasting does the rest.",
        "positions = offset\n"
        "for each axis: positions += (0, 1, 2, ...) * its stride, shaped to lie along that axis\n"
        "flat = x as one row, row-major\n"
        "return flat at all the positions",
    ),
    wrong={
        "forgetting the offset": "offset → 0",
        "adding the offset along every axis": (
            "m.arange(size) * strides[axis] → m.arange(size) * strides[axis] + offset"
        ),
        "giving the last axis the first stride": "strides[axis] → strides[-1 - axis]",
        "all strides 1": "m.arange(size) * strides[axis] → m.arange(size)",
        "strides in bytes": (
            "m.arange(size) * strides[axis] → m.arange(size) * strides[axis] * x.itemsize // 2"
        ),
        "reading memory as it lies, not row-major": "m.ravel(x) → m.ravel(x, 'K')",
        "column-major": "m.ravel(x) → m.ravel(x, 'F')",
        "NumPy instead of m": "m.arange → __import__('numpy').arange",
    },
)


def walked(x, shape, strides, offset):
    """The definition, one element after the other."""
    flat, out = x.tolist(), []
    for _ in range(x.ndim - 1):
        flat = [y for row in flat for y in row]
    for i in itertools.product(*map(range, shape)):
        out.append(flat[offset + sum(k * s for k, s in zip(i, strides, strict=True))])
    return np.array(out, dtype=x.dtype).reshape(shape)


def compare(yours, x, shape, strides, offset=0):
    given = {"x": x, "shape": shape, "strides": strides, "offset": offset}
    try:
        got = yours.as_strided(np, x, shape=shape, strides=strides, offset=offset)
    except IndexError as error:
        expect_that(False, "positions that lie within x", given=given, got=str(error))
    expect(got, walked(x, shape, strides, offset), given=given)


@exercise.example
def six_in_two_rows(yours):
    """Stride 1 from row to row, 2 from column to column."""
    compare(yours, np.arange(10, 16), (2, 3), (1, 2))


@exercise.example
def a_transpose_a_diagonal_a_row_again_and_again(yours):
    """The same twelve numbers, walked through in three ways."""
    x = np.arange(12).reshape(3, 4)
    compare(yours, x, (4, 3), (1, 4))
    compare(yours, x, (3,), (5,))
    compare(yours, x, (2, 4), (0, 1), 4)


@exercise.example
def row_major_wherever_it_lies(yours):
    """x may be a view itself: what counts is the order of its elements, not of its memory."""
    x = np.arange(6).reshape(2, 3).T
    expect_that(not x.flags.c_contiguous, "a view", got=x.strides)
    compare(yours, x, (6,), (1,))
    compare(yours, x, (2, 2), (2, 1), 1)


@exercise.example
def a_single_element_and_none(yours):
    """No axes: one position. An axis of size 0: no position."""
    compare(yours, np.arange(4), (), (), 2)
    compare(yours, np.arange(4), (2, 0), (1, 1))
    compare(yours, np.zeros((0, 3)), (0, 2), (1, 1))


@exercise.example
def seven_axes(yours):
    """As many axes as you like."""
    compare(yours, np.arange(256), (2,) * 7, (1, 2, 4, 8, 16, 32, 64), 3)


@exercise.property(
    shape=st.lists(st.integers(1, 3), max_size=3),
    strides=st.lists(st.integers(0, 5), min_size=3, max_size=3),
    offset=st.integers(0, 4),
    spare=st.integers(0, 3),
    examples=60,
)
def as_walked_one_by_one(yours, shape, strides, offset, spare):
    """Any shape, any strides, against the definition."""
    strides = tuple(strides[: len(shape)])
    size = 1 + offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + spare
    compare(yours, np.arange(2 * size).reshape(2, size), tuple(shape), strides, offset)


@exercise.example
def on_another_device(yours):
    """The same lines, given an `m` that is not NumPy and arrays that NumPy cannot read."""
    x = np.arange(12.0).reshape(3, 4)
    try:
        y = yours.as_strided(DeviceModule(), DeviceArray(x), shape=(2, 3), strides=(4, 1), offset=1)
    except TypeError as error:
        expect_that(False, "nothing but m's functions and x's own methods", got=str(error))
    expect_that(isinstance(y, DeviceArray), "a result that lives where x does", got=y)
    expect(y._array, [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], given={"x": x, "strides": (4, 1)})


@exercise.example
def all_at_once(yours):
    """A million positions."""
    x = np.zeros(1 << 20)
    began = time.process_time()
    y = yours.as_strided(np, x, shape=(1024, 1024), strides=(1024, 1), offset=0)
    seconds = time.process_time() - began
    expect(y.shape, (1024, 1024))
    expect_that(seconds < 0.3, "no loop over single elements", got=f"{seconds:.2f} s")


@exercise.example
def the_engine_slides_windows_with_it(yours):
    """paddle.unfold is one call of it: windows of 3 pixels, one pixel apart, of five images."""
    images = np.random.default_rng(0).normal(size=(5, 8, 8))
    with exercise.plugged(yours):
        got = paddle.unfold(paddle.to_tensor(images), 2, 3, 1)
        diagonal = paddle.as_strided(paddle.to_tensor(images), [5, 8], [64, 9])
    expect(got, np.lib.stride_tricks.sliding_window_view(images, 3, axis=2))
    expect(diagonal, np.diagonal(images, axis1=1, axis2=2))


@exercise.example
def gradients_flow_back_through_it(yours):
    """Windows overlap: a pixel that is in three of them receives three gradients."""
    x = np.random.default_rng(0).normal(size=(2, 5))
    with exercise.plugged(yours):
        expect_gradients(lambda x: (paddle.as_strided(x, [3, 3], [2, 1], 1) ** 2).sum(), [x])


exercise.holds(
    lambda yours, x: yours.as_strided(np, x, shape=(3, 2), strides=(1, 4), offset=1),
    lambda x: x.ravel()[np.array([[1, 5], [2, 6], [3, 7]])],
    [(3, 4)],
    large=[(30, 40)],
    infinite=[np.inf],
)
