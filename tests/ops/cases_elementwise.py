"""Cases of the elementwise operators: one line each gives four shapes, broadcasting among them."""

import numpy as np
import torch
import torch.nn.functional as F

from tests.ops.cases import Case, booleans, draw, together, uniform, whole

REAL = (-3.0, 3.0)
POSITIVE = (0.2, 3.0)
UNIT = (-0.95, 0.95)
SHARE = (0.05, 0.95)
SHAPES = {
    1: [((2, 3),), ((),), ((0, 3),)],
    2: [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 3), (3,))],
    3: [((2, 3), (3,), ()), ((2, 1), (3,), (2, 3))],
}


def many(oracle, *domains, **attrs) -> list[Case]:
    """A case for each shape; `domains` are (low, high) of each input."""
    return [
        Case(
            together(*(uniform(*d, s) for d, s in zip(domains, shapes, strict=True))), oracle, attrs
        )
        for shapes in SHAPES[len(domains)]
    ]


def numbers(oracle, count, low=-9, high=9, **attrs) -> list[Case]:
    """Cases on whole numbers."""
    return [Case(whole(low, high, *shapes), oracle, attrs, order=0) for shapes in SHAPES[count]]


def flat(cases) -> list[Case]:
    """For operators that are flat or not differentiable: values only."""
    return [case._replace(order=0) for case in cases]


def first_only(cases) -> list[Case]:
    return [case._replace(order=1) for case in cases]


def looser(cases, tolerance) -> list[Case]:
    return [case._replace(tolerance=tolerance) for case in cases]


def near(low, high):
    """A builder for pairs that are often equal: whole numbers as floats."""
    return draw(lambda rng, shape: rng.integers(low, high, shape).astype(float), ((2, 3), (3,)))


def compared(oracle) -> list[Case]:
    return [Case(near(-1, 2), oracle, order=0), *numbers(oracle, 2, -1, 2)]


def cases_of(oracle, *builders) -> list[Case]:
    return [Case(build, oracle) for build in builders]


def mixed(x, y, weight):
    return x + weight * (y - x)


def clamp(low, high):
    return lambda x: torch.clamp(x, low, high)


def within(g, x):
    return g * ((x > 0) & (x < 2))


ARITHMETIC = {
    "add": many(torch.add, REAL, REAL),
    "subtract": many(torch.subtract, REAL, REAL),
    "multiply": many(torch.multiply, REAL, REAL),
    "divide": many(torch.divide, REAL, POSITIVE) + numbers(torch.divide, 2, 1, 9),
    "floor_divide": flat(many(torch.floor_divide, REAL, POSITIVE)),
    "remainder": many(torch.remainder, REAL, POSITIVE),
    "neg": many(torch.neg, REAL),
    "abs": many(torch.abs, REAL),
    "sign": many(torch.sign, REAL),
    "scale": many(lambda x: 2.5 * x - 1.0, REAL, scale=2.5, bias=-1.0)
    + many(lambda x: 2.5 * (x - 1.0), REAL, scale=2.5, bias=-1.0, bias_after_scale=False),
    "lerp": many(mixed, REAL, REAL, REAL)
    + cases_of(mixed, together(uniform(*REAL, (3,), (3,)), lambda rng: [0.25])),
    "pow": many(torch.pow, POSITIVE, REAL)
    + [
        Case(together(uniform(*POSITIVE, (3,)), lambda rng, p=p: [p]), lambda x, p: x**p)
        for p in (0, 1, 2, 3, -1.5, 0.5)
    ]
    + [
        Case(together(lambda rng, b=b: [b], uniform(*REAL, (3,))), lambda b, y: b**y)
        for b in (2, 0.3)
    ]
    + numbers(torch.pow, 2, 0, 5),
    "square": many(torch.square, REAL) + numbers(torch.square, 1),
    "sqrt": many(torch.sqrt, POSITIVE),
    "rsqrt": many(torch.rsqrt, POSITIVE),
    "reciprocal": many(torch.reciprocal, POSITIVE),
    "exp": many(torch.exp, REAL) + numbers(torch.exp, 1),
    "log": many(torch.log, POSITIVE),
    "maximum": many(torch.maximum, REAL, REAL) + numbers(torch.maximum, 2),
    "minimum": many(torch.minimum, REAL, REAL) + numbers(torch.minimum, 2),
    "fmax": many(torch.fmax, REAL, REAL),
    "fmin": many(torch.fmin, REAL, REAL),
    "winner": many(lambda g, x, y: torch.where(x > y, g, 0.0), REAL, REAL, REAL),
    "clip": many(clamp(-1, 1), REAL, min=-1.0, max=1.0)
    + many(clamp(-1, None), REAL, min=-1.0)
    + many(clamp(None, 1), REAL, max=1.0),
    "gate": many(lambda g, x: g * (x > 0), REAL, REAL)
    + many(within, REAL, REAL, low=0.0, high=2.0)
    + many(within, REAL, REAL, low=0.0, high=2.0, closed=True),
    "where": [
        Case(together(booleans(*shapes[:1]), uniform(*REAL, *shapes[1:])), torch.where)
        for shapes in SHAPES[3]
    ],
}

