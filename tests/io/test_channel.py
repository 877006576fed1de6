"""Messages: what is read is what was written, arrays as they lay in memory."""

import multiprocessing
import threading

import ml_dtypes
import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.io import channel

ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "odd": np.arange(7, dtype="int8"),
    "columns first": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "every second": np.arange(10)[::2],
    "backwards": np.arange(10)[::-1],
    "empty": np.zeros((0, 3)),
    "one number": np.array(3),
    "bfloat16": np.array([1, 2], ml_dtypes.bfloat16),
    "swapped": np.arange(3).astype(">i4"),
    "texts": np.array(["a", "bc"]),
    "objects": np.array([None, "x"], object),
}


def passed(obj):
    """The object at the other end of a connection."""
    there, here = multiprocessing.Pipe()
    with there, here:
        thread = threading.Thread(target=channel.send, args=[there, channel.message(obj)])
        thread.start()
        found = channel.receive(here)
        thread.join()
    return found


def test_arrays_travel():
    found = passed({"arrays": ARRAYS, "more": [None, "x", 2.5]})
    assert found["more"] == [None, "x", 2.5]
    for name, array in ARRAYS.items():
        got = found["arrays"][name]
        assert (got.dtype, got.shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(got, array, name)
        assert got.flags.writeable, name
        assert got.flags.aligned, name


def test_more_than_a_pipe_holds():
    x = np.random.default_rng(0).standard_normal(1_000_000)
    np.testing.assert_array_equal(passed([x, "between", x[::2]])[2], x[::2])


def test_tensors_travel_as_arrays():
    x = paddle.ones([2])
    x.name, x.stop_gradient = "x", False
    (y,) = passed([x])
    assert (y.tolist(), y.name, y.stop_gradient) == ([1.0, 1.0], "x", False)


def test_classes_of_a_function_travel():
    class Local:
        value = 3

    assert passed(Local()).value == 3


def test_an_end_that_is_closed():
    there, here = multiprocessing.Pipe()
    there.close()
    with here, pytest.raises(EOFError):
        channel.receive(here)
