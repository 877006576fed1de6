"""Every operator asks of the array module only what CuPy can do, and gives the CPU's numbers."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.dtype import FLOATS
from minipaddle.engine.core.op import OPS
from tests.ops.test_operators import CASES, select

pytestmark = [pytest.mark.sweep(one_in=3), pytest.mark.usefixtures("gpu")]


def inputs_of(case, place):
    arrays = case.build(np.random.default_rng(0))
    return [
        paddle.to_tensor(x, place=place, stop_gradient=getattr(x, "dtype", None) not in FLOATS)
        if hasattr(x, "dtype")
        else x
        for x in arrays
    ]


def outputs_of(op, case, place):
    """Values, and gradients of the sum of squares, as NumPy arrays."""
    inputs = inputs_of(case, place)
    results = op(*inputs, **case.attrs)
    results = results if isinstance(results, tuple) else (results,)
    values = [r.numpy() for r in results]
    tracked = [x for x in inputs if not getattr(x, "stop_gradient", True)]
    chosen = range(len(results)) if case.results is None else case.results
    smooth = [(results[k] * results[k]).sum() for k in chosen if not results[k].stop_gradient]
    if case.order and case.wrt != () and smooth and tracked:
        total = smooth[0]
        for more in smooth[1:]:
            total = total + more
        found = paddle.grad(total, tracked, allow_unused=True)
        values += [g.numpy() for g in found if g is not None]
    return values


@select(lambda op, case: True)
def test_operator(name, k):
    case = CASES[name][k]
    on_gpu = outputs_of(OPS[name], case, "gpu")
    on_cpu = outputs_of(OPS[name], case, "cpu")
    assert len(on_gpu) == len(on_cpu)
    if case.check is not None:  # signs and orders may differ: what must hold is the property
        results = OPS[name](*inputs_of(case, "gpu"), **case.attrs)
        results = results if isinstance(results, tuple) else (results,)
        case.check([r.numpy() for r in results], case.build(np.random.default_rng(0)))
        return
    for a, b in zip(on_gpu, on_cpu, strict=True):
        assert a.dtype == b.dtype
        close = 8 * np.finfo(a.dtype).eps if a.dtype in ("float16", "float32") else 1e-9
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=close, atol=close)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: paddle.linalg.cholesky(paddle.to_tensor([[1.0, 2.0], [2.0, 1.0]])),
        lambda: paddle.linalg.inv(paddle.ones([2, 2])),
        lambda: paddle.linalg.solve(paddle.zeros([2, 2]), paddle.ones([2, 1])),
    ],
)
def test_matrices_without_a_result_are_errors(compute):
    """CuPy returns nan unless its checks are on."""
    with pytest.raises(ValueError, match=r"ingular|positive definite|cuSOLVER|cuBLAS"):
        compute()
