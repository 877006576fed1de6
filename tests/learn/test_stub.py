"""What is cut from a solution, and what counts as begun."""

from minipaddle.learn.stub import list_unwritten, stub_of, task_of

SOLUTION = '''"""The task."""

import numpy as np

RATE = 0.1
_SECRET = 3


@staticmethod
def first(x, *, y=2):
    """Doc."""
    # a comment that tells
    return x + _SECRET


class Rule:
    """A rule."""

    scale = 2

    def __init__(self, x):
        self.x = x

    def step(self):
        return self.x

    def _hidden(self):
        return 1


def _helper():
    return 4
'''


def test_bodies_and_helpers_go_everything_else_stays():
    assert (
        stub_of(SOLUTION)
        == '''"""The task."""

import numpy as np

RATE = 0.1


@staticmethod
def first(x, *, y=2):
    """Doc."""
    raise NotImplementedError


class Rule:
    """A rule."""

    scale = 2

    def __init__(self, x):
        raise NotImplementedError

    def step(self):
        raise NotImplementedError
'''
    )


def test_a_stub_is_its_own_stub():
    stub = stub_of(SOLUTION)
    assert stub_of(stub) == stub


def test_the_task_is_the_docstring_as_it_stands():
    assert task_of(SOLUTION) == '"""The task."""\n\n'
    assert task_of('import numpy\n\n"""No task."""\n') == ""


def test_nothing_is_written_in_a_stub_or_an_empty_file():
    everything = ["first", "__init__", "step"]
    assert list_unwritten(stub_of(SOLUTION), SOLUTION) == everything
    assert list_unwritten("", SOLUTION) == everything
    assert list_unwritten(SOLUTION, SOLUTION) == []


def test_what_is_begun_is_told_from_what_is_not():
    begun = stub_of(SOLUTION).replace("raise NotImplementedError", "return 1", 1)
    assert list_unwritten(begun, SOLUTION) == ["__init__", "step"]
