"""Checks of 09_to_static/user_lines."""

import re
import traceback
from types import CodeType

from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.jit.transpile import transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The location map: from an error in converted code to your lines",
    level="medium",
    minutes=40,
    before=("07_rewriting",),
    slots={
        "jit.place": "place",
        "jit.block_of": "block_of",
        "jit.user_lines": "user_lines",
    },
    hints=(
        "Follow one error: an `if` whose side fails. Which frames are there, from the outside in? "
        "Which of them would you have seen without conversion?",
        "Chapter 9, “Errors that point at your line”, draws the frames; `user_lines` and its two "
        "helpers stand in minipaddle/engine/jit/user_lines.py.",
        "for each traceback of the chain:\n"
        "    the package's, or of no file: count it, and note that the next comes directly after\n"
        "    else: if directly after, and a block of the last line's code: drop that line\n"
        "          append Line(code, *place(code, tb_lasti)); no longer directly after",
    ),
    wrong={
        "pointing at the function's first line": (
            "(line, None, None) → (code.co_firstlineno, None, None)",
            "(line, start, end) → (code.co_firstlineno, start, end)",
        ),
        "taking an offset in bytes for a number of an instruction": "offset // 2 → offset",
        "pointing at the end of a long expression": "(line, None, None) → (last, None, None)",
        "columns of an expression that goes on to another line": "if last != line: → pass",
        "looking for blocks one level down only": "x == inner or block_of(x, inner) → x == inner",
        "asking where a frame is now": "traceback.tb_lasti → traceback.tb_frame.f_lasti",
        "showing the frames of the package": (
            "inside(traceback.tb_frame) or code.co_filename == '<string>' → code.co_filename "
            "== '<string>'"
        ),
        "showing code that has no file": (
            "inside(traceback.tb_frame) or code.co_filename == '<string>' → "
            "inside(traceback.tb_frame)"
        ),
        "showing the head of the if beside the line in it": "lines.pop() → pass",
        "dropping the line that called a function of your own": (
            "lines and directly_after and block_of(lines[-1].code, code) → lines and "
            "block_of(lines[-1].code, code)"
        ),
        "dropping every line before a frame of the package": (
            "lines and directly_after and block_of(lines[-1].code, code) → lines and "
            "directly_after"
        ),
        "innermost first": "(lines, left_out) → (lines[::-1], left_out)",
        "only the line that failed": "(lines, left_out) → (lines[-1:], left_out)",
    },
    unkillable={
        "lines, left_out, directly_after = ([], 0, False) → "
        "lines, left_out, directly_after = ([], 0, True)": "before the first line nothing follows",
    },
)  # fmt: skip


# ---- functions that fail -------------------------------------------------------------------------


def in_a_side(x):
    y = x
    if x > 0:
        y = x * {}
    else:
        if x < -5:
            y = x / "two"
        y = y - "one"
    return y


def in_a_loop(x):
    for k in range(3):
        while x < 100:
            x = x + 50
            if x > 60:
                x.no_such_thing + k
    return x


def calls(x):
    y = x + 1
    if y is not None:
        return [in_a_side(y) for _ in range(2)]
    return None


def own_function_inside(x):
    def inner(y):
        if y is not None:
            return {}["missing"]
        return y

    if x is not None:
        x = inner(x)
    return x


def again(n):
    if n > -100:
        if n < 1:
            raise KeyError(n)
        return again(n - 1) + again(n - 2)
    return n.a


made: dict = {}
exec("def of_a_text(f, x):\n    return f(x) + {}", made)


def without_a_file(x):
    def inside(y):
        if y is not None:
            return y * {}
        return y

    if x is not None:
        return made["of_a_text"](inside, x)
    return x


class Layer(nn.Layer):
    def forward(self, x):
        if x is not None:
            for _ in range(2):
                x = self.inner(x)
        return x

    def inner(self, x):
        if x is not None:
            x = self.nothing_there(x)
        return x


def through_a_layer(x):
    y = Layer()(x)
    return y


def through_sorted(x):
    return sorted([2, 1], key=lambda k: k.nothing if x is not None else k)


FUNCTIONS = (in_a_side, in_a_loop, calls, own_function_inside, again, without_a_file,
             through_a_layer, through_sorted)  # fmt: skip


def failing(function, *args):
    """The error a call raises."""
    try:
        function(*args)
    except Exception as error:
        return error
    raise AssertionError(f"{function} raised nothing")


