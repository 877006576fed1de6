"""A small course of its own in a temporary folder: the tests solve, break and reset it freely."""

import io

import pytest
from rich.console import Console

from minipaddle.learn import command, process
from minipaddle.learn.judge import judge

FILES = {
    "solutions/01_first/double.py": '''"""Twice a number.

Write `double(x)`: 3 becomes 6.
"""


def double(x):
    """Twice x."""
    return _times(x, 2)


def _times(x, n):
    return n * x
''',
    "checks/01_first/double.py": '''"""Checks of double."""

from hypothesis import strategies as st

from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Twice a number",
    level="easy",
    minutes=5,
    slots={},
    hints=("What is 3 + 3?", "Look at the name.", "x + x"),
    wrong={
        "squaring": "_times(x, 2) → x * x",
        "adding two": "_times(x, 2) → x + 2",
        "halving": "_times(x, 2) → x / 2",
        "doing nothing": "_times(x, 2) → x",
        "turning the sign": "_times(x, 2) → -2 * x",
    },
)


@exercise.example
def two(yours):
    """2 becomes 4."""
    expect(yours.double(2), 4, given={"x": 2})


@exercise.property(x=st.integers(-100, 100))
def any_number(yours, x):
    """Every whole number."""
    expect(yours.double(x), x + x)
''',
    "solutions/02_second/slope.py": '''"""The derivative of tanh."""

import minipaddle as paddle


def slope(g, out):
    """The cotangent of the input, given that of the result `out`."""
    return paddle.multiply(g, 1 - out * out)
''',
    "checks/02_second/slope.py": '''"""Checks of slope."""

import numpy as np

import minipaddle as paddle
from minipaddle.learn import Exercise, expect_gradients

exercise = Exercise(
    title="The derivative of tanh",
    level="medium",
    minutes=120,
    before=("01_first/double",),
    slots={"ops.tanh.vjp": "slope"},
    hints=("What is it at 0?", "Look at exp.", "g * (1 - out²)"),
    wrong={"forgetting the square": "1 - out * out → 1 - out"},
)


@exercise.example
def in_the_engine(yours):
    """Central differences agree."""
    with exercise.plugged(yours):
        expect_gradients(lambda x: (paddle.tanh(x) * x).sum(), [np.array([0.5, -1.0])])
''',
}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The folder of the course, which is the reader's workspace too."""
    folder = tmp_path / "exercises"
    for name, text in FILES.items():
        write(folder / name, text)
    monkeypatch.setenv("MINIPADDLE_EXERCISES", str(folder))
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def solved(course):
    """A function that puts a text, or the solution, into the reader's file."""

    def put(name="01_first/double", text=None):
        solution = (course / f"solutions/{name}.py").read_text(encoding="utf-8")
        return write(course / f"{name}.py", solution if text is None else text)

    return put


@pytest.fixture
def at_once(monkeypatch):
    """Judge in this process, which is quicker; `test_process.py` is about the other way."""

    def here(exercise, source, file, seconds, seed):
        return judge(exercise, source, str(file), seed=seed)

    monkeypatch.setattr(process, "run_in_child", here)


@pytest.fixture
def learn(course, at_once):
    """`./run learn` in this process: a function from words to (exit status, what it prints)."""

    def run(*words):
        page = io.StringIO()
        console = Console(file=page, highlight=False, soft_wrap=True, width=100)
        return command.main(list(words), console), page.getvalue()

    return run
