"""The grid of edge values, and what operators make of it: `test_edges.py` compares the answers of
MiniPaddle, PyTorch and Paddle; `tests/data/make_paddle_edges.py` records Paddle's.

NumPy is all that this file imports, so that it runs beside any of them.
"""

import itertools

import numpy as np

INF, NAN = np.inf, np.nan


def edges(dtype: str, inputs: int) -> list[np.ndarray]:
    """Each combination of edge values for so many inputs, an array of each input."""
    info = np.finfo(dtype)
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0]
    if inputs < 3:
        values += [1e30, -1e30]
    if inputs == 1:
        values += [info.tiny, -info.tiny, info.smallest_subnormal, info.max, info.min]
        values += [0.5, -0.5, 3.0, -3.0, 6.0]
    return [np.array(column, dtype) for column in zip(*itertools.product(values, repeat=inputs))]


def rows(dtype: str) -> list[np.ndarray]:
    """Short vectors of edge values, and empty ones."""
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0, 1e30, -1e30]
    short = [r for n in (1, 2) for r in itertools.product(values, repeat=n)]
    short += [*itertools.product([NAN, INF, -INF, -0.0, 1.0], repeat=3)]
    return [np.array(r, dtype) for r in short] + [np.zeros(s, dtype) for s in ((0,), (2, 0))]


def answers(array, tensor, function, wrt, arrays) -> list:
    """The values of a function, and for each place of `wrt` the derivative of their sum.

    `tensor(array, wants a gradient)` makes a tensor of a library, `array` reads one.
    """
    inputs = [tensor(a, k in wrt) for k, a in enumerate(arrays)]
    y = function(*inputs)
    found = [array(y)]
    if wrt:
        y.sum().backward()
        found += [array(inputs[k].grad) for k in wrt]
    return found


REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "logsumexp",
    "std",
    "var",
    "cumsum",
    "cumprod",
    "logcumsumexp",
    "softmax",
    "log_softmax",
    "flip",
    "median",
    "smooth_l1_loss",
    "binary_cross_entropy",
    "l1_loss",
    "norm",
]


def reduction(paddle, name: str):
    """One of them on the last axis of a vector, from `paddle` or MiniPaddle."""
    F = paddle.nn.functional
    special = {
        "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, paddle.zeros_like(x)),
        "l1_loss": lambda x: F.l1_loss(x, paddle.zeros_like(x)),
        "binary_cross_entropy": lambda x: F.binary_cross_entropy(x, paddle.ones_like(x)),
        "norm": lambda x: paddle.linalg.norm(x, 2, -1),
        "softmax": lambda x: F.softmax(x, -1),
        "log_softmax": lambda x: F.log_softmax(x, -1),
    }
    return special.get(name) or (lambda x: getattr(paddle, name)(x, -1))
