"""The engine's own products, plain loops in C, against NumPy and torch."""

import numpy as np
import pytest
import torch

from minipaddle.engine.codegen import plain_products
from minipaddle.engine.codegen.kernel import EMITTERS
from minipaddle.engine.codegen.scalar import CannotWrite
from tests.codegen.compiling import Call, needs_gcc, record_of, run_all

pytestmark = needs_gcc
RNG = np.random.default_rng(0)


def call(emit, name, shapes, dtype="float64", **attrs):
    arrays = [RNG.standard_normal(shape).astype(dtype) for shape in shapes]
    record = record_of(name, arrays, **attrs)
    kernel = emit(record, f"plain_{name}_{next(NUMBERS)}")
    return Call(kernel, record, arrays)


NUMBERS = iter(range(99))
PAIRS = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((5, 6, 2, 3), (1, 3, 4)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
]  # fmt: skip


def test_matrix_products():
    calls = [call(plain_products.emit_matmul, "matmul", pair) for pair in PAIRS]
    for one, (got,) in zip(calls, run_all(calls), strict=True):
        np.testing.assert_allclose(got, np.matmul(*one.inputs), rtol=1e-13, atol=1e-13)


SETTINGS = [  # size, kernel, stride, padding, dilation, groups
    ((5, 6), (3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1), 1),
    ((7, 6), (3, 3), (2, 3), ((1, 2), (2, 0)), (1, 1), 1),
    ((8,), (3,), (1,), ((2, 2),), (2,), 3),
    ((4, 5, 3), (2, 2, 1), (1, 2, 1), ((0, 0), (1, 1), (0, 0)), (1, 1, 1), 2),
    ((3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
]


def padded(x, padding):
    """x with zeros around it; torch pads the last axis first."""
    return torch.nn.functional.pad(x, [n for pair in padding[::-1] for n in pair])


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation", "groups"), SETTINGS)
def test_a_convolution_and_its_adjoints(size, kernel, stride, padding, dilation, groups):
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x = torch.tensor(RNG.standard_normal((2, 2 * groups, *size)), requires_grad=True)
    w = torch.tensor(RNG.standard_normal((3 * groups, 2, *kernel)), requires_grad=True)
    conv = getattr(torch.nn.functional, f"conv{len(size)}d")
    y = conv(padded(x, padding), w, stride=stride, dilation=dilation, groups=groups)
    g = torch.tensor(RNG.standard_normal(y.shape))
    y.backward(g)
    calls, wanted = [], [y, x.grad, w.grad]
    for name, given, attrs in (
        ("conv", (x, w), {}),
        ("conv_input_grad", (g, w), {"size": size}),
        ("conv_weight_grad", (x, g), {"kernel": kernel}),
    ):
        arrays = [a.detach().numpy() for a in given]
        record = record_of(name, arrays, **attrs, **how)
        emitted = plain_products.emit_convolution(record, f"plain_{name}_{next(NUMBERS)}")
        calls.append(Call(emitted, record, arrays))
    for (got,), want in zip(run_all(calls), wanted, strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_what_it_leaves():
    """The package has better kernels, and NumPy computes other dtypes."""
    names = "matmul", "conv", "conv_input_grad", "conv_weight_grad"
    modules = {EMITTERS[name].__module__ for name in names if name in EMITTERS}
    assert modules == {"minipaddle.codegen.convolutions.depthwise_planes"}
    with pytest.raises(CannotWrite, match="int64"):
        call(plain_products.emit_matmul, "matmul", PAIRS[0], dtype="int64")
