"""Pooling against torch, and against Paddle's rules where torch has others."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from tests.nn.peers import agree, draw, near

SIZES = {1: (9,), 2: (7, 6), 3: (5, 4, 6)}
FORMATS = {2: "NHWC", 3: "NDHWC"}
EXCLUSIVE = {"count_include_pad": False}  # Paddle's default, in torch's words


def both(name, n):
    return getattr(F, f"{name}{n}d"), getattr(TF, f"{name}{n}d")


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "ceil"),
    [(2, None, 0, False), (3, 1, 1, False), (3, 2, 1, True), (2, 2, 0, True)],
)
def test_max_and_mean(n, kernel, stride, padding, ceil):
    (x,) = draw((2, 3, *SIZES[n]))
    ours, theirs = both("max_pool", n)
    agree(
        lambda x: ours(x, kernel, stride, padding, ceil_mode=ceil),
        lambda x: theirs(x, kernel, stride, padding, ceil_mode=ceil),
        x,
    )
    how = {"return_mask": True, "ceil_mode": ceil}
    _, mask = ours(paddle.to_tensor(x), kernel, stride, padding, **how)
    at = {"ceil_mode": ceil, "return_indices": True}
    near(mask, theirs(torch.tensor(x), kernel, stride, padding, **at)[1])
    assert mask.dtype == "int32"
    ours, theirs = both("avg_pool", n)
    for exclusive in (True, False):
        agree(
            lambda x, e=exclusive: ours(x, kernel, stride, padding, exclusive=e, ceil_mode=ceil),
            lambda x, e=exclusive: theirs(
                x, kernel, stride, padding, ceil_mode=ceil, count_include_pad=not e
            ),
            x,
        )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
@pytest.mark.parametrize(("name", "how"), [("max_pool", {}), ("avg_pool", EXCLUSIVE)])
def test_any_sizes(name, how, data):
    def few(low, high):
        return data.draw(st.tuples(*[st.integers(low, high)] * 2))

    kernel, stride, room = few(1, 4), few(1, 4), few(0, 5)
    padding = [min(p, k // 2) for p, k in zip(few(0, 2), kernel)]
    size = [max(k - 2 * p, 1) + r for k, p, r in zip(kernel, padding, room)]
    (x,) = draw((1, 2, *size))
    ours, theirs = both(name, 2)
    agree(
        lambda x: ours(x, kernel, stride, padding),
        lambda x: theirs(x, kernel, stride, padding, **how),
        x,
    )


@pytest.mark.parametrize(("kernel", "stride"), [(2, 1), (3, 3)])
def test_equal_maxima_give_their_gradient_to_the_first(kernel, stride):
    x = np.array([[[[2.0, 2.0, 1.0], [2.0, 2.0, 2.0], [0.0, 2.0, 2.0]]]])
    ours, theirs = both("max_pool", 2)
    agree(lambda x: ours(x, kernel, stride), lambda x: theirs(x, kernel, stride), x)


def test_divisor():
    (x,) = draw((1, 2, 6, 6))
    for n, size in ((2, (6, 6)), (3, (1, 6, 6))):
        x = x.reshape(1, 2, *size)
        kernel = (1, 2, 3)[-n:]
        ours, theirs = both("avg_pool", n)
        agree(
            lambda x, f=ours, k=kernel: f(x, k, divisor_override=5),
            lambda x, f=theirs, k=kernel: f(x, k, divisor_override=5),
            x,
        )


def test_paddle_rules_of_padding():
    """Measured with Paddle 3.3.1."""
    x = paddle.arange(64, dtype="float64").reshape([1, 1, 8, 8])
    assert F.avg_pool2d(x, 3, 2, padding="SAME").numpy()[0, 0, -1].tolist() == [53, 55, 57, 58.5]
    including = F.avg_pool2d(x, 3, 2, padding="SAME", exclusive=False)
    assert including.numpy()[0, 0, -1].tolist() == [53, 55, 57, 58.5]
    edge = F.avg_pool2d(x, 3, 2, padding=1, exclusive=False, ceil_mode=True)
    assert edge.numpy()[0, 0, -1, -1] == 15.75
    # A window may begin beyond the image: torch leaves it out.
    assert F.max_pool2d(paddle.ones([1, 1, 5, 5]), 1, 3, ceil_mode=True).shape == [1, 1, 3, 3]
    x7 = paddle.ones([1, 1, 7, 7])
    assert F.max_pool2d(x7, 3, 2, padding=[1, 0, 0, 1]).shape == [1, 1, 3, 3]
    assert F.max_pool2d(x7, 2, padding="VALID").shape == [1, 1, 3, 3]
    assert F.max_pool2d(x7, 2, padding=[[0, 0], [0, 0], [1, 1], [1, 1]]).shape == [1, 1, 4, 4]
    assert F.max_pool1d(paddle.ones([1, 3, 7]), 2, padding=[1, 0]).shape == [1, 3, 4]


@pytest.mark.parametrize("n", [2, 3])
def test_channels_last(n):
    (x,) = draw((2, *SIZES[n], 3))
    for name in ("max_pool", "avg_pool"):
        ours, theirs = both(name, n)
        agree(
            lambda x, f=ours: f(x, 3, 2, data_format=FORMATS[n]),
            lambda x, f=theirs: f(x.movedim(-1, 1), 3, 2).movedim(1, -1),
            x,
        )
    ours, theirs = both("adaptive_avg_pool", n)
    agree(lambda x: ours(x, 3, FORMATS[n]), lambda x: theirs(x.movedim(-1, 1), 3).movedim(1, -1), x)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("p", [1, 2, 3, float("inf")])
def test_norms(n, p):
    (x,) = draw((2, 2, *SIZES[n]))
    ours, theirs = both("lp_pool", n)
    if p == float("inf"):
        agree(lambda x: ours(x, p, 2), lambda x: both("max_pool", n)[1](x, 2), x)
    else:
        agree(lambda x: ours(x, p, 2), lambda x: theirs(x, float(p), 2), abs(x) + 0.1)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("out", [1, 2, 3, 4, 7])
def test_adaptive(n, out):
    (x,) = draw((2, 3, *SIZES[n]))
    ours, theirs = both("adaptive_avg_pool", n)
    agree(lambda x: ours(x, out), lambda x: theirs(x, out), x)
    ours, theirs = both("adaptive_max_pool", n)
    agree(lambda x: ours(x, out), lambda x: theirs(x, out), x)
    mask = ours(paddle.to_tensor(x), out, return_mask=True)[1]
    near(mask, theirs(torch.tensor(x), out, return_indices=True)[1])


def test_none_keeps_an_axis():
    x = paddle.ones([1, 2, 6, 7])
    assert F.adaptive_avg_pool2d(x, [None, 3]).shape == [1, 2, 6, 3]
    assert F.adaptive_max_pool2d(x, [2, None]).shape == [1, 2, 2, 7]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling(n):
    (x,) = draw((2, 3, *SIZES[n]))
    mask = getattr(TF, f"max_pool{n}d")(torch.tensor(x), 2, return_indices=True)[1]
    small = draw(mask.shape)[0]
    ours, theirs = both("max_unpool", n)
    indices = paddle.to_tensor(mask.numpy().astype("int32"))
    agree(
        lambda x: ours(x, indices, 2, output_size=list(SIZES[n])),
        lambda x: theirs(x, mask, 2, output_size=SIZES[n]),
        small,
    )
    size = [2 * s for s in mask.shape[2:]]
    assert ours(paddle.to_tensor(small), indices % 4, 2).shape[2:] == size


X = paddle.ones([1, 2, 6, 6])
MASK = paddle.full([1, 2, 3, 3], 100, "int32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.max_pool2d(X[0], 2), "4 dimensions"),
        (lambda: F.max_pool2d(X, 8), "do not fit"),
        (lambda: F.max_pool2d(X, 2, padding="VALID", ceil_mode=True), "ceil_mode"),
        (lambda: F.max_pool2d(X, 2, return_mask=True, data_format="NHWC"), "no mask"),
        (lambda: F.max_pool2d(X, 0), "at least 1"),
        (lambda: F.max_pool2d(X, 2, data_format="NCL"), "NCHW or NHWC"),
        (lambda: F.lp_pool2d(X, 0, 2), "another number"),
        (lambda: F.adaptive_avg_pool2d(X, [1, 2, 3]), "output_size"),
        (lambda: F.max_unpool2d(X, MASK, 2, data_format="NHWC"), "channels first"),
        (lambda: F.max_unpool2d(X[:, :, :3, :3], MASK, 2), "100"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises((ValueError, IndexError), match=message):
        call()


def test_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="floating"):
        F.max_pool2d(X.astype("int64"), 2)


LAYERS = [
    ("MaxPool2D(2)", "MaxPool2D(kernel_size=2, stride=None, padding=0)"),
    ("AvgPool1D(2)", "AvgPool1D(kernel_size=2, stride=None, padding=0)"),
    ("AdaptiveAvgPool2D(2)", "AdaptiveAvgPool2D(output_size=2)"),
    ("AdaptiveMaxPool2D(2)", "AdaptiveMaxPool2D(output_size=2, return_mask=False)"),
    ("MaxUnPool2D(2)", "MaxUnPool2D(output_size=None)"),
    ("LPPool2D(2.0, 2, 2)", "LPPool2D(norm_type=2.0, kernel_size=2, stride=2, padding=0)"),
]


@pytest.mark.parametrize(("made", "text"), LAYERS)
def test_layers_say_what_they_are(made, text):
    assert repr(eval(f"paddle.nn.{made}")) == text


def test_layers_compute_what_functions_do():
    x = paddle.to_tensor(draw((1, 2, 6, 6))[0])
    near(paddle.nn.AvgPool2D(3, 2, 1, exclusive=False)(x), F.avg_pool2d(x, 3, 2, 1, False, False))
    y, mask = paddle.nn.MaxPool2D(2, return_mask=True)(x)
    near(paddle.nn.MaxUnPool2D(2)(y, mask), F.max_unpool2d(y, mask, 2))
    near(paddle.nn.AdaptiveMaxPool2D(4)(x), F.adaptive_max_pool2d(x, 4))
