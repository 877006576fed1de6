"""Every elementwise operator on every combination of strange numbers: C does what NumPy does."""

import itertools

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.core.op import OPS
from minipaddle.executors.compiler import compiler
from tests.ops.test_operators import CASES, floats

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

INF, NAN = np.inf, np.nan
STRANGE = [0.0, -0.0, INF, -INF, NAN, 1.5, -1.5, 3.0, -3.0]
"""For three inputs these; for one or two, more."""
MORE = [*STRANGE, 0.5, 1.0, -1.0, 2.0, 88.7, -104.0, 1e30, -1e-30, 1e-40]
NEAR = {"float32": (3e-6, 1e-37), "float64": (1e-12, 1e-300)}  # smaller numbers may be 0
TOGETHER = 12
"""Operators in one program: one call of the compiler."""


def ways() -> list[tuple]:
    """(operator, attributes, how many inputs), each once, as the cases call them with floats."""
    found = {}
    for name, cases in sorted(CASES.items()):
        for case in cases if name in OPS and OPS[name].kind == "elementwise" else ():
            given = case.build(np.random.default_rng(0))
            if 0 < len(given) == len(floats(given)):
                found[name, repr(case.attrs)] = OPS[name], case.attrs, len(given)
    return list(found.values())


WAYS = ways()
PROGRAMS = [
    (count, k)
    for count in sorted({n for *_, n in WAYS})
    for k in range(0, sum(n == count for *_, n in WAYS), TOGETHER)
]


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(("count", "first"), PROGRAMS)
def test_strange_numbers(count, first, dtype):
    calls = [way for way in WAYS if way[2] == count][first : first + TOGETHER]

    def program(inputs):
        return [op(*xs, **attrs) for (op, attrs, _), xs in zip(calls, inputs)]

    values = itertools.product(MORE if count < 3 else STRANGE, repeat=count)
    given = [np.array(column, dtype) for column in zip(*values)]
    inputs = [  # of different lengths: a kernel for each operator
        [paddle.to_tensor(np.append(x, np.ones(k, dtype))) for x in given]
        for k in range(len(calls))
    ]
    native = paddle.jit.to_static(program, backend="native")(inputs)
    for (op, attrs, _), wanted, found in zip(calls, program(inputs), native, strict=True):
        wanted, found = wanted.numpy(), found.numpy()
        assert found.dtype == wanted.dtype
        rtol, atol = NEAR[dtype] if wanted.dtype.kind == "f" else (0, 0)
        near = np.isclose(found, wanted, rtol, atol, equal_nan=True)
        k = int(np.argmin(near))
        assert near[k], f"{op.name}{attrs} of {[x[k] for x in given]}: {found[k]}, not {wanted[k]}"
