"""A reduction is one definition: whatever is registered fuses, and its parts join as the whole."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS, reduction
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tensor import Tensor
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ops.elementwise import square
from minipaddle.engine.ops.reduction import spread, sum_dtype
from minipaddle.engine.sharding.letters import rule_of

REDUCTIONS = sorted(name for name, op in OPS.items() if op.kind == "reduction")


def rows(op) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((7, 300)).astype("float32")
    return x > -2 if op.result and op.result(x.dtype) == np.bool_ else x


def reduce(op, x: Tensor, axis=(1,)) -> Tensor:
    return op(x, axis=axis, keepdim=False)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_parts_join_as_the_whole(name):
    op = OPS[name]
    x = rows(op)
    parts = [reduce(op, paddle.to_tensor(part)).numpy() for part in np.split(x, [100, 101], axis=1)]
    joined = parts[0]
    for part in parts[1:]:
        joined = op.combine(np, joined, part)
    np.testing.assert_allclose(joined, reduce(op, paddle.to_tensor(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_body_is_what_the_terms_make(name):
    op = OPS[name]
    x = rows(op)[:, :50]
    terms = paddle.to_tensor(x)
    terms = (op.term(terms) if op.term else terms).numpy()
    found = np.full(7, op.identity).astype(terms.dtype)
    for column in terms.T:
        found = op.combine(np, found, column)
    np.testing.assert_allclose(found, reduce(op, paddle.to_tensor(x)).numpy(), rtol=1e-4)


def kernels_of(step) -> list[str]:
    return [k.name for k in step.executables[0].kernels.of.values() if k is not None]


@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_is_one_kernel_with_what_surrounds_it(name, axis):
    op = OPS[name]

    def surrounded(x):
        x = x if x.dtype == paddle.bool else x * 1.5 + 0.5
        return reduce(op, x, axis).astype("float32") * 2.0

    step = paddle.jit.to_static(surrounded, backend="native")
    x = paddle.to_tensor(rows(op))
    np.testing.assert_allclose(step(x).numpy(), surrounded(x).numpy(), rtol=1e-5)
    assert len(kernels_of(step)) == 1


@pytest.fixture
def sum_of_squares():
    """One definition, as a contributor writes it."""

    @reduction(
        identity=0, combine=lambda m, a, b: a + b, term=square, blocked=True, result=sum_dtype
    )
    def sum_of_squares(m, x, *, axis, keepdim):
        """Sum of the squares over `axis`."""
        return (x * x).sum(axis, keepdims=keepdim)

    @sum_of_squares.vjp
    def _(g, x, axis):
        return spread(g, x.spec, axis) * x * 2.0

    yield sum_of_squares
    del OPS["sum_of_squares"]


@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
def test_a_new_reduction_is_one_definition(sum_of_squares, axis):
    def loss(x):
        return (reduce(sum_of_squares, x * 3.0, axis) * 0.5).sum()

    def plain(x):
        return ((x * 3.0) ** 2).sum() * 0.5

    x = np.random.default_rng(1).standard_normal((7, 3000)).astype("float32")
    expected = 9 * x
    for function in (loss, paddle.jit.to_static(loss, backend="native")):
        given = paddle.to_tensor(x, stop_gradient=False)
        y = function(given)
        assert y.item() == pytest.approx(plain(given).item(), rel=1e-6)
        y.backward()
        np.testing.assert_allclose(given.grad.numpy(), expected, rtol=1e-5)
    step = paddle.jit.to_static(lambda x: reduce(sum_of_squares, x * 3.0, axis), backend="native")
    step(paddle.to_tensor(x))
    assert len(kernels_of(step)) == 1


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
def test_one_that_somebody_adds_is_compiled_and_sharded(axis):
    """From `term`, `combine` and `identity` alone: no table names it."""

    @reduction(identity=0, combine=lambda m, a, b: a + b, term=square)
    def a_reduction(m, x, *, axis, keepdim):
        """The sum of squares."""
        return (x * x).sum(axis, keepdims=keepdim)

    try:
        f = paddle.jit.to_static(
            lambda x: paddle.tanh(a_reduction(paddle.exp(x), axis=axis, keepdim=False)),
            backend="native",
        )
        x = np.random.default_rng(0).standard_normal([5, 40]).astype("float32") - 3
        want = np.tanh((np.exp(x) ** 2).sum(axis))
        np.testing.assert_allclose(f(paddle.to_tensor(x)).numpy(), want, rtol=1e-5)
        executable = Executable(f.main_program)
        assert not executable.source.hosted
        assert len(executable.kernels.of) == 1
        specs = [Spec((5, 40), x.dtype)]
        rule = rule_of(a_reduction, specs, {"axis": axis, "keepdim": False}, [Spec((), x.dtype)])
        assert rule.terms == {"AB"[d]: "sum" for d in axis}
    finally:
        del OPS["a_reduction"]
