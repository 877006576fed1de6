"""Mistakes of newcomers that would train a wrong network, or none: each raises or warns by name."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn, optimizer


def scores():
    return paddle.ones([2, 3])


WARNED = {
    "fractions as classes": (
        lambda: F.cross_entropy(scores(), paddle.to_tensor([0.0, 1.5])),
        r"cross_entropy was given labels float32\[2\]: class numbers are whole numbers",
    ),
    "a column beside a row": (
        lambda: F.mse_loss(paddle.ones([3, 1]), paddle.ones([3])),
        r"mse_loss was given float32\[3, 1\] and a label float32\[3\]: all pairs",
    ),
    "a row beside a column": (
        lambda: F.smooth_l1_loss(paddle.ones([3]), paddle.ones([3, 1])),
        r"smooth_l1_loss was given .* all pairs",
    ),
    "no parameters": (
        lambda: optimizer.Adam(parameters=[]),
        "Adam was given no parameters: a step changes nothing",
    ),
    "a generator that was read": (
        lambda: optimizer.SGD(0.1, parameters=iter(())),
        "SGD was given no parameters",
    ),
    "a group without parameters": (
        lambda: optimizer.SGD(0.1, parameters=[{"params": []}]),
        "SGD was given no parameters",
    ),
    "the state of another layer": (
        lambda: nn.Linear(2, 2).set_state_dict({"0.weight": paddle.ones([2, 2])}),
        "belongs to Linear, which stays as it is: it has 0.weight; the layer has weight, bias",
    ),
    "an empty state": (lambda: nn.Linear(2, 2).set_state_dict({}), "it is empty"),
}

REFUSED = {
    "a class that is none": (
        lambda: F.cross_entropy(scores(), paddle.to_tensor([0, 3])),
        IndexError,
        "cross_entropy.* 3 is no number from 0 to 2",
    ),
    "one-hot labels": (
        lambda: F.cross_entropy(scores(), paddle.ones([2, 3], "int64")),
        ValueError,
        "one class number for each row",
    ),
    "scores as probabilities": (
        lambda: F.binary_cross_entropy(paddle.to_tensor([3.0]), paddle.to_tensor([1.0])),
        ValueError,
        r"from 3 to 3\n.*probabilities(.|\n)*binary_cross_entropy_with_logits",
    ),
    "a layer for its parameters": (
        lambda: optimizer.SGD(0.1, parameters=nn.Linear(2, 2)),
        TypeError,
        r"a Linear, not its parameters(.|\n)*model\.parameters\(\)",
    ),
    "parameters for the rate": (
        lambda: optimizer.Adam(nn.Linear(2, 2).parameters(), 0.1),
        TypeError,
        r"of type list(.|\n)*the learning rate comes first",
    ),
    "a path for a state": (
        lambda: nn.Linear(2, 2).set_state_dict("net.pdparams"),
        TypeError,
        r"given a str(.|\n)*paddle\.load",
    ),
    "a layer for a state": (
        lambda: nn.Linear(2, 2).set_state_dict(nn.Linear(2, 2)),
        TypeError,
        "given a Linear",
    ),
    "a weight below 0": (
        lambda: paddle.multinomial(paddle.to_tensor([-0.2, 0.5])),
        ValueError,
        "negative numbers",
    ),
}


@pytest.mark.parametrize("mistake", WARNED)
def test_it_warns(mistake):
    run, words = WARNED[mistake]
    with pytest.warns(UserWarning, match=words):
        run()


@pytest.mark.parametrize("mistake", REFUSED)
def test_it_is_refused(mistake):
    run, kind, words = REFUSED[mistake]
    with pytest.raises(kind, match=words):
        run()


def test_what_is_meant_does_not_warn():
    F.mse_loss(paddle.ones([3, 1]), paddle.ones([1]))
    F.mse_loss(paddle.ones([3]), 1.0)
    F.cross_entropy(scores(), paddle.to_tensor([[0.2, 0.3, 0.5]] * 2), soft_label=True)
    partly = nn.Linear(2, 2).state_dict()
    assert nn.Linear(2, 2).set_state_dict(partly) == ([], [])


@pytest.mark.parametrize(
    ("p", "y", "slope"), [(0.0, 1.0, -1e12), (1.0, 1.0, 0.0), (1.0, 0.0, 1e12)]
)
def test_a_sigmoid_that_is_full_has_a_slope(p, y, slope):
    """As in PyTorch and Paddle, not NaN."""
    x = paddle.to_tensor([p], stop_gradient=False)
    F.binary_cross_entropy(x, paddle.to_tensor([y])).backward()
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6)


# ---- arguments that Paddle takes ---------------------------------------------------------------


def whole(*values):
    return paddle.to_tensor(np.array(values, "int32"))


SHAPES = {
    "linear with a vector": (lambda: F.linear(paddle.ones([2, 5, 8]), paddle.ones([8])), [2, 5]),
    "of two vectors": (lambda: F.linear(paddle.ones([8]), paddle.ones([8])), []),
    "and a bias": (lambda: F.linear(paddle.ones([5, 8]), paddle.ones([8]), paddle.ones([5])), [5]),
    "pad of two axes of three": (lambda: F.pad(paddle.ones([1, 2, 3]), [1, 2, 3, 4]), [1, 9, 6]),
    "of three of four": (
        lambda: F.pad(paddle.ones([1, 2, 3, 3]), [1, 2, 3, 4, 5, 6]),
        [1, 13, 10, 6],
    ),
    "a size in a tensor": (
        lambda: F.adaptive_avg_pool2d(paddle.ones([1, 1, 6, 6]), whole(2, 3)),
        [1, 1, 2, 3],
    ),
    "the size of a maximum": (
        lambda: F.adaptive_max_pool2d(paddle.ones([1, 1, 6, 6]), whole(2, 3)),
        [1, 1, 2, 3],
    ),
}


@pytest.mark.parametrize("call", SHAPES)
def test_shapes_are_paddles(call):
    run, shape = SHAPES[call]
    assert run().shape == shape


def test_linspace_of_mixed_dtypes():
    for start, stop in ((whole(0), 5.0), (0, paddle.to_tensor([5.0], "float64"))):
        assert paddle.linspace(start, stop, 3).tolist() == [0.0, 2.5, 5.0]
    assert paddle.linspace(whole(0), paddle.to_tensor([5.0], "float64"), 3).dtype == paddle.float32
