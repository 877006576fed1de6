"""Branches and loops have kernels as good as those around them: epilogues, chains of products."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.back_to_back_gemm import is_chain
from minipaddle.passes.epilogue import begins_with_product

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def perceptron(x, w1, w2):
    """A layer after the other until the numbers are small: each is an epilogue, or both a chain."""
    while x.abs().max() > 0.5:
        x = paddle.tanh(F.gelu(x @ w1 + 0.1) @ w2) * 0.9
    return x


def attention(q, k, v):
    n = paddle.zeros([], "int64")
    while n < 3:
        q = F.softmax(q @ k.transpose([0, 2, 1]) * 0.25, -1) @ v
        n = n + 1
    return q


def two_ways(x, w1, w2):
    if x.sum() > 0:
        y = F.relu(x @ w1 + 1.0) @ w2
    else:
        image, w = x.reshape([1, 5, 8, 8]), w1.reshape([8, 8, 3, 1])
        y = F.conv2d(image, w, padding=[1, 0], data_format="NHWC").exp()
        y = y.reshape([40, 8])
    return y


SMALL = [(40, 8), (8, 24), (24, 8)]
FORMS = {
    "a perceptron": (perceptron, SMALL, ["chain"]),
    "a perceptron, apart": (perceptron, SMALL, ["epilogue"]),  # the other is in the loop's test
    "attention": (attention, [(3, 20, 16)] * 3, ["chain"]),
    "attention, apart": (attention, [(3, 20, 16)] * 3, ["epilogue"]),
    "a branch": (two_ways, SMALL, ["chain", "epilogue"]),
    "nothing joined": (perceptron, SMALL, []),
}
STRATEGIES = {"apart": {"back_to_back_gemm": False}, "joined": {"fuse_gemm_epilogue": False}}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_region_computes_is_joined_and_equals_eager(form):
    function, shapes, wanted = FORMS[form]
    strategy = STRATEGIES.get(form.rpartition(" ")[2])
    static = paddle.jit.to_static(function, backend="native", build_strategy=strategy)
    rng = np.random.default_rng(0)
    given = [paddle.to_tensor(rng.standard_normal(s).astype("float32") / 3) for s in shapes]
    for sign in (1, -1):
        given[0] = sign * given[0]
        found, eager = static(*given).numpy(), function(*given).numpy()
        np.testing.assert_allclose(found, eager, rtol=2e-5, atol=2e-6)
    (made,) = static.executables
    (flow,) = [r for r in made.program.records if {"body", "true"} & r.attrs.keys()]
    regions = [flow.attrs[name] for name in ("body", "true", "false") if name in flow.attrs]
    groups = [r for region in regions for r in region.records if begins_with_product(r)]
    assert ["chain" if is_chain(r) else "epilogue" for r in groups] == wanted


@pytest.mark.parametrize(
    ("shape", "beside", "joins"),
    [
        ((2, 3, 4), (4,), True),
        ((4, 6), (4, 6), True),  # one loop over all of it
        ((4, 6), (6,), False),
        ((8, 3), (3,), False),
    ],
)
def test_rows_of_another_length_are_no_rows(shape, beside, joins):
    """A product of 6 rows of 4, seen as rows of something else: its rows are walked, or nothing."""

    def f(x, y, z):
        return [paddle.matmul(x, y).reshape(shape) - z]

    draw = np.random.default_rng(0)
    given = [draw.standard_normal(s).astype("float32") for s in ((6, 16), (16, 4), beside)]
    wanted = (given[0] @ given[1]).reshape(shape) - given[2]
    program = trace(f, [Spec(a.shape, a.dtype) for a in given]).program
    for options in ({"fusion": False}, {}):
        after = optimized(program, options).program
        assert any(map(begins_with_product, after.records)) == joins
        (found,) = Executable(program, options)(program, given)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
