"""Errors name the user's lines, in each stage."""

import re

import pytest

import minipaddle as paddle
from minipaddle.engine.eager.replay import replay
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.jit.transpile import transpile
from minipaddle.engine.jit.user_lines import in_user_lines, report
from minipaddle.jit import to_static
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from tests.jit.examples import told


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
    return y.shape


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
    assert error.args == ("deep", 1)
    assert type(error) is KeyError
    text = "\n".join(error.__notes__)
    assert text.startswith("In transformed code:\n")
    frames = re.findall(r'File ".*/(\w+)\.py", line \d+, in (\w+)', text)
    assert [name for _, name in frames] == ["failure", "outer", "inner"]
    assert "        return inner(x)\n" in text
    assert re.search(r'\n( +)raise KeyError\("deep", k\)\n\1~{25} <--- HERE\n', text)
    assert re.search(r"\(\d+ frames of minipaddle\)", text)
    assert str(error) == "('deep', 1)"
    assert "runtime" not in text


def test_the_lines_of_a_disagreement():
    error = tracing(wrong_shapes, paddle.ones([2]))
    assert isinstance(error, Dygraph2StaticException)
    text = told(error)
    assert "`y` is not the same kind of value on both sides" in text
    assert re.search(r"if: +float32\[2\].*test_errors.py:\d+, in wrong_shapes", text)
    assert re.search(r"else: float32\[\].*test_errors.py:\d+, in wrong_shapes", text)
    assert "<--- HERE" in text
    assert "return y.shape" in text


def test_told_once():
    error = failure(outer, 1, 2)
    assert in_user_lines(error) is error
    assert told(error).count("In transformed code:") == 1


def test_the_raw_traceback(monkeypatch):
    monkeypatch.setenv("TRANSLATOR_DISABLE_NEW_ERROR", "1")
    error = failure(outer, 1, 2)
    assert told(error) == str(error)


class Custom(ValueError):
    """An error whose text is not what it was given, with attributes."""

    def __init__(self, a, b, *, more=1):
        super().__init__(f"{a}-{b}")
        self.a, self.more = a, more


class Pair(Exception):
    def __init__(self, a, b, more):
        super().__init__(a, b)
        self.more = more


RAISED = [
    lambda: ValueError(),
    lambda: KeyError("a", 3),
    lambda: Custom(1, 2, more=[3]),
    lambda: Pair(1, [2], more="x"),
    lambda: OSError(2, "no such", "file"),
    lambda: UnicodeDecodeError("utf8", b"a", 0, 1, "why"),
    lambda: StopIteration(4),
    lambda: ExceptionGroup("several", [ValueError(1)]),
]


def raises(x, make):
    if x.shape[0] == 2:
        raise make() from KeyError("cause")
    return x


def raises_in_a_branch(x, make):
    if x.sum() > 0:
        raise make()
    return x


def raises_in_a_loop(x, make):
    while x.sum() > 0:
        raise make()
    return x


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("make", RAISED)
@pytest.mark.parametrize("function", [raises, raises_in_a_branch, raises_in_a_loop])
def test_errors_are_those_of_eager_mode(function, make, backend):
    """Type, arguments, attributes, text and cause: while it is traced, and in later runs."""
    x, static = paddle.ones([2]), paddle.jit.to_static(function, backend=backend)
    if function is not raises and isinstance(make(), ExceptionGroup | UnicodeDecodeError):
        return  # what a program raises has arguments of plain values
    with pytest.raises(type(make())) as eager:
        function(x, make)
    for _ in range(3):
        with pytest.raises(type(make())) as found:
            static(x, make)
        a, b = eager.value, found.value
        assert (type(a), repr(a.args), vars(a), str(a)) == (type(b), repr(b.args), own(b), str(b))
        assert getattr(a, "filename", None) == getattr(b, "filename", None)
        assert repr(a.__cause__) == repr(b.__cause__)
        assert "In transformed code:" in told(b)


def own(error):
    """The attributes of an error, without the record that raised it and its notes."""
    return {k: v for k, v in vars(error).items() if k not in ("record", "__notes__")}


