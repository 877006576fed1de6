"""`x[key]` and `x[key] = value` against PyTorch (NumPy for negative steps), with gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minipaddle as paddle

SETTINGS = settings(max_examples=150, derandomize=True, deadline=None)


def grid(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)


def converted(key, array):
    """The key with every NumPy array in it made something else."""
    if isinstance(key, tuple):
        return tuple(converted(k, array) for k in key)
    return array(key) if isinstance(key, np.ndarray) else key


def theirs(x, key):
    """What PyTorch says; it knows no negative steps, in which NumPy agrees where no arrays are."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, slice) and (k.step or 1) < 0 for k in parts):
        return x[key]
    return torch.tensor(x)[converted(key, torch.tensor)].numpy()


@st.composite
def keys(draw, shape=(3, 4, 2)):
    """A key for an array of `shape`: at most one array kind at a time may need broadcasting."""
    size = draw(st.sampled_from([(), (2,), (3, 1), (1, 2)]))
    parts, axis, left = [], 0, draw(st.integers(0, len(shape)))
    backwards = draw(st.booleans())
    while axis < left:
        n = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "none", "array", "mask", "list"]))
        if backwards and kind in ("array", "mask", "list"):
            kind = "slice"
        if kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            ends = st.none() | st.integers(-n - 1, n + 1)
            steps = [None, 1, 2, -1, -2] if backwards else [None, 1, 2, 3]
            parts.append(slice(draw(ends), draw(ends), draw(st.sampled_from(steps))))
        elif kind == "none":
            parts.append(None)
            continue
        elif kind == "mask":
            if any(isinstance(k, np.ndarray | list) for k in parts):
                continue
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
            if parts[-1].sum() != 1:
                left = axis + 1
        elif kind == "list":
            parts.append([draw(st.integers(-n, n - 1))])
        else:
            parts.append(draw(hnp.arrays("int64", size, elements=st.integers(-n, n - 1))))
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), ...) if axis == len(shape) else parts.append(
            ...
        )
    return parts[0] if len(parts) == 1 else tuple(parts)


FIXED = [
    0,
    -1,
    slice(None),
    (),
    None,
    ...,
    True,
    False,
    [],
    [0, 2],
    np.array([[0, 1], [1, 0]]),
    np.int64(1),
    np.array(1),
    np.array([1, 0], "uint8"),
    np.array(True),
    (0, slice(None), [1, 0]),
    ([0, 1], slice(None), [1, 0]),
    ([0, 1], None, [1, 0]),
    (slice(None), 0, [1, 0]),
    (slice(None), [0, 1], [1, 0]),
    (None, [[0], [1]], slice(1, 3), [0, 1, 1]),
    (True, 0),
    (slice(None), True),
    (..., 0),
    (0, ..., 1),
    slice(None, None, -1),
    (slice(None), slice(3, 0, -2)),
    slice(5, 1),
    grid(3, 4, 2) > 11,
    grid(3, 4) > 5,
    (slice(None), np.array([True, False, True, True])),
    (np.array([True, False, True]), [1, 0]),
    (np.array([True, False, True]), slice(None), np.array([True, True])),
    (slice(None), np.ones((4, 2), bool)),
    np.zeros(3, bool),
]


@pytest.mark.parametrize("key", FIXED, ids=str)
def test_keys(key):
    check(key)


@pytest.mark.sweep
@SETTINGS
@given(keys())
def test_random_keys(key):
    check(key)


def check(key, shape=(3, 4, 2)):
    """Values, gradients, second derivatives and assignment at one key."""
    a = grid(*shape)
    ours, want = converted(key, paddle.to_tensor), theirs(a, uint8_as_int64(key))
    x = paddle.to_tensor(a, stop_gradient=False)
    y = x[ours]
    assert tuple(y.shape) == want.shape
    np.testing.assert_array_equal(y.numpy(), want)

    weights = np.arange(1.0, y.size + 1).reshape(want.shape)
    counts = counted(a.shape, uint8_as_int64(key), weights)
    w = paddle.to_tensor(weights, stop_gradient=False)
    (gradient,) = paddle.grad(y * w, x, create_graph=True)
    np.testing.assert_array_equal(gradient.numpy(), counts)
    v = paddle.to_tensor(a)
    (second,) = paddle.grad(gradient * v, w)
    np.testing.assert_array_equal(second.numpy(), want)
    check_assignment(a, key, want)


