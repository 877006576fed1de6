"""Elementwise operators where the suite of cases does not look: kinks, inf and nan, whole numbers.

Values called Paddle's were measured in Paddle 3.3.1.
"""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import minipaddle as paddle
from minipaddle.engine.core.op import OPS

NAN, INF = math.nan, math.inf

# ---- kinks -----------------------------------------------------------------------------------

# (operator, attributes, inputs, Paddle's gradients of the sum)
KINKS = [
    ("abs", {}, [[0.0, -0.0]], [[0, 0]]),
    ("sign", {}, [[0.0, 2.0]], [[0, 0]]),
    ("maximum", {}, [[1.0, 2.0, -INF], [1.0, 3.0, -INF]], [[0.5, 0, 0.5], [0.5, 1, 0.5]]),
    ("minimum", {}, [[1.0, 2.0, INF], [1.0, 3.0, INF]], [[0.5, 1, 0.5], [0.5, 0, 0.5]]),
    ("maximum", {}, [[NAN, 1.0], [1.0, NAN]], [[0, 0], [0, 0]]),
    ("fmax", {}, [[1.0, NAN, 1.0, 2.0], [1.0, 1.0, NAN, 3.0]], [[1, 0, 1, 0], [0, 1, 0, 1]]),
    ("fmin", {}, [[1.0, NAN, 1.0, 2.0], [1.0, 1.0, NAN, 3.0]], [[1, 0, 1, 1], [0, 1, 0, 0]]),
    ("clip", {"min": -1.0, "max": 1.0}, [[-2.0, -1.0, 0.0, 1.0, 2.0, NAN]], [[0, 1, 1, 1, 0, 0]]),
    ("relu", {}, [[0.0, -1.0, 1.0]], [[0, 0, 1]]),
    ("relu6", {}, [[0.0, 6.0, 3.0]], [[0, 0, 1]]),
    ("leaky_relu", {"negative_slope": -0.1}, [[0.0, 1.0, -1.0]], [[1, 1, -0.1]]),
    ("elu", {"alpha": -0.5}, [[0.0, 1.0, -1.0]], [[-0.5, 1, -0.5 / math.e]]),
    ("celu", {}, [[0.0]], [[1]]),
    ("selu", {}, [[0.0]], [[1.7580993175506592]]),
    ("softshrink", {}, [[0.5, -0.5, 0.2, 0.7]], [[0, 0, 0, 1]]),
    ("hardshrink", {}, [[0.5, -0.5, 0.2, 0.7]], [[1, 1, 0, 1]]),
    ("thresholded_relu", {}, [[1.0, 2.0]], [[0, 1]]),
    ("hardtanh", {}, [[-1.0, 1.0, 0.5]], [[0, 0, 1]]),
    ("hardsigmoid", {}, [[-3.0, 3.0, 0.0]], [[0, 0, 0.1666667]]),
    ("hardswish", {}, [[-3.0, 3.0, 0.0, 4.0]], [[0, 1, 0.5, 1]]),
    ("softplus", {}, [[20.0, 21.0]], [[0.9999999979388463, 1]]),
    ("pow", {}, [[0.0, 0.0, -2.0], [2.0, 0.0, 2.0]], [[0, 0, -4], [0, 0, NAN]]),
    ("remainder", {}, [[5.0, -5.0, 5.0], [3.0, 3.0, -3.0]], [[1, 1, 1], [-1, 2, 2]]),
    ("copysign", {}, [[1.0, -1.0, 0.0, 2.0], [-1.0, 1.0, -1.0, -0.0]], [[-1, -1, 0, -1], [0] * 4]),
    ("heaviside", {}, [[0.0, 3.0, -1.0], [0.5, 4.0, 2.0]], [[0, 0, 0], [1, 0, 0]]),
    ("logit", {"eps": 0.1}, [[0.05, 0.5, 0.95]], [[0, 4, 0]]),
    ("logit", {}, [[0.0, 0.5, 1.0]], [[INF, 4, INF]]),
    ("nan_to_num", {}, [[NAN, INF, -INF, 1.0]], [[0, 0, 0, 1]]),
    ("sinc", {}, [[0.0, 0.5]], [[0, -1.2732395447351625]]),
    ("i1e", {}, [[0.0, -2.0]], [[0.5, -0.014395611319735546]]),
    ("sqrt", {}, [[0.0]], [[INF]]),
    ("rsqrt", {}, [[0.0, -0.0]], [[-INF, INF]]),
    ("erfinv", {}, [[1.0, -1.0]], [[INF, INF]]),
    ("atan2", {}, [[0.0, 1.0], [0.0, 0.0]], [[0, 0], [0, -1]]),  # Paddle's is NaN at the origin
    ("lgamma", {}, [[-0.5]], [[0.03648997397857645]]),
]