def in_this_file(error, ours=True) -> list:
    """What Python's own traceback says of the frames in this file."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.lineno) for f in frames if f.filename == __file__]


# ---- checks --------------------------------------------------------------------------------------


def spread(x):
    y = x + 1
    z = (x *
         y)  # fmt: skip
    return abs(y - z)


@exercise.example
def places(yours):
    """Every instruction of a function of four lines; a product goes over two of them."""
    code, first = spread.__code__, spread.__code__.co_firstlineno
    found = [yours.place(code, 2 * k) for k in range(len(code.co_code) // 2)]
    for k, (line, last, start, end) in enumerate(code.co_positions()):
        expected = (line, start, end) if line == last else (line, None, None)
        expect(found[k], expected, given={"offset": 2 * k, "first line": first})
    expect_that((first + 2, None, None) in found, "a place on two lines", got=found)


@exercise.example
def blocks(yours):
    """A function in a function in a function."""

    def outer():
        def middle():
            def inner():
                return 1

            return inner, 2.5

        return middle, lambda: 3

    code = outer.__code__
    middle, other = (c for c in code.co_consts if isinstance(c, CodeType))
    inner = next(c for c in middle.co_consts if isinstance(c, CodeType))
    names = {"outer": code, "middle": middle, "inner": inner, "lambda": other}
    inside = {("outer", "middle"), ("outer", "inner"), ("outer", "lambda"), ("middle", "inner")}
    for a, one in names.items():
        for b, two in names.items():
            given = {"outer": a, "inner": b}
            expect(yours.block_of(one, two), (a, b) in inside, given=given)


@exercise.property(function=st.sampled_from(FUNCTIONS), x=st.sampled_from([1, -2, -7]), examples=24)
def as_without_conversion(yours, function, x):
    """The lines of converted code are those that Python's traceback shows for your function."""
    expected = in_this_file(failing(function, x))
    error = failing(transpile(function), x)
    lines, left_out = yours.user_lines(error.__traceback__)
    given = {"function": function.__name__, "x": x}
    expect([(line.code.co_name, line.line) for line in lines], expected, given=given)
    everything = traceback.extract_tb(error.__traceback__)
    ours = [f for f in everything if f.filename == __file__]
    expect(left_out, len(everything) - len(ours), given=given | {"asked": "frames left out"})
    text = lines[-1].text
    expect_that(lines[-1].start is None or 0 <= lines[-1].start < len(text), "a column",
                given=given, got=lines[-1].start)  # fmt: skip


@exercise.example
def nothing_happened(yours):
    """No traceback: no lines."""
    expect(yours.user_lines(None), ([], 0), given="None")


def report_lines(error) -> tuple:
    """The lines that a report names, and the line it marks with what is underlined."""
    report = "\n".join(error.__notes__)
    text = report.splitlines()
    lines = [int(n) for n in re.findall(r'File ".*user_lines.*", line (\d+)', report)]
    mark = next(k for k, line in enumerate(text) if "<--- HERE" in line)
    begin, end = text[mark].index("~"), text[mark].rindex("~") + 1
    return lines, text[mark - 1][begin:end]


def mixed(x, w):
    y = x * 2
    if x.sum() > 0:
        for _ in range(2):
            y = y + (x @ w).tanh()
    else:
        y = y - 1
    return y


@exercise.example
def while_tracing(yours):
    """The report of to_static names this line, and underlines the product."""
    with exercise.plugged(yours):
        error = failing(paddle.jit.to_static(mixed), paddle.ones([2, 3]), paddle.ones([4, 3]))
    first = mixed.__code__.co_firstlineno
    lines, marked = report_lines(error)
    expect(lines[-1], first + 4, given="mixed(float32[2, 3], float32[4, 3])")
    expect(lines.count(first + 2), 0, given="the head of the if, whose side failed")
    expect(marked, "x @ w", given="mixed(float32[2, 3], float32[4, 3])")


def checked(x):
    y = x + 1
    if x.sum() > 0:
        assert y.max() < 3, "too large"
    return y


@exercise.example
def while_running(yours):
    """An assert in a side fails in the second run of the program, long after the trace."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(checked)
        static(paddle.ones([2]))
        error = failing(static, paddle.ones([2]) * 5)
    lines, marked = report_lines(error)
    expect(lines[-1], checked.__code__.co_firstlineno + 3, given="checked([5, 5])")
    expect_that("y.max() < 3" in marked, "the assert underlined", got=marked)


class Broken(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(6, 2)

    def forward(self, x):
        h = self.first(x).tanh()
        if h.mean() > -2:
            h = self.second(h)
        return h


@exercise.example
def a_network(yours):
    """A layer that expects 6 numbers and is given 8, in a side of an if."""
    with exercise.plugged(yours):
        error = failing(paddle.jit.to_static(Broken()), paddle.ones([3, 4]))
    lines, marked = report_lines(error)
    first = Broken.forward.__code__.co_firstlineno
    expect(lines[-1], first + 3, given="Broken()(float32[3, 4])")
    expect(marked, "self.second(h)", given="Broken()(float32[3, 4])")