def test_open_sizes_are_a_note():
    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 2])])
    def f(x):
        raise Custom(1, x.shape[1])

    with pytest.raises(Custom, match=r"where: batch = 3") as found:
        f(paddle.ones([3, 2]))
    assert found.value.args == ("1-2",)


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

    assert "<--- HERE" in told(failure(f, 1))


def test_undefined_says_which_branch():
    def f(x):
        if x.sum() > 0:
            y = x
        return y

    text = told(tracing(f, paddle.ones([2])))
    assert "`y` may be undefined here: the `else` side of a condition on a tensor" in text
    assert re.search(r"only the other side binds it \(.*test_errors.py:\d+, in f\)", text)
    assert "return y\n" in text


class Reader(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed = paddle.nn.Embedding(8, 4)

    def forward(self, x):
        return self.embed(x)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_the_layers_of_a_record_that_fails_in_a_program(backend):
    net = paddle.nn.Sequential(paddle.nn.Sequential(Reader()))

    @to_static(backend=backend)
    def read(x):
        return net(x).sum()

    read(paddle.to_tensor([1, 2]))
    with pytest.raises(IndexError, match="9 is no number from 0 to 7") as caught:
        read(paddle.to_tensor([1, 9]))
    called = told(caught.value).partition("in Sequential.0.0.embed, called at")[2]
    first = [f.__code__.co_firstlineno for f in (read.dygraph_function, Reader.forward)]
    assert re.findall(r"test_errors\.py:(\d+), in", called) == [
        f"{first[0] + 2}",
        f"{first[1] + 1}",
    ]


def test_the_line_of_an_error_in_a_derivative():
    """It is computed from records, whose lines are known: no frame of the user's is there."""
    program = trace(lambda x: [wrong_if_short(x)], [paddle.ones([4]).spec]).program
    with pytest.raises(ValueError, match="reshape") as caught:
        replay(program, [paddle.ones([3])])
    assert "    return x.reshape([2, 2])\n" in told(in_user_lines(caught.value))


def wrong_if_short(x):
    return x.reshape([2, 2])


def test_a_library_between_the_users_line_and_an_operator_is_no_line_of_the_user():
    @paddle.jit.to_static
    def f(x):
        return paddle.no_grad()(paddle.tanh)(x)

    f(paddle.ones([2]))
    wheres = [record.where for record in f.concrete_program.program.records]
    assert [code.co_filename for code, _ in wheres] == [__file__]


class Speechless:
    """Its repr fails; `how` says by what."""

    def __init__(self, x, how="raises"):
        self.x, self.how = x, how

    def __repr__(self):
        if self.how == "raises":
            raise RuntimeError("no text")
        return f"{float((self.x * 2).sum()):.3f} {self.x.numpy()}"

    __str__ = __repr__


class SpeechlessError(ValueError):
    __str__ = Speechless.__repr__
    how = "raises"


def as_a_leaf(x, how):
    return Speechless(x, how) if x.sum() > 0 else Speechless(x * 2, how)


def in_a_list(x, how):
    return [Speechless(x, how)] if x.sum() > 0 else x


def as_a_key(x, how):
    key = Speechless(x, how)
    return {key: x} if x.sum() > 0 else {key: [x]}


def in_a_loop(x, how):
    y = Speechless(x, how)
    while x.sum() < 9:
        x = x + 1
        y = Speechless(x, how)
    return y


@pytest.mark.parametrize("how", ["raises", "computes"])
@pytest.mark.parametrize("function", [as_a_leaf, in_a_list, as_a_key, in_a_loop])
def test_a_repr_of_the_users_hides_no_refusal(function, how):
    with pytest.raises(Dygraph2StaticException, match="is not the same kind of value"):
        to_static(function)(paddle.ones([2]), how)


def test_a_repr_of_the_users_hides_no_other_error():
    argument = Speechless(None)
    static = to_static(lambda x, y: x)
    for y in argument, Speechless(None):
        static(paddle.ones([2]), y)
    assert "y is a value of the type Speechless" in static.explain()
    with pytest.raises(TypeError, match="to_static was given a value of the type Speechless"):
        to_static(argument)

    def raises(x):
        if x.sum() > 0:
            raise SpeechlessError(1)
        return x

    with pytest.raises(ValueError):  # noqa: PT011  (it has no text)
        to_static(raises)(paddle.ones([2]))
