"""Gradients of slices are joined where they lie side by side."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.concat_of_slices import concat_of_slices
from tests.passes.programs import body, program_of, same_results


def gradient(f):
    def whole(x):
        x.stop_gradient = False
        return paddle.grad([f(x)], [x])[0]

    return whole


def halves(x):
    return (x[:2].exp() * x[2:]).sum()


def thirds(x):
    """Query, key and value, taken out of one product."""
    x = x.reshape([4, 3, 2])
    return (x[:, 0] * x[:, 1].exp() * x[:, 2]).sum()


def with_gaps(x):
    return (x[:, 1:2].exp() * x[:, 3:5]).sum()


JOINED = {"halves": halves, "thirds": thirds, "gaps": with_gaps,
          "from the end": lambda x: (x[:, -1].exp() * x[:, -3]).sum()}  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_joined(name):
    program = program_of(gradient(JOINED[name]), (4, 6))
    after = dead_code(concat_of_slices(program))
    ops = [r.op.name for r in after.records]
    assert "unslice" not in ops
    assert ops.count("concat") == 1
    same_results(program, after, rtol=0, atol=0)


OVERLAPPING = {
    "overlap": lambda x: (x[:3].exp() * x[1:]).sum(),
    "two axes": lambda x: x[:2].exp().sum() * x[:, 3:].sum(),
    "steps": lambda x: (x[::2].exp() * x[1::2]).sum(),
    "with another gradient": lambda x: (x[:2].exp() * x[2:]).sum() + (x * x).sum(),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_what_is_left_alone(name):
    program = program_of(gradient(OVERLAPPING[name]), (4, 6))
    assert "concat" not in [r.op.name for r in concat_of_slices(program).records]
    same_results(program, optimized(program).program)


def test_golden():
    program = program_of(gradient(halves), (4, 6))
    assert body(dead_code(concat_of_slices(program))).splitlines()[-2:] == [
        "v11 = concat(v9, v10, axis=0) : float32[4, 6]",
        "return v11",
    ]


def test_a_sum_that_is_used_in_between_stays():
    def f(x):
        x.stop_gradient = False
        (g,) = paddle.grad([halves(x)], [x])
        return g, g + np.float32(1)

    same_results(program_of(f, (4, 6)), concat_of_slices(program_of(f, (4, 6))))
