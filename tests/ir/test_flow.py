"""Which inputs of a program gradients reach, known before any is computed."""

import minipaddle as paddle
from minipaddle.engine.eager.control_flow import cond, while_loop
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.flow import find_reached


def traced(function, count: int):
    """The program of a function of `count` vectors that want gradients."""
    x = paddle.ones([3], "float32")
    return trace(marked(function), [x.spec] * count).program


def marked(function):
    def run(*xs):
        for x in xs:
            x.stop_gradient = False
        return function(*xs)

    return run


def chained(a, b, c, d):
    """In an iteration each takes the one before it along; d leads to itself alone."""
    _, a, b, c, d = while_loop(
        lambda k, *_: k < 3,
        lambda k, a, b, c, d: [k + 1, a, a * b, b + c, d * d],
        [paddle.to_tensor(0), a, b, c, d],
    )
    return [a, b, c, d]


def test_around_a_loop():
    program = traced(chained, 4)
    found = [find_reached(program, {k}) for k in range(4)]
    assert found == [{0}, {0, 1}, {0, 1, 2}, {3}]  # a comes to c by b, a round later


def test_either_side_of_a_condition():
    def swapping(a, b, c, d):
        return cond(a.sum() > 0, lambda: [b * 1, c * 1, d * 1], lambda: [c * 1, b * 1, d.detach()])

    program = traced(swapping, 4)
    assert [find_reached(program, {k}) for k in range(3)] == [{1, 2}, {1, 2}, {3}]


def test_a_condition_in_a_loop():
    def inner(k, a, b, c):
        a, b = cond(a.sum() > 0, lambda: [a + 1, b * c], lambda: [a * 2, b])
        return [k + 1, a, b, c]

    def outer(a, b, c):
        return while_loop(lambda k, *_: k < 2, inner, [paddle.to_tensor(0), a, b, c])[1:]

    program = traced(outer, 3)
    assert [find_reached(program, {k}) for k in range(3)] == [{0}, {1, 2}, {2}]


def test_nothing_asked_for():
    assert find_reached(traced(chained, 4), set()) == set()
