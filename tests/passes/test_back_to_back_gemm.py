"""Chains of products: what becomes one group, what does not, and that the results are the same."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.back_to_back_gemm import is_chain
from tests.passes.programs import program_of, same_results

F = paddle.nn.functional
HEADS = (2, 3, 20, 16)


def attention(q, k, v):
    return F.softmax(q @ k.transpose([0, 1, 3, 2]) * 0.25, -1) @ v


def feedforward(x, w1, w2):
    return x + F.gelu(x @ w1 + 1.0) @ w2


def spread(q, k, v):  # a matrix of each head for every text
    return F.softmax(q @ k.transpose([0, 1, 3, 2]), -1) @ v[:1]


FORMS = {
    "attention": (attention, [HEADS] * 3),
    "tokens before heads": (
        lambda *qkv: attention(*(x.transpose([0, 2, 1, 3]) for x in qkv)).transpose([0, 2, 1, 3]),
        [(2, 20, 3, 16)] * 3,
    ),
    "other texts": (attention, [(1, 3, 24, 8), (1, 3, 11, 8), (1, 3, 11, 5)]),
    "heads that share values": (spread, [HEADS] * 3),
    "one matrix": (lambda q, k, v: F.softmax(q @ k.T) @ v, [(9, 4), (30, 4), (30, 6)]),
    "two layers": (feedforward, [(40, 8), (8, 24), (24, 8)]),
    "two layers of texts": (feedforward, [(2, 5, 8), (8, 24), (24, 8)]),
    "norms": (
        lambda x, w1, w2: F.layer_norm(x + F.layer_norm(x @ w1, 24) @ w2, 8),
        [(40, 8), (8, 24), (24, 8)],
    ),
    "causal": (
        lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True),
        [(1, 150, 2, 8)] * 3,
    ),
    "doubles": (attention, [Spec(HEADS, np.dtype("float64"))] * 3),
}


def chains(program) -> int:
    return sum(map(is_chain, program.records))


@pytest.mark.parametrize("form", FORMS)
def test_the_matrix_between_is_gone(form):
    function, specs = FORMS[form]
    program = program_of(function, *specs)
    done, apart = optimized(program), optimized(program, back_to_back_gemm=False)
    assert chains(done.program) == 1
    assert chains(apart.program) == 0
    assert done.planned().live < apart.planned().live
    same_results(program, done.program, rtol=1e-5, atol=1e-5)


def used_again(q, k, v):
    p = F.softmax(q @ k.transpose([0, 1, 3, 2]), -1)
    return p @ v, p


def learned(q, k, v):
    for x in (q, k, v):
        x.stop_gradient = False
    return paddle.grad(attention(q, k, v).sum(), [q, k, v])


APART = {
    "the matrix is a result": (used_again, [HEADS] * 3),
    "the backward reads it": (learned, [HEADS] * 3),
    "it stands on the right": (lambda x, y, z: z @ F.relu(x @ y), [(8, 8)] * 3),
    "it is turned": (lambda x, y, z: F.relu(x @ y).T @ z, [(8, 8)] * 3),
    "both sides": (lambda x, y, z: (lambda h: h @ h)(F.relu(x @ y)), [(8, 8)] * 3),
    "a matrix for many": (
        lambda x, y, z: F.relu(x @ y).reshape([1, 16, 8]) @ z,
        [(16, 8), (8, 8), (3, 8, 8)],
    ),
    "few rows": (lambda x, y, z: F.relu(x @ y) @ z, [(4, 8), (8, 8), (8, 8)]),
    "long rows": (lambda x, y, z: F.relu(x @ y) @ z, [(8, 1), (1, 8200), (8200, 2)]),
    "OpenBLAS": (lambda x, y, z: F.relu(x @ y) @ z, [(8, 1024), (1024, 1024), (1024, 2)]),
}


@pytest.mark.parametrize("form", APART)
def test_what_is_no_chain(form):
    function, specs = APART[form]
    program = program_of(function, *specs)
    assert chains(optimized(program).program) == 0


def test_a_third_product_is_not_chained():
    program = program_of(lambda x, *ws: F.relu(F.relu(x @ ws[0]) @ ws[1]) @ ws[2], *[(16, 16)] * 4)
    done = optimized(program)
    assert chains(done.program) == 1
    same_results(program, done.program, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("toggle", "form"), [("fused_attention", "attention"), ("fused_feedforward", "two layers")]
)
def test_toggles(toggle, form):
    program = program_of(FORMS[form][0], *FORMS[form][1])
    strategy = paddle.static.BuildStrategy()
    for name in ("fused_attention", "fused_feedforward"):
        setattr(strategy, name, name == toggle)
    assert chains(optimized(program, strategy).program) == 1
    setattr(strategy, toggle, False)
    assert chains(optimized(program, strategy).program) == 0


def test_what_pays_is_a_choice():
    program = program_of(*[attention, *[HEADS] * 3])
    with plugged("back_to_back_gemm.profitable", lambda first, second: False):
        assert chains(optimized(program).program) == 0


def test_only_kernels_of_ours_are_chained():
    """Where cuBLAS computes products there are no epilogues, and so no chains."""
    program = program_of(attention, *[HEADS] * 3)
    assert chains(optimized(program, epilogue=False).program) == 0
