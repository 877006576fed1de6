"""Operands that several products read across their rows, turned once."""

import pytest

import minipaddle as paddle
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.pretranspose import pretranspose
from tests.passes.programs import body, program_of, same_results


def ops(program):
    return [r.op.name for r in program.records]


def unrolled(x, w):
    for _ in range(3):
        x = paddle.tanh(paddle.matmul(x, w, transpose_y=True))
    return x


def products(program):
    """As they come to the pass."""
    return optimized(program, until="recompute").program


def test_golden():
    def f(x, y, z):
        return paddle.matmul(x, z, transpose_y=True), paddle.matmul(y, z, transpose_y=True)

    program = products(program_of(f, (4, 6), (2, 6), (5, 6)))
    after = pretranspose(program)
    assert body(after) == (
        "v1 = transpose(z, perm=(1, 0,)) : float32[6, 5]\n"
        "v2 = product(x, v1, x_perm=(0, 1,), y_perm=(0, 1,), out_perm=(0, 1,)) : float32[4, 5]\n"
        "v3 = product(y, v1, x_perm=(0, 1,), y_perm=(0, 1,), out_perm=(0, 1,)) : float32[2, 5]\n"
        "return v2, v3"
    )
    same_results(program, after, rtol=1e-6)


@pytest.mark.parametrize("turned", [False, True])
def test_of_a_result_that_is_turned_the_other_operand_is(turned):
    def f(x, y, z):
        x = x.T if turned else x
        return paddle.matmul(x, y).T + 1, paddle.matmul(x, z).T + 1

    program = products(program_of(f, (6, 5) if turned else (5, 6), (6, 4), (6, 2)))
    assert all(r.attrs["out_perm"] == (1, 0) for r in program.records if r.op.name == "product")
    after = pretranspose(program)
    if turned:  # the columns of the result are x's, and neighbours there
        assert after is program
        return
    assert ops(after)[0] == "transpose"
    assert all(r.attrs["x_perm"] == (1, 0) for r in after.records if r.op.name == "product")
    same_results(program, after, rtol=1e-6)


@pytest.mark.parametrize("on", [True, False])
def test_a_weight_in_an_unrolled_loop(on):
    program = program_of(unrolled, (4, 6), (6, 6))
    after = optimized(program, until="pretranspose", pretranspose=on).program
    assert ops(after).count("transpose") == on
    same_results(program, after, rtol=1e-5)


def test_a_batch_of_matrices_keeps_its_axes():
    def f(x, y, w):
        return paddle.matmul(x, w, transpose_y=True), paddle.matmul(y, w, transpose_y=True)

    program = program_of(f, (3, 4, 6), (3, 2, 6), (3, 5, 6))
    after = optimized(program, until="pretranspose").program
    (turned,) = (r for r in after.records if r.op.name == "transpose")
    assert turned.shape == (3, 6, 5)
    same_results(program, after, rtol=1e-5)


def test_one_use_is_left_to_the_kernel():
    program = program_of(lambda x, w: paddle.matmul(x, w, transpose_y=True), (4, 6), (5, 6))
    before = products(program)
    assert pretranspose(before) is before
