"""Sums of products and sums of sums, taken together."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.batch_weight_gradients import batch_weight_gradients
from tests.passes.programs import body, program_of, same_results


def names(program):
    return [r.op.name for r in program.records]


def recurrent(x, w, b):
    """The gradients of a weight and a bias that are used at each of four steps."""
    for each in (w, b):
        each.stop_gradient = False
    h = paddle.zeros([2, 16])
    for t in range(4):
        h = paddle.tanh(paddle.nn.functional.linear(paddle.concat([x[:, t], h], 1), w, b))
    return paddle.grad([h.sum()], [w, b])


SHAPES = (2, 4, 8), (24, 16), (16,)


def test_a_recurrent_weight_hears_of_all_steps_at_once():
    program = program_of(recurrent, *SHAPES)
    one, many = (
        optimized(program, until="dead_code", enable_addto=on).program for on in (True, False)
    )
    weights = [[r for r in p.records if r.shape == (24, 16)] for p in (one, many)]
    assert [r.op.name for r in weights[0]] == ["product"]
    assert [r.op.name for r in weights[1]].count("product") == 4
    assert [r.op.name for r in one.records].count("sum") < names(many).count("sum")
    same_results(program, one, rtol=1e-5)
    same_results(program, many, rtol=1e-5)


def test_golden():
    def f(x, y, z):
        return paddle.sum(x, axis=0) + paddle.sum(y, axis=0) + paddle.sum(z, axis=0)

    program = program_of(f, (4, 3), (4, 3), (4, 3))
    after = dead_code(batch_weight_gradients(program))
    assert body(after) == (
        "v1 = add(x, y) : float32[4, 3]\n"
        "v2 = add(v1, z) : float32[4, 3]\n"
        "v3 = sum(v2, axis=(0,), keepdim=False) : float32[3]\n"
        "return v3"
    )
    same_results(program, after, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int32"])
def test_what_is_counted_is_not_added_before(dtype):
    """Twice true is two, but true + true is true; sums of int32 are int64."""
    program = program_of(lambda x, y: x.sum() + y.sum(), *[Spec((3,), np.dtype(dtype))] * 2)
    arrays = [np.full(3, 2_000_000_000).astype(dtype)] * 2
    same_results(program, optimized(program).program, arrays)


def products(shape_x, shape_y):
    def f(a, b, c, d):
        return paddle.matmul(a, b) + paddle.matmul(c, d)

    found = optimized(program_of(f, shape_x, shape_y, shape_x, shape_y), until="dead_code")
    return found.program


def test_large_operands_are_not_joined():
    assert names(products((16, 2), (2, 16))).count("product") == 1
    assert names(products((4, 64), (64, 4))).count("product") == 2


OTHERS = {
    "different axes": lambda x: x.sum(axis=0) + x.sum(axis=1),
    "twice the same": lambda x: (lambda s: s + s)(x.sum(axis=0)),
    "used elsewhere": lambda x: (lambda s: s + (x * x).sum(axis=0) + s.exp())(x.sum(axis=0)),
    "no sums": lambda x: x + x.exp() + x,
    "broadcast": lambda x: x.sum(axis=0) + x.sum(axis=0, keepdim=True) + x,
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_stays(name):
    program = program_of(OTHERS[name], (4, 4))
    after = batch_weight_gradients(program)
    assert after is program
    same_results(program, optimized(program).program, rtol=1e-5)


def test_in_a_loop_what_is_used_twice_stays():
    def f(x):
        def body(y):
            s, t = y.sum(axis=0), (y * y).sum(axis=0)
            return [y * 0.25 + (s + t + s.exp()) * 0.001]

        return paddle.static.nn.while_loop(lambda y: y.sum() > 0.1, body, [x])[0]

    program = program_of(f, (3, 3))
    assert batch_weight_gradients(program) is program
    arrays = [np.ones((3, 3), "f4")]
    same_results(program, optimized(program).program, arrays, rtol=1e-4)
