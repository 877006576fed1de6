"""`x.numpy()` inside a converted function: what flows on as a tensor agrees with NumPy's array."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.jit import to_static
from minipaddle.static import InputSpec

X = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")


def as_a_condition(x):
    if paddle.mean(x).numpy() > 5 or x.numpy()[0][paddle.to_tensor(1)] == 2:
        return x - 1
    return x + 1


def as_a_loop(x):
    total, steps = x.numpy(), 0
    while total.sum() < 100:
        total, steps = total * 2, steps + 1
    for row in x.numpy():
        if not row[0] < 2:
            steps = steps + 1
    return paddle.to_tensor(total), steps


def into_tensors(x):
    y = paddle.to_tensor(x.numpy() + x.numpy())
    return y, x * x.numpy(), paddle.concat([x, y]), paddle.to_tensor(-x.numpy() @ x.numpy().T)


def in_dtypes_of_numpy(x):
    a = x.numpy()
    found = [a * np.float64(0.1), a / np.arange(1, 3), np.ones(2) - a, a.astype(float) / 3, 2 // a]
    return [paddle.to_tensor(y) for y in found]


def as_numbers(x):
    total = x.numpy().sum()
    return x * float(total), x * x.numpy().item(1), paddle.to_tensor(x.numpy() * float(total))


def as_a_copy(x):
    before = x.numpy()
    x = x + 1
    x[0] = 0.0
    before[1] = 7
    return x, paddle.to_tensor(before)


def without_a_gradient(x):
    x.stop_gradient = False
    y = (x * x.numpy()).sum()
    return paddle.grad(y, x)[0]


CASES = [
    as_a_condition,
    as_a_loop,
    into_tensors,
    in_dtypes_of_numpy,
    as_numbers,
    as_a_copy,
    without_a_gradient,
]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_it_agrees_with_an_array(function):
    converted = to_static(function)
    for factor in 1, 3:
        expected, found = (f(paddle.to_tensor(X * factor)) for f in (function, converted))
        for a, b in zip(*map(paddle.utils.flatten, (expected, found)), strict=True):
            a, b = (np.asarray(y.numpy() if isinstance(y, paddle.Tensor) else y) for y in (a, b))
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)


def repeated(durations):
    """FastSpeech's length regulator: how often each row counts, as a matrix."""
    batch, count = paddle.shape(durations)
    durations = durations.numpy()
    matrix = np.zeros([batch, np.max(np.sum(durations, -1)), count])
    for i in range(batch):
        start = 0
        for j in range(count):
            matrix[i, start : start + durations[i, j], j] = 1
            start += durations[i, j]
    return paddle.to_tensor(matrix / 3)


def created(x):
    n = paddle.shape(x)[0]
    found = [np.zeros(n), np.ones((n, 2), "int32"), np.full(shape=[n], fill_value=2.5)]
    found += [np.zeros(paddle.shape(x)) - 0.1, np.arange(n), np.arange(-1, n, dtype="float32")]
    found += [np.full((n,), 3), np.ones([n], bool), np.empty([2, n]) * 0, np.zeros([3, x.shape[1]])]
    return [paddle.to_tensor(y) for y in [*found, np.arange(0, 1, 0.25)]]


@pytest.mark.parametrize("function", [repeated, created], ids=lambda f: f.__name__)
def test_an_array_of_a_size_that_a_run_knows(function):
    """One program of open sizes gives what NumPy gives, in its dtypes."""
    converted = to_static(function, input_spec=[InputSpec([None, None], "int64")])
    for rows in [[1, 2, 1], [3, 0, 1]], [[1, 2, 1], [0, 5, 1], [1, 1, 1]], [[4]]:
        x = paddle.to_tensor(rows)
        expected, found = (paddle.utils.flatten(f(x)) for f in (function, converted))
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy())


kept = []


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (lambda x: x.numpy(), "an array that leaves"),
        (lambda x: [x, {"y": x.numpy()[0] * 2}], "an array that leaves"),
        (lambda x: kept.append(x.numpy()), "an array that leaves"),
        (lambda x: np.zeros(paddle.shape(x)), "an array that leaves"),
        (lambda x: np.full(paddle.shape(x), x.sum()), "no value yet"),
        (lambda x: x * x.numpy().std(), r"numpy\(\)\.std\(\): while"),
        (lambda x: x.numpy().sort(), r"numpy\(\)\.sort\(\): while"),
        (lambda x: x * np.linalg.norm(x.numpy()), "no value yet"),
        (lambda x: f"{x.numpy()}", "the text of an array"),
    ],
)
def test_what_needs_a_value_is_refused(use, named):
    with pytest.raises(TypeError, match=named):
        to_static(use)(paddle.to_tensor(X))
    assert not kept


def test_lists_read_and_written_at_a_place_that_a_tensor_holds():
    x, y = paddle.ones([2]), paddle.zeros([2])

    def f(i, j):
        array = paddle.tensor.array_write(x, i)
        array = paddle.tensor.array_write(y, 1, array)
        return paddle.tensor.array_read(array, j), paddle.tensor.array_length(array)

    g, number = paddle.jit.to_static(f), lambda n: paddle.to_tensor([n])
    for j in (0, 1):
        assert g(number(0), number(j))[0].tolist() == f(number(0), number(j))[0].tolist()
    with pytest.raises(ValueError, match="array_write behind the end of an empty list"):
        g(number(1), number(0))
