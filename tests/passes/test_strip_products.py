"""The backward of attention in strips: what becomes one group, what does not, and the memory."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.ir.cut import RECOMPUTED
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.strip_products import is_strips, profitable, recompute_from_small
from tests.passes.programs import program_of, same_results

F = paddle.nn.functional
LONG = (1, 600, 2, 8)
"""Texts, tokens, heads, width: with so many tokens the scores are large."""


def gradients(attention):
    """The gradients of a function of queries, keys, values, and of further tensors."""

    def function(q, k, v, *rest):
        for x in (q, k, v):
            x.stop_gradient = False
        y = attention(q, k, v, *rest)
        return [y, *paddle.grad((y * y).sum(), [q, k, v])]

    return function


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def written_out(q, k, v):
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (q, k, v))
    return (F.softmax(q @ k.transpose([0, 1, 3, 2]) * 0.3, -1) @ v).transpose([0, 2, 1, 3])


def without_softmax(q, k, v):
    """Rows are no softmax: the pass knows no names."""
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (q, k, v))
    return paddle.tanh(q @ k.transpose([0, 1, 3, 2])) @ v


def dropped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, None, 0.3)


def masked(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def heads_first(q, k, v):
    return F.softmax(q @ k.transpose([0, 1, 3, 2]), -1) @ v


def one_matrix(q, k, v):
    return F.softmax(q @ k.T, -1) @ v


DOUBLE = Spec(LONG, np.dtype("float64"))
FORMS = {
    "causal": (causal, [LONG] * 3),
    "written out": (written_out, [LONG] * 3),
    "without a softmax": (without_softmax, [LONG] * 3),
    "dropout": (dropped, [LONG] * 3),
    "an added mask": (masked, [*[LONG] * 3, (600, 600)]),
    "a mask of truths": (masked, [*[LONG] * 3, Spec((600, 600), np.dtype("bool"))]),
    "heads first": (heads_first, [(2, 3, 517, 8)] * 3),
    "other texts": (written_out, [(1, 700, 2, 8), (1, 450, 2, 8), (1, 450, 2, 6)]),
    "one matrix": (one_matrix, [(700, 4), (600, 4), (600, 6)]),
    "doubles": (causal, [DOUBLE] * 3),
}


def strips(program) -> int:
    return sum(map(is_strips, program.records))


@pytest.mark.parametrize("form", FORMS)
def test_no_large_matrix_is_stored(form):
    function, specs = FORMS[form]
    program = program_of(gradients(function), *specs)
    done, apart = optimized(program), optimized(program, strip_products=False)
    assert strips(done.program) == 1
    assert strips(apart.program) == 0
    scores = max(r.spec.nbytes for r in program.records if r.op.name == "matmul")
    largest = max(s.spec.nbytes for s in done.program.records if s.dtype is not None)
    assert largest < scores
    assert done.planned().live < apart.planned().live
    same_results(program, done.program, rtol=1e-4, atol=1e-4)


def test_a_network_of_several_layers():
    def three(q, k, v):
        return causal(causal(q, k, v), k, causal(k, q, v))

    program = program_of(gradients(three), *[LONG] * 3)
    done = optimized(program)
    assert strips(done.program) == 3
    assert max(r.spec.size for r in done.program.records if r.dtype is not None) < LONG[1] ** 2
    same_results(program, done.program, rtol=1e-4, atol=1e-4)


def with_weights(q, k, v):
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (q, k, v))
    p = F.softmax(q @ k.transpose([0, 1, 3, 2]), -1)
    return p @ v, p


def weights_are_wanted(q, k, v):
    for x in (q, k, v):
        x.stop_gradient = False
    y, p = with_weights(q, k, v)
    return [p, *paddle.grad((y * y).sum(), [q, k, v])]


def weights_are_summed(q, k, v):
    for x in (q, k, v):
        x.stop_gradient = False
    y, p = with_weights(q, k, v)
    return paddle.grad((y * y).sum() + (p * p * p).sum(), [q, k, v])


@pytest.mark.parametrize("function", [weights_are_wanted, weights_are_summed])
def test_weights_that_are_needed_elsewhere(function):
    program = program_of(function, *[LONG] * 3)
    same_results(program, optimized(program).program, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", [{"fused_attention": False}, {"strip_products": False}])
def test_switches(how):
    program = program_of(gradients(causal), *[LONG] * 3)
    assert strips(optimized(program, **how).program) == 0


def test_short_texts_stay_as_they_are():
    program = program_of(gradients(causal), *[(1, 60, 2, 8)] * 3)
    assert strips(optimized(program).program) == 0
    with plugged("strip_products.profitable", lambda r: r.spec.shape[-2:] == (60, 60)):
        assert strips(optimized(program).program) == 1


def test_residuals_are_small():
    """The forward of a captured layer hands on no matrix of scores."""
    assert recompute_from_small in RECOMPUTED
    forward = paddle.jit.to_static(dropped)
    q = paddle.randn(LONG)
    q.stop_gradient = False
    forward(q, q, q).sum().backward()
    program = forward.concrete_program.program
    assert not [r for r in program.outputs if r.spec.size >= LONG[1] ** 2]
    assert any(map(profitable, program.records))


def test_two_products_before_a_nest_and_one_after_it():
    """Not a chain, which has one of each."""

    def gated(q, k, v):
        return F.softmax((q @ k.T) * F.sigmoid(k @ q.T).T, -1) @ v

    def mixed(q, k, v):
        return F.softmax((q @ k.T) * F.sigmoid(v @ k.T), -1) @ v

    for function in (gated, mixed):
        program = program_of(function, *[(600, 8)] * 3)
        same_results(program, optimized(program).program, rtol=1e-4, atol=1e-4)
    assert strips(optimized(program).program) == 1