LOGIC = {
    "equal": compared(torch.eq),
    "not_equal": compared(torch.ne),
    "less_than": compared(torch.lt),
    "less_equal": compared(torch.le),
    "greater_than": compared(torch.gt),
    "greater_equal": compared(torch.ge),
    "isclose": flat(
        many(lambda x, y: torch.isclose(x, y, 0.5, 0.1), REAL, REAL, rtol=0.5, atol=0.1)
    ),
    "logical_and": compared(torch.logical_and),
    "logical_or": compared(torch.logical_or),
    "logical_xor": compared(torch.logical_xor),
    "logical_not": numbers(torch.logical_not, 1, -1, 2),
    "isnan": flat(many(torch.isnan, REAL)),
    "isinf": flat(many(torch.isinf, REAL)),
    "isfinite": flat(many(torch.isfinite, REAL)),
    "isposinf": flat(many(torch.isposinf, REAL)),
    "isneginf": flat(many(torch.isneginf, REAL)),
    "signbit": flat(many(torch.signbit, REAL)),
    "bitwise_and": numbers(torch.bitwise_and, 2),
    "bitwise_or": numbers(torch.bitwise_or, 2),
    "bitwise_xor": numbers(torch.bitwise_xor, 2),
    "bitwise_not": numbers(torch.bitwise_not, 1),
    "bitwise_left_shift": numbers(torch.bitwise_left_shift, 2, 0, 9),
    "bitwise_right_shift": numbers(torch.bitwise_right_shift, 2, 0, 9),
}
CASTS = {
    "cast": [
        Case(uniform(*REAL, (2, 3)), torch.Tensor.double, {"dtype": np.dtype("float64")}),
        Case(uniform(*REAL, (2, 3)), torch.Tensor.float, {"dtype": np.dtype("float32")}, order=0),
        Case(uniform(*REAL, (2, 3)), torch.Tensor.long, {"dtype": np.dtype("int64")}, order=0),
        Case(uniform(-1, 1, 3), torch.Tensor.bool, {"dtype": np.dtype("bool")}, order=0),
        Case(booleans(3), torch.Tensor.float, {"dtype": np.dtype("float32")}, order=0),
    ]
}
CASTS["cast"] = [case._replace(dtypes=("float64", "float32")) for case in CASTS["cast"]]


def half_to_even(decimals):
    return lambda x: torch.round(x, decimals=decimals)


ROUNDING = {
    "floor": many(torch.floor, REAL),
    "ceil": many(torch.ceil, REAL),
    "trunc": many(torch.trunc, REAL),
    "round": many(torch.round, REAL) + many(half_to_even(2), REAL, decimals=2),
    "frac": many(torch.frac, REAL),
    "copysign": many(torch.copysign, REAL, REAL),
    "heaviside": flat(cases_of(torch.heaviside, near(-1, 2)))
    + many(lambda x, y: (x > 0) + 0 * x * y, REAL, REAL),
    "nan_to_num": many(torch.nan_to_num, REAL),
    "gcd": numbers(torch.gcd, 2),
    "lcm": numbers(torch.lcm, 2),
}