def uint8_as_int64(key):
    """PyTorch reads uint8 as a mask, of old."""
    whole = isinstance(key, np.ndarray) and key.dtype == "uint8"
    return key.astype("int64") if whole else key


def counted(shape, key, weights):
    """The adjoint by definition: each place of x gets the weights of where it went."""
    places = theirs(np.arange(np.prod(shape)).reshape(shape), key)
    return np.bincount(places.ravel(), weights.ravel(), np.prod(shape)).reshape(shape)


def check_assignment(a, key, at):
    """x[key] = v written into memory, and on the tape, for a scalar and for an array."""
    ours, places = (
        converted(key, paddle.to_tensor),
        theirs(np.arange(a.size).reshape(a.shape), uint8_as_int64(key)),
    )
    if np.unique(places).size != places.size:
        return  # which of several values stays is another test
    for value in (7.5, -np.arange(1.0, at.size + 1).reshape(at.shape)):
        want = a.copy().ravel()
        want[places.ravel()] = value if isinstance(value, float) else value.ravel()
        x, v = paddle.to_tensor(a), paddle.to_tensor(value, "float64", stop_gradient=False)
        x[ours] = v.detach()
        np.testing.assert_array_equal(x.numpy(), want.reshape(a.shape))

        leaf = paddle.to_tensor(a, stop_gradient=False)
        x = leaf * 1
        x[ours] = v
        np.testing.assert_array_equal(x.numpy(), want.reshape(a.shape))
        g = np.arange(1.0, a.size + 1).reshape(a.shape)
        (x * paddle.to_tensor(g)).sum().backward()
        kept = np.ones(a.size)
        kept[places.ravel()] = 0
        np.testing.assert_array_equal(leaf.grad.numpy(), g * kept.reshape(a.shape))
        back = g.ravel()[places]
        np.testing.assert_array_equal(
            v.grad.numpy(), back if back.shape == v.grad.numpy().shape else back.sum()
        )


@pytest.mark.parametrize(
    "key", [(0, slice(1, 3)), [0, 2], (slice(None), [1, 0]), slice(None)], ids=str
)
@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (1, 1, 1, 2)])
def test_assigned_values_broadcast(key, shape):
    a = grid(3, 4, 2)
    value = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
    want = torch.tensor(a)
    want[key] = torch.tensor(value)
    x, v = paddle.to_tensor(a), paddle.to_tensor(value, stop_gradient=False)
    x[key] = v
    np.testing.assert_array_equal(x.numpy(), want.numpy())
    x.sum().backward()
    copies = a[key].size / value.size
    np.testing.assert_array_equal(v.grad.numpy(), np.full(shape, copies))


def test_of_values_put_in_one_place_the_last_stays():
    for wanted in (False, True):
        x = paddle.zeros([3])
        x[[1, 1, 1]] = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=not wanted)
        assert x.tolist() == [0, 3, 0]


@pytest.mark.parametrize("value", [np.float64(2.5), [2.5, 2.5], np.array([2.5, 2.5]), 2.5, True])
def test_what_may_be_assigned(value):
    x = paddle.zeros([2, 2])
    x[0] = value
    y = paddle.to_tensor([[0.0, 0.0]] * 2, stop_gradient=False) * 1
    y[0] = value
    assert x.dtype == y.dtype == "float32"
    assert x.tolist() == y.tolist() == [[float(np.max(value))] * 2, [0, 0]]


def test_assignment_keeps_the_dtype():
    x = paddle.zeros([2], "int32")
    x[0] = 2.7
    x[x == 0] = 1.5
    assert x.dtype == "int32"
    assert x.tolist() == [2, 1]


def test_a_mask_and_one_value_need_no_shape_from_the_data():
    x = paddle.to_tensor([[1.0, -1.0], [-2.0, 2.0]], stop_gradient=False)
    y, fill = x * 1, paddle.to_tensor(5.0, stop_gradient=False)
    y[y < 0] = fill
    y.sum().backward()
    assert y.tolist() == [[1, 5], [5, 2]]
    assert fill.grad.item() == 2
    assert x.grad.tolist() == [[1, 0], [0, 1]]
    y = paddle.zeros([2, 2, 3])
    y.stop_gradient = False
    z = y + 0
    z[:, paddle.to_tensor([True, False])] = 1
    assert z.sum().item() == 6


