"""Every elementwise operator on every combination of strange numbers: C does what NumPy does."""

import itertools

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.executors.compiler import compiler
from tests.ops.test_operators import CASES, floats

pytestmark = [
    pytest.mark.sweep(one_in=3),
    pytest.mark.skipif(compiler() is None, reason="no C compiler"),
]

INF, NAN = np.inf, np.nan
STRANGE = [0.0, -0.0, INF, -INF, NAN, 1.5, -1.5, 3.0, -3.0]
"""For three inputs these; for one or two, more."""
MORE = [*STRANGE, 0.5, 1.0, -1.0, 2.0, 88.7, -104.0, 1e30, -1e-30, 1e-40]
NEAR = {"float32": (3e-6, 1e-37), "float64": (1e-12, 1e-300)}  # smaller numbers may be 0
CANCELS = {"gelu": 20}  # 1 + tanh(x), near -1 a rounding of tanh counts for so much more
SUMS = {"bernoulli_nll": 100}  # two terms cancel, each at most so often its largest operand
TOGETHER = 12
"""Operators in one program: one call of the compiler."""


def calls_of_operators() -> list[tuple]:
    """(operator, attributes, how many inputs), each once, as the cases call them with floats."""
    found = {}
    for name, cases in sorted(CASES.items()):
        for case in cases if name in OPS and OPS[name].kind == "elementwise" else ():
            given = case.build(np.random.default_rng(0))
            if 0 < len(given) == len(floats(given)):
                found[name, repr(case.attrs)] = OPS[name], case.attrs, len(given)
    return list(found.values())


CALLS = calls_of_operators()
PROGRAMS = [
    (count, k)
    for count in sorted({n for *_, n in CALLS})
    for k in range(0, sum(n == count for *_, n in CALLS), TOGETHER)
]


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(("count", "first"), PROGRAMS)
def test_strange_numbers(count, first, dtype):
    calls = [call for call in CALLS if call[2] == count][first : first + TOGETHER]

    def program(inputs):
        return [op(*xs, **attrs) for (op, attrs, _), xs in zip(calls, inputs)]

    values = itertools.product(MORE if count < 3 else STRANGE, repeat=count)
    given = [np.array(column, dtype) for column in zip(*values)]
    inputs = [  # of different lengths: a kernel for each operator
        [paddle.to_tensor(np.append(x, np.ones(k, dtype))) for x in given]
        for k in range(len(calls))
    ]
    native = paddle.jit.to_static(program, backend="native")(inputs)
    for (op, attrs, _), xs, wanted, found in zip(
        calls, inputs, program(inputs), native, strict=True
    ):
        wanted, found = wanted.numpy(), found.numpy()
        assert found.dtype == wanted.dtype
        rtol, atol = NEAR[dtype] if wanted.dtype.kind == "f" else (0, 0)
        rtol *= CANCELS.get(op.name, 1)
        if op.name in SUMS:
            most = np.max(np.abs([x.numpy() for x in xs]), axis=0)
            atol = atol + rtol * SUMS[op.name] * np.where(np.isfinite(most), most, 0)
        near = np.isclose(found, wanted, rtol, atol, equal_nan=True)
        k = int(np.argmin(near))
        assert near[k], f"{op.name}{attrs} of {[x[k] for x in given]}: {found[k]}, not {wanted[k]}"


def in_one_group(x, y):
    """Arithmetic of whole numbers, each used further before it is stored."""
    made = [x + y, x - y, x * y, x**3, -x, ~x, x.abs(), x << 3, paddle.gcd(x, y), paddle.lcm(x, y)]
    made += [paddle.fmax(x, y), paddle.fmin(x, y), paddle.copysign(x, y), paddle.round(x // 2, -1)]
    return [a.astype("float64") / 2 for a in made] + [x - y > 0, x + 1 > x, paddle.signbit(x)]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_whole_numbers(dtype):
    """They wrap round in their own bits; C computes with 32 of fewer, and says nothing of more."""
    info = np.iinfo(dtype)
    ends = [info.min, info.max] if info.bits < 64 else [-(2**62), 2**62]  # NumPy's copysign: floats
    values = [*ends, info.max // 2 % 5000, 0, 1, 3, 7, 12, 90, *([-1, -7, -12] if info.min else [])]
    x, y = (paddle.to_tensor(np.array(a, dtype)) for a in zip(*itertools.product(values, values)))
    native = paddle.jit.to_static(in_one_group, backend="native")(x, y)
    for k, (wanted, found) in enumerate(zip(in_one_group(x, y), native, strict=True)):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy(), f"result {k}")


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_the_smallest_whole_number_is_divided(dtype):
    """By -1, where the answer is one too many, and a processor may stop the program."""

    def program(x, y):
        return [x // y, x % y, paddle.gcd(x, y), paddle.lcm(x, y)]

    low = np.iinfo(dtype).min
    x, y = (paddle.to_tensor(np.array(a, dtype)) for a in ([low, low, 7, 0], [-1, low, -1, low]))
    native = paddle.jit.to_static(program, backend="native")(x, y)
    for wanted, found in zip(program(x, y), native, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_booleans():
    """Their sum is `or`, their product `and`; the largest of no true one is not true."""

    def program(x, y):
        return [x + y, x * y, (x + y).max(), (x * y).max(-1), x.min(0), (x * y).prod(-1)]

    x, y = (paddle.to_tensor(np.array(a)) for a in ([[False, True]] * 2, [[False, False]] * 2))
    native = paddle.jit.to_static(program, backend="native")(x, y)
    for wanted, found in zip(program(x, y), native, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
        assert found.dtype == wanted.dtype
