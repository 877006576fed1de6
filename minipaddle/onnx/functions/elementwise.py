"""Elementwise operators of ONNX, and products of matrices."""

import numpy

from ...core.prelude import Tensor, movement
from ...tensor.einsum import einsum
from ..table import FUNCTIONS, apply, beside, dtype_of, number, pair, reads, tensor


@reads("Div")
def divide(x, y):
    """Whole numbers are divided towards 0."""
    x, y = pair(x, y)
    dtype = next(v.spec.dtype for v in (x, y) if isinstance(v, Tensor))
    if dtype.kind == "f":
        return apply("divide", x, y)
    down, rest = apply("floor_divide", x, y), apply("remainder", x, y)
    turned = apply("logical_and", apply("not_equal", rest, 0), apply("less_than", down, 0))
    return down + turned.astype(dtype)


@reads("Mod")
def _(x, y, *, fmod=0):
    x, y = pair(x, y)
    rest = apply("remainder", x, y)
    if not fmod:
        return rest
    other = apply("logical_and", apply("not_equal", rest, 0), apply("less_than", x * y, 0))
    return apply("where", other, rest - y, rest)


@reads("Pow")
def _(x, y):
    """The result has the dtype of x."""
    x, dtype = tensor(x), tensor(x).spec.dtype
    if isinstance(y, Tensor) or y.size != 1 or y.ndim > x.spec.ndim:
        return apply("pow", x, tensor(y).astype(dtype)).astype(dtype)
    y = number(y)
    y = float(y) if dtype.kind == "f" else y
    return apply("square", x) if y == 2 else apply("pow", x, y).astype(dtype)


def fold_inputs(name: str):
    """An operator of any number of inputs as one of two."""

    def call(*xs):
        total = xs[0] if len(xs) > 1 else tensor(xs[0])
        for x in xs[1:]:
            total = apply(name, *pair(total, x))
        return total

    return call


FUNCTIONS |= {
    "Max": fold_inputs("maximum"),
    "Min": fold_inputs("minimum"),
    "Sum": fold_inputs("add"),
}
FUNCTIONS["Mean"] = lambda *xs: FUNCTIONS["Sum"](*xs) / float(len(xs))


@reads("Where")
def _(condition, x, y):
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x, y = tensor(x), tensor(y)
    return apply("where", tensor(condition), *pair(x, y))


@reads("Cast")
def cast(x, *, to, saturate=1, round_mode=""):
    return apply("cast", tensor(x), dtype=dtype_of(to))


FUNCTIONS["CastLike"] = lambda x, like, saturate=1, round_mode="": apply(
    "cast", tensor(x), dtype=tensor(like).spec.dtype
)


@reads("Clip")
def _(x, low=None, high=None, *, min=None, max=None):
    low, high = (b if a is None else a for a, b in ((low, min), (high, max)))
    x = tensor(x)
    x = x if low is None else apply("maximum", x, beside(as_number(low, x), x))
    return x if high is None else apply("minimum", x, beside(as_number(high, x), x))


def as_number(x, like: Tensor):
    return x if isinstance(x, Tensor) else numpy.asarray(x, like.spec.dtype)


@reads("PRelu")
def _(x, /, slope):
    return apply("relu", x) + apply("minimum", x, 0.0) * tensor(slope)


@reads("IsInf")
def _(x, *, detect_negative=1, detect_positive=1):
    name = "isinf" if detect_negative and detect_positive else "isposinf"
    return apply(name if detect_positive else "isneginf", tensor(x))


@reads("Softplus")
def _(x):
    return apply("softplus", tensor(x), beta=1, threshold=20)


@reads("Shrink")
def _(x, /, *, bias=0.0, lambd=0.5):
    up, down = apply("less_than", x, -lambd), apply("greater_than", x, lambd)
    return apply("where", up, x + bias, apply("where", down, x - bias, 0.0))


FUNCTIONS |= {
    "Swish": lambda x, /, alpha=1.0: x * apply("sigmoid", x * alpha),
    "Identity": lambda x: x,
}


@reads("Gemm")
def _(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    a, b = tensor(a), tensor(b)
    a = movement.transpose(a, perm=(1, 0)) if transA else a
    b = movement.transpose(b, perm=(1, 0)) if transB else b
    bias = None if c is None else tensor(c)
    plain = alpha == beta == 1.0
    if plain and bias is not None and bias.spec.shape == b.spec.shape[1:]:
        return apply("affine", a, b, bias)
    y = apply("matmul", a, b)
    y = y if alpha == 1.0 else y * alpha
    return y if bias is None else y + (bias if beta == 1.0 else bias * beta)


@reads("Einsum")
def _(*xs, equation):
    return einsum(equation, *map(tensor, xs))