def test_slices_share_memory():
    x = paddle.zeros([2, 3])
    x[1][1:] = 4.0
    assert x.tolist() == [[0, 0, 0], [0, 4, 4]]
    x[0, 0].fill_(9.0)
    assert x[0, 0].item() == 9


def test_writing_into_an_expanded_tensor_writes_one_place():
    x = paddle.expand(paddle.zeros([1, 3]), [2, 3])
    x[0, 0] = 1.0
    assert x.tolist() == [[1, 0, 0], [0, 0, 0]]


def test_overlapping_assignment_reads_before_it_writes():
    x = paddle.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_a_backward_over_overwritten_values_is_refused():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = paddle.exp(x)
    with paddle.no_grad():
        y[0] = 0.0
    with pytest.raises(RuntimeError, match="overwritten in place"):
        y.sum().backward()


def test_a_leaf_that_wants_a_gradient_is_not_written():
    x = paddle.zeros([2])
    x.stop_gradient = False
    with pytest.raises(ValueError, match="no_grad"):
        x[0] = 1.0
    with paddle.no_grad():
        x[0] = 1.0
    assert x.tolist() == [1, 0]


def test_nested_lists_are_arrays():
    assert paddle.arange(3)[[[0, 1], [2, 2]]].tolist() == [[0, 1], [2, 2]]
    assert paddle.zeros([2, 3])[(0, 1),].shape == [2, 3]
    assert paddle.arange(4)[range(3, 0, -2)].tolist() == [3, 1]


def test_bounds_may_be_tensors():
    x, two = paddle.arange(6), paddle.to_tensor(2)
    assert x[two].item() == 2
    assert x[two:].tolist() == [2, 3, 4, 5]
    assert x[::two].tolist() == [0, 2, 4]
    assert x.reshape([2, 3])[paddle.to_tensor(1), two].item() == 5


def test_iteration_and_membership():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    first, second = x
    (first * 2 + second).sum().backward()
    assert x.grad.tolist() == [[2, 2], [1, 1]]
    assert 3.0 in x
    assert 5 not in x
    with pytest.raises(TypeError, match="0-D"):
        iter(paddle.to_tensor(1.0))


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (3, IndexError, "index 3 is out of range for an axis of size 3"),
        (-4, IndexError, "index -4"),
        ([0, 3], IndexError, "index 3 is out of bounds"),
        ((slice(None), [4], [0]), IndexError, "index 4 is out of range for an axis of size 4"),
        ((slice(None), [0], [-3]), IndexError, "index -3 is out of range"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        ((0, [0], 0, 0), IndexError, "too many indices: 4 for the 3 dimensions"),
        ((..., [0], ...), IndexError, "more than one"),
        (np.ones(2, bool), IndexError, r"a mask of shape \[2\] at axis 0"),
        (1.5, TypeError, "an index of 1.5"),
        ("a", TypeError, "whole number, slice"),
        (np.array([1.0]), TypeError, r"an index of float64\[1\]"),
        (([0, 1], [0, 1, 2]), ValueError, "do not broadcast"),
        (slice(0, 2, 0), ValueError, "step"),
        (slice("a", None), TypeError, "integer"),
    ],
    ids=str,
)
def test_bad_keys_are_explained(key, error, words):
    x = paddle.zeros([3, 4, 2])
    with pytest.raises(error, match=words):
        x[key]
    x.stop_gradient = False
    with pytest.raises((error, IndexError, ValueError)):
        (x + 0)[key] = 1.0


@pytest.mark.parametrize("key", [0, [0, 1], (slice(None), [0, 1])], ids=str)
@pytest.mark.parametrize("tracked", [False, True])
def test_values_that_do_not_fit_are_refused(key, tracked):
    x = paddle.zeros([3, 4])
    x.stop_gradient = not tracked
    with pytest.raises(ValueError, match="shape"):
        (x + 0)[key] = paddle.ones([5])
