"""Errors name the user's lines, in each stage."""

import re

import pytest

import minipaddle as paddle
from minipaddle.engine.eager.replay import replay
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.jit.transpile import transpile
from minipaddle.engine.jit.user_lines import UserLineError, in_user_lines, report
from minipaddle.jit.dy2static.utils import Dygraph2StaticException


def inner(x):
    for k in range(3):
        if k == 1:
            y = x * k
            raise KeyError("deep", k)
    return y


def outer(x, t):
    # the line above the call
    if t is not None and x is not None:
        return inner(x)
    return x


def wrong_shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y


def failure(function, *args):
    """The error that a transpiled function raises, with its report."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        transpile(function)(*args)
    return in_user_lines(caught.value)


def tracing(function, x):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        trace(lambda x: [transpile(function)(x)], [x.spec])
    return in_user_lines(caught.value)


def test_the_users_frames_and_nothing_else():
    error = failure(outer, 1, 2)
    assert isinstance(error, KeyError)
    assert type(error).__name__ == "KeyError"
    assert error.args == ("deep", 1)
    text = str(error)
    assert text.startswith("In transformed code:\n")
    frames = re.findall(r'File ".*/(\w+)\.py", line \d+, in (\w+)', text)
    assert [name for _, name in frames] == ["failure", "outer", "inner"]
    assert "        return inner(x)\n" in text
    assert re.search(r'\n( +)raise KeyError\("deep", k\)\n\1~{25} <--- HERE\n', text)
    assert re.search(r"\(\d+ frames of minipaddle\)", text)
    assert text.endswith("KeyError: ('deep', 1)")
    assert "runtime" not in text


def test_the_lines_of_a_disagreement():
    error = tracing(wrong_shapes, paddle.ones([2]))
    assert isinstance(error, Dygraph2StaticException)
    text = str(error)
    assert "`y` is not the same kind of value on both sides" in text
    assert re.search(r"if: +float32\[2\].*test_errors.py:\d+, in wrong_shapes", text)
    assert re.search(r"else: float32\[\].*test_errors.py:\d+, in wrong_shapes", text)
    assert "<--- HERE" in text
    assert "if x.sum() > 0:" in text


def test_told_once():
    error = failure(outer, 1, 2)
    assert in_user_lines(error) is error
    assert isinstance(error, UserLineError)
    assert repr(error) == str(error)


def test_the_raw_traceback(monkeypatch):
    monkeypatch.setenv("TRANSLATOR_DISABLE_NEW_ERROR", "1")
    assert not isinstance(failure(outer, 1, 2), UserLineError)


def test_attributes_stay():
    class Custom(ValueError):
        def __init__(self, a, b):
            super().__init__(f"{a}-{b}")
            self.a = a

    new = in_user_lines(Custom(1, 2))
    assert isinstance(new, Custom)
    assert (new.a, new.args) == (1, ("1-2",))
    assert str(new).endswith("Custom: 1-2")


def test_without_source():
    space = {}
    exec("def f():\n    raise ValueError('x')", space)
    try:
        space["f"]()
    except ValueError as error:
        assert "<--- HERE" in report(error)  # noqa: PT017


def test_over_several_lines():
    def f(x):
        return int(
            x
            + "a"
        )  # fmt: skip

    assert "<--- HERE" in str(failure(f, 1))


def test_undefined_says_which_branch():
    def f(x):
        if x.sum() > 0:
            y = x
        return y

    text = str(tracing(f, paddle.ones([2])))
    assert "`y` may be undefined here: the `else` side of a condition on a tensor" in text
    assert re.search(r"only the other side binds it \(.*test_errors.py:\d+, in f\)", text)
    assert "return y\n" in text


def test_the_line_of_an_error_in_a_derivative():
    """It is computed from records, whose lines are known: no frame of the user's is there."""
    program = trace(lambda x: [wrong_if_short(x)], [paddle.ones([4]).spec]).program
    with pytest.raises(ValueError, match="reshape") as caught:
        replay(program, [paddle.ones([3])])
    assert "    return x.reshape([2, 2])\n" in str(in_user_lines(caught.value))


def wrong_if_short(x):
    return x.reshape([2, 2])
