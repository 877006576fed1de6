"""What a side that is not taken, or a loop that runs no round, must not do: errors, undefined
names. When it is taken, the program raises what eager mode raises, at the user's line.
"""

import inspect

import pytest

import minipaddle as paddle


def tensors(n):
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    return x, paddle.to_tensor(n)


def line(function, mark: str) -> int:
    """The number of the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, text in enumerate(lines) if mark in text)


def same_as_eager(function, n):
    """Both give the same value, or raise the same error; the program's names the user's line."""
    static = paddle.jit.to_static(function)
    try:
        expected = function(*tensors(n))
    except Exception as error:
        with pytest.raises(type(error)) as found:
            static(*tensors(n))
        said = str(error.args[0]).splitlines()[0]
        assert said in str(found.value)
        mark = f"line {line(function, '# here')}, in "
        assert mark in str(found.value), found.value
        return
    assert static(*tensors(n)).tolist() == expected.tolist()


def raise_in_a_loop(x, n):
    while n > 0:
        x = x * 2
        if x.shape[0] == 3:
            raise ValueError("in the loop")  # here
        n = n - 1
    return x


def assert_in_a_loop(x, n):
    for _ in range(n):
        assert x.shape[0] == 2, "two"  # here
        x = x * 2
    return x


def raise_in_a_later_round(x, n):
    rounds = 0
    while n > 0:
        rounds += 1
        if rounds > 2:
            raise ArithmeticError("three rounds")  # here
        n = n - 1
        x = x + rounds
    return x


def raise_in_the_test(x, n):
    rounds = [1]
    while n > 0 and 1 / rounds[0]:  # here
        rounds[0] = 0
        n = n - 1
    return x


def division_on_one_side(x, n):
    p = 0
    if n > 2:
        p = 1 // p  # here
    return x * p


def index_on_one_side(x, n):
    items = [x]
    return items[3] if n > 2 else x  # here


def key_on_one_side(x, n):
    if n > 2:
        return {"a": x}["b"]  # here
    return x


def name_on_one_side(x, n):
    if n > 2:
        return x * unknown  # noqa: F821  # here
    return x


def types_on_one_side(x, n):
    if n > 2 and 1 + None:  # here
        return x * 2
    return x


def shapes_on_one_side(x, n):
    if n > 2:
        return x + paddle.ones([4])  # here
    return x


def division_in_a_nested_loop(x, n):
    for k in range(n):
        while k > 1:
            k = k - 1 // (x.shape[0] - 3)  # here
    return x


def index_in_a_python_loop_that_a_tensor_ends(x, n):
    items = [x, x * 2]
    for k in range(4):
        if n <= k:
            break
        x = x + items[k]  # here
    return x


FUNCTIONS = [
    raise_in_a_loop, assert_in_a_loop, raise_in_a_later_round, division_on_one_side,
    index_on_one_side, key_on_one_side, name_on_one_side, types_on_one_side, shapes_on_one_side,
    division_in_a_nested_loop, index_in_a_python_loop_that_a_tensor_ends,
]  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_errors_are_raised_where_they_are_reached(function, n):
    same_as_eager(function, n)


def test_what_cannot_be_traced_is_refused_before_anything_runs():
    def value_on_one_side(x, n):
        if n > 2:
            return x * float(x.numpy().sum())  # here
        return x

    with pytest.raises(TypeError, match="has no value yet"):
        paddle.jit.to_static(value_on_one_side)(*tensors(0))


def test_a_try_around_catches_nothing_that_a_program_raises():
    def caught(x, n):
        try:
            while n > 0:
                x = x / (1 // 0)
        except ZeroDivisionError:
            x = x * 2
        return x

    with pytest.raises(Exception, match="nothing can catch it"):
        paddle.jit.to_static(caught)(*tensors(0))


def test_sizes_that_only_a_run_knows_decide_no_error():
    def different(x, y, n):
        return x + y if n > 2 else x

    spec = [paddle.static.InputSpec([None], name=name) for name in "xy"]
    static = paddle.jit.to_static(
        different, input_spec=[*spec, paddle.static.InputSpec([], "int64")]
    )
    x = paddle.ones([3])
    assert static(x, x, paddle.to_tensor(3)).tolist() == [2.0, 2.0, 2.0]


def test_where_wants_a_tensor():
    with pytest.raises(TypeError, match="where was given the condition True"):
        paddle.where(True, paddle.ones([1]), paddle.ones([1]))