SPECIAL = {
    "expm1": many(torch.expm1, REAL),
    "log1p": many(torch.log1p, POSITIVE),
    "log2": many(torch.log2, POSITIVE),
    "log10": many(torch.log10, POSITIVE),
    "logaddexp": many(torch.logaddexp, REAL, REAL),
    "sigmoid": many(torch.sigmoid, REAL),
    "logit": many(torch.logit, SHARE) + many(lambda x: torch.logit(x, 0.2), SHARE, eps=0.2),
    "tanh": many(torch.tanh, REAL),
    "stanh": many(lambda x: 1.7159 * torch.tanh(0.67 * x), REAL)
    + many(lambda x: 2 * torch.tanh(0.5 * x), REAL, scale_a=0.5, scale_b=2.0),
    "sin": many(torch.sin, REAL),
    "cos": many(torch.cos, REAL),
    "tan": many(torch.tan, (-1.2, 1.2)),
    "asin": many(torch.asin, UNIT),
    "acos": many(torch.acos, UNIT),
    "atan": many(torch.atan, REAL),
    "atan2": many(torch.atan2, REAL, POSITIVE),
    "hypot": many(torch.hypot, REAL, POSITIVE),
    "deg2rad": many(torch.deg2rad, REAL),
    "rad2deg": many(torch.rad2deg, REAL),
    "angle": flat(many(torch.angle, REAL)),
    "sinh": many(torch.sinh, REAL),
    "cosh": many(torch.cosh, REAL),
    "asinh": many(torch.asinh, REAL),
    "acosh": many(torch.acosh, (1.2, 3.0)),
    "atanh": many(torch.atanh, UNIT),
    "erf": many(torch.erf, REAL),
    "erfinv": many(torch.erfinv, UNIT),
    "lgamma": many(torch.lgamma, POSITIVE),
    "digamma": many(torch.digamma, POSITIVE),
    "polygamma": [
        case
        for n in (0, 1, 2)
        for case in looser(many(lambda x, n=n: torch.polygamma(n, x), (0.8, 3.0), n=n), 100)
    ],
    "gammainc": many(torch.special.gammainc, POSITIVE, POSITIVE),
    "gammaincc": many(torch.special.gammaincc, POSITIVE, POSITIVE),
    "i0": many(torch.special.i0, REAL),
    "i0e": many(torch.special.i0e, REAL),
    "i1": many(torch.special.i1, REAL),
    "i1e": many(torch.special.i1e, REAL),
    "sinc": looser(many(torch.sinc, REAL), 10),
}

ACTIVATION = {
    "relu": many(F.relu, REAL),
    "bernoulli_nll": many(
        lambda x, y: -(y * torch.log(x) + (1 - y) * torch.log(1 - x)), SHARE, SHARE
    ),
    "gated": many(lambda x, y: x * torch.sigmoid(y), REAL, REAL),
    "huber": many(
        lambda *xs: F.huber_loss(*torch.broadcast_tensors(*xs), "none", 0.7), REAL, REAL, delta=0.7
    ),
    "relu6": many(F.relu6, (-3.0, 9.0)),
    "leaky_relu": many(F.leaky_relu, REAL)
    + many(lambda x: F.leaky_relu(x, 2.0), REAL, negative_slope=2.0),
    "thresholded_relu": many(lambda x: F.threshold(x, 1.0, 0.0), REAL)
    + many(lambda x: F.threshold(x, -0.5, 0.3), REAL, threshold=-0.5, value=0.3),
    "hardtanh": many(F.hardtanh, REAL)
    + many(lambda x: F.hardtanh(x, -0.5, 2.0), REAL, min=-0.5, max=2.0),
    "hardsigmoid": many(lambda x: torch.clamp(0.1666667 * x + 0.5, 0, 1), (-5.0, 5.0))
    + many(lambda x: torch.clamp(0.3 * x + 0.4, 0, 1), REAL, slope=0.3, offset=0.4),
    "hardswish": many(F.hardswish, (-5.0, 5.0)),
    "elu": many(F.elu, REAL) + many(lambda x: F.elu(x, 0.3), REAL, alpha=0.3),
    "celu": many(F.celu, REAL) + many(lambda x: F.celu(x, 0.5), REAL, alpha=0.5),
    "selu": many(F.selu, REAL),
    "silu": many(F.silu, REAL),
    "gelu": many(F.gelu, REAL)
    + many(lambda x: F.gelu(x, approximate="tanh"), REAL, approximate=True)
    + many(lambda x: F.gelu(x, approximate="tanh"), REAL, approximate="tanh"),
    "mish": many(F.mish, REAL),
    "softplus": many(F.softplus, REAL)
    + many(lambda x: F.softplus(x, 3.0, 2.0), REAL, beta=3.0, threshold=2.0),
    "log_sigmoid": many(F.logsigmoid, REAL),
    "softsign": many(F.softsign, REAL),
    "softshrink": many(F.softshrink, REAL)
    + many(lambda x: F.softshrink(x, 1.0), REAL, threshold=1.0),
    "hardshrink": many(F.hardshrink, REAL)
    + many(lambda x: F.hardshrink(x, 1.0), REAL, threshold=1.0),
    "tanhshrink": many(F.tanhshrink, REAL),
}

CASES = ARITHMETIC | CASTS | LOGIC | ROUNDING | SPECIAL | ACTIVATION