@pytest.mark.parametrize(
    ("name", "attrs", "inputs", "expected"), KINKS, ids=[f"{k[0]}-{i}" for i, k in enumerate(KINKS)]
)
def test_derivative_at_kinks_is_paddles(name, attrs, inputs, expected):
    xs = [paddle.to_tensor(x, "float64", stop_gradient=False) for x in inputs]
    grads = paddle.grad(OPS[name](*xs, **attrs).sum(), xs)
    for g, e in zip(grads, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2, 0.5, -1])
def test_pow_with_a_number_at_zero(power):
    x = paddle.to_tensor([0.0, 2.0], stop_gradient=False)
    t = torch.tensor([0.0, 2.0], requires_grad=True)
    (x**power).sum().backward()
    (t**power).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize(("base", "slope"), [(0.0, 0.0), (-1.0, NAN), (1.0, 0.0)])
def test_pow_of_a_number(base, slope):
    y = paddle.to_tensor([2.0], stop_gradient=False)
    (base**y).sum().backward()
    np.testing.assert_equal(y.grad.item(), slope)


# ---- inf, nan, signed zeros ------------------------------------------------------------------

words = str.split
STRANGE = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5, 1e300, -1e-300]
UNARY = {
    name: getattr(torch, name)
    for name in words("""abs neg square sqrt rsqrt reciprocal exp log expm1 log1p log2 log10 sigmoid
    logit tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfinv floor ceil trunc
    round frac isnan isinf isfinite isposinf isneginf signbit logical_not rad2deg angle""")
} | {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "celu": F.celu,
    "selu": F.selu,
    "hardtanh": F.hardtanh,
    "log_sigmoid": lambda x: -F.softplus(-x),
    "softplus": F.softplus,
    "softsign": lambda x: x / (1 + x.abs()),
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "hardswish": lambda x: x * F.relu6(x + 3) / 6,
    "nan_to_num": torch.nan_to_num,
}
BINARY = {
    name: getattr(torch, name)
    for name in words("""add subtract multiply divide pow maximum minimum fmax fmin atan2 hypot
    logaddexp copysign logical_and logical_or logical_xor isclose""")
} | {
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less_than": torch.lt,
    "less_equal": torch.le,
    "greater_than": torch.gt,
    "greater_equal": torch.ge,
}


@pytest.mark.parametrize("name", UNARY)
def test_strange_numbers(name):
    x = np.array(STRANGE)
    ours, theirs = OPS[name](paddle.to_tensor(x)), UNARY[name](torch.tensor(x))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", BINARY)
