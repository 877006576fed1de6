"""Elementwise mathematics, comparisons, dtypes, and the operators of Python."""

import numpy as np

from tests.programs.common import wave


def operators(paddle):
    """Python's operators between tensors and numbers."""
    a, b = paddle.to_tensor([7.0, -7.0, 2.5]), paddle.to_tensor([2.0, 2.0, -0.5])
    i, j = paddle.to_tensor([7, -7, 2]), paddle.to_tensor([2, 2, -3])
    return {
        "sum": a + b - 1,
        "reflected": [1 - a, 2 / b, 3 * a, 2**b],
        "power": [a**2, i**2],
        "floor": [a // b, i // j],
        "remainder": [a % b, i % j],
        "divide": [a / b, i / j],
        "negative": [-a, abs(b), +i],
        "compare": [a > b, i <= j, a == 7.0, i != 2],
        "bits": [i & j, i | j, i ^ j, ~i],
        "logic": (a > 0) & (b > 0) | ~(a > 2),
        "shift": i << 1,
        "product": paddle.to_tensor(wave(2, 3)) @ paddle.to_tensor(wave(3, 2, phase=1.0)),
    }


def mixed_dtypes(paddle):
    """What comes out when kinds of numbers meet."""
    whole = paddle.to_tensor([1, 2, 3])
    small = paddle.to_tensor([1, 2, 3], dtype="int32")
    single = paddle.to_tensor([0.5, 1.5, 2.5])
    double = single.astype("float64")
    flags = paddle.to_tensor([True, False, True])
    results = [
        whole + 1, whole * 1.5, whole / 2, whole / whole, small + 1, small * 0.5, flags + 1,
        flags * 2.0, single + double, single * 2, double - 1.5, single + paddle.to_tensor(2),
        paddle.to_tensor(2.0, dtype="float64") * single, whole // 2, whole**2, 2**whole,
        whole.sum(), small.sum(), flags.sum(), whole.astype("float32").mean(), flags.any(),
        paddle.exp(whole), paddle.floor(single), paddle.sqrt(small), whole > 1,
        single + np.float32(1), single.astype("int64") % 2, small.cumsum(), whole.max(),
    ]  # fmt: skip
    return [[str(r.dtype), r] for r in results]


def default_dtype(paddle):
    """`set_default_dtype` and what follows it."""
    before = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        made = [paddle.to_tensor(1.5), paddle.ones([1]), paddle.to_tensor([1, 2]) / 2]
        weight = paddle.nn.Linear(1, 1).weight.dtype == paddle.float64
    finally:
        paddle.set_default_dtype(before)
    return before, made, weight, paddle.ones([1])


def named_arithmetic(paddle):
    """The functions behind the operators."""
    x, y = paddle.to_tensor(wave(2, 3, scale=3.0)), paddle.to_tensor([1.5, -2.0, 0.5])
    a, b = paddle.to_tensor([12, 18, 7]), paddle.to_tensor([8, 27, 3])
    return {
        "add": paddle.add(x, y),
        "subtract": paddle.subtract(x, y),
        "multiply": paddle.multiply(x, y),
        "divide": paddle.divide(x, y),
        "floor_divide": paddle.floor_divide(a, b),
        "mod": paddle.mod(a, b),
        "pow": paddle.pow(x, 2),
        "maximum": paddle.maximum(x, y),
        "minimum": paddle.minimum(x, y),
        "scale": paddle.scale(x, scale=2.0, bias=1.0, bias_after_scale=False),
        "clip": paddle.clip(x, min=-1.0, max=1.0),
        "neg": paddle.neg(x),
        "abs": paddle.abs(x),
        "conj": paddle.conj(x),
        "sign": paddle.sign(x),
        "square": paddle.square(x),
        "gcd": paddle.gcd(a, b),
        "atan2": paddle.atan2(x, y),
        "lerp": paddle.lerp(x, x * 2, 0.25),
        "methods": x.add(y).subtract(y).multiply(y).divide(y).pow(2).clip(0.5, 4.0).scale(2.0),
    }


def mathematics(paddle):
    """The functions of a pocket calculator, and of a larger one."""
    x = paddle.to_tensor(wave(5, scale=0.9, dtype="float64"))
    p = paddle.abs(x) + 0.25
    names = (
        "exp expm1 sin cos tan asin acos atan sinh cosh tanh sigmoid erf erfinv stanh "
        "floor ceil round trunc"
    )
    positive = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma"
    found = {name: getattr(paddle, name)(x) for name in names.split()}
    found |= {name: getattr(paddle, name)(p) for name in positive.split()}
    found["logit"] = paddle.logit(paddle.to_tensor([0.1, 0.5, 0.9]))
    found["chained"] = x.exp().log().sin().cos().abs().sqrt().sigmoid().pow(2).square()
    found["named"] = [paddle.exp(x), paddle.sin(x), paddle.cos(x), paddle.tan(x), paddle.tanh(x)]
    found["inverse"] = [paddle.asin(x), paddle.acos(x), paddle.atan(x)]
    found["roots"] = [paddle.sqrt(p), paddle.rsqrt(p), paddle.reciprocal(p)]
    found["logs"] = [paddle.log(p), paddle.log2(p), paddle.log10(p), paddle.log1p(p)]
    found["hyperbolic"] = [paddle.sinh(x), paddle.cosh(x), paddle.stanh(x), paddle.sigmoid(x)]
    found["special"] = [paddle.erf(x), paddle.erfinv(x), paddle.lgamma(p), paddle.digamma(p)]
    found["rounded"] = [paddle.floor(x), paddle.ceil(x), paddle.round(x), paddle.trunc(x)]
    found["less_one"] = paddle.expm1(x)
    return found


def comparisons(paddle):
    """Equal, larger, both, either, close."""
    x, y = paddle.to_tensor([1.0, 2.0, 3.0]), paddle.to_tensor([1.0, 3.0, 2.0])
    a, b = x > 1.5, y > 2.5
    odd = paddle.to_tensor([1.0, float("nan"), float("inf")])
    return {
        "equal": [paddle.equal(x, y), paddle.not_equal(x, y)],
        "order": [
            paddle.less_than(x, y),
            paddle.less_equal(x, y),
            paddle.greater_than(x, y),
            paddle.greater_equal(x, y),
        ],
        "logic": [
            paddle.logical_and(a, b),
            paddle.logical_or(a, b),
            paddle.logical_xor(a, b),
            paddle.logical_not(a),
        ],
        "all": [paddle.equal_all(x, x), a.all(), a.any(), paddle.allclose(x, x + 1e-9)],
        "odd": [paddle.isnan(odd), paddle.isinf(odd), paddle.isfinite(odd)],
        "close": paddle.isclose(x, y, atol=1.0),
        "sum": paddle.nansum(odd[:2]),
        "masked": paddle.where(paddle.isnan(odd), paddle.zeros_like(odd), odd),
    }


def bits(paddle):
    """Whole numbers as patterns: masks, and the parity of a byte."""
    x = paddle.to_tensor([0b1100, 0b1010, 255], dtype="int32")
    y = paddle.to_tensor([0b1010, 0b0110, 15], dtype="int32")
    parity = x
    for shift in (4, 2, 1):
        parity = parity ^ (parity // 2**shift)
    return {
        "and": paddle.bitwise_and(x, y),
        "or": paddle.bitwise_or(x, y),
        "xor": paddle.bitwise_xor(x, y),
        "not": paddle.bitwise_not(x),
        "parity": parity % 2,
    }


def broadcasting(paddle):
    """Shapes that are made to fit, and their gradients."""
    row = paddle.to_tensor(wave(3), stop_gradient=False)
    column = paddle.to_tensor(wave(4, 1), stop_gradient=False)
    table = row * column + paddle.ones([2, 1, 1])
    table.sum().backward()
    points = paddle.to_tensor(wave(5, 2))
    distances = ((points.unsqueeze(0) - points.unsqueeze(1)) ** 2).sum(-1).sqrt()
    return {
        "shape": table.shape,
        "row": row.grad,
        "column": column.grad,
        "distances": distances,
        "outer": paddle.outer(row.detach(), paddle.arange(3, dtype="float32")),
        "sum": paddle.sum(distances, axis=[0, 1], keepdim=True),
    }
