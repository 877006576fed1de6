"""A transpiled function on eager tensors does what the function does, in every example."""

import contextlib
import io
from dataclasses import is_dataclass

import pytest

import minipaddle as paddle
from minipaddle.engine.jit.transpile import transpile
from tests.jit.examples import examples, given


def outcome(function, arguments):
    """What a call gives or raises, and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            found = plain(function(*arguments))
        except Exception as error:
            found = type(error) if not isinstance(error, NameError) else NameError
    return found, printed.getvalue()


def plain(x):
    """Tensors as NumPy arrays, with everything around them."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", str(x.dtype), x.shape, x.numpy().tolist())
    if isinstance(x, dict):
        return type(x), {k: plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x), [plain(v) for v in x]
    return vars(x) if is_dataclass(x) else (type(x), x)


def test_there_are_enough():
    assert len(examples()) >= 150


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_same_as_python(example):
    for call in example.calls:
        expected = outcome(example.function, given(call))
        assert outcome(transpile(example.function), given(call)) == expected, call