def test_strange_pairs(name):
    x, y = np.array(list(itertools.product(STRANGE, STRANGE))).T
    ours = OPS[name](paddle.to_tensor(x), paddle.to_tensor(y))
    theirs = BINARY[name](torch.tensor(x), torch.tensor(y))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_division_of_floats_by_zero():
    zero = paddle.to_tensor(0.0)
    x = paddle.to_tensor([7.0, 0.0, -1.0])
    np.testing.assert_equal((x // zero).numpy(), np.array([INF, NAN, -INF], "float32"))
    np.testing.assert_equal((x % zero).numpy(), np.array([NAN] * 3, "float32"))
    np.testing.assert_equal((x / zero).numpy(), np.array([INF, NAN, -INF], "float32"))


def test_nothing_overflows_on_the_way():
    big = paddle.to_tensor([1000.0, -1000.0])
    for name, expected in {
        "sigmoid": [1, 0],
        "log_sigmoid": [0, -1000],
        "softplus": [1000, 0],
        "silu": [1000, 0],
        "mish": [1000, 0],
        "elu": [1000, -1],
    }.items():
        np.testing.assert_allclose(OPS[name](big).numpy(), expected, atol=1e-30)


# ---- whole numbers and booleans --------------------------------------------------------------

KEEPING = words("abs sign neg square floor ceil trunc round frac relu scale")
FLOATING = words("exp log sqrt rsqrt reciprocal tanh sin erf sigmoid log1p i0 rad2deg")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_dtypes_of_whole_numbers(dtype):
    x = paddle.to_tensor([1, 2], dtype=dtype)
    for name in KEEPING:
        assert OPS[name](x).dtype == dtype, name
    for name in FLOATING:
        assert OPS[name](x).dtype == "float32", name
    assert (x / x).dtype == "float32"
    assert (x == x).dtype == "bool"


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.result == "float"])
def test_slopes_of_whole_numbers(name):
    """What the slopes of the same floats are, in the dtype of the numbers."""
    op, found = OPS[name], {}
    attrs = {"polygamma": {"n": 1}, "huber": {"delta": 0.5}}.get(name, {})
    for dtype in ("float32", "int64"):
        xs = [paddle.full([1], 2 + k, dtype=dtype) for k in range(len(op.inputs))]
        for x in xs:
            x.stop_gradient = False
        with np.errstate(all="ignore"):
            (op(*xs, **attrs) * 9.0).sum().backward()
        found[dtype] = [x.grad for x in xs]
    for a, b in zip(*found.values(), strict=True):
        assert (a is None) == (b is None)
        if a is not None and np.isfinite(a.numpy()).all():
            assert b.dtype == "int64"
            assert b.tolist() == a.astype("int64").tolist()


def test_division_of_whole_numbers():
    x, y = paddle.to_tensor([7, -7, 7, -7]), paddle.to_tensor([2, 2, -2, -2])
    assert (x // y).tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert (x // y * y + x % y).tolist() == x.tolist()
    assert (x // 0).tolist() == [0, 0, 0, 0]


def test_arithmetic_of_booleans():
    t = paddle.to_tensor([True, False])
    assert (t + t).dtype == "bool"
    assert (t + 1).tolist() == [2, 1]
    assert (~t).tolist() == [False, True]
    assert (t & True).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_logical_shift_brings_zeros_in(dtype):
    bits = np.dtype(dtype).itemsize * 8
    x = paddle.to_tensor([-1, -8, 5, -1], dtype=dtype)
    by = paddle.to_tensor([1, 2, 1, 0], dtype=dtype)
    shifted = paddle.bitwise_right_shift(x, by, is_arithmetic=False)
    assert shifted.tolist() == [2 ** (bits - 1) - 1, (2**bits - 8) >> 2, 2, -1]
    assert paddle.bitwise_right_shift(x, by).tolist() == [-1, -2, 2, -1]


def test_exact_beyond_2_to_53():
    big = paddle.to_tensor([2**60 + 1])
    for name in ("floor", "ceil", "round", "trunc", "abs"):
        assert OPS[name](big).item() == 2**60 + 1, name


# ---- errors ----------------------------------------------------------------------------------


def test_errors_teach():
    x, k = paddle.ones([2, 3]), paddle.to_tensor([1, 2, 3])
    with pytest.raises(ValueError, match=r"add\(float32\[2, 3\], float32\[2\]\).*do not broadcast"):
        x + paddle.ones([2])
    with pytest.raises(TypeError, match=r"multiply\(.*float32\[2, 3\] and int64\[3\].*astype"):
        x * k
    with pytest.raises(TypeError, match=r"bitwise_and\(float32\[2, 3\]"):
        x & x
    with pytest.raises(ValueError, match=r"pow\(int64\[3\], -1\)"):
        k**-1
    with pytest.raises(TypeError, match="takes no argument 'digits'"):
        paddle.round(x, digits=2)
