"""Every example, traced into a program with its tensors as inputs, gives the eager result."""

import contextlib
import io
import re

import pytest

import minipaddle as paddle
from minipaddle.engine.eager.tensor import wrap
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.jit.transpile import transpile
from minipaddle.engine.jit.tree import flatten, unflatten
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from tests.jit.examples import examples, given

NUMBERS = (bool, int, float)


def traced(function, arguments):
    """The results of a function's program, run with the tensors among the arguments."""
    leaves, structure = flatten(list(arguments))
    tensors = [x for x in leaves if isinstance(x, paddle.Tensor)]
    outs = {}

    def program(*inputs):
        waiting, fresh = iter(inputs), []
        for x in leaves:
            if isinstance(x, paddle.Tensor):
                wanted, x = x.stop_gradient, next(waiting)
                x.stop_gradient = wanted
            fresh.append(x)
        outs["leaves"], outs["structure"] = flatten(
            transpile(function)(*unflatten(structure, fresh))
        )
        return outs["leaves"]

    found = trace(program, [x.spec for x in tensors])
    states = [state.storage.read() for state in found.program.states]
    values, _ = ExecutableCache().run(found.program, [*(x.array for x in tensors), *states])
    results = [leaf if place is None else wrap(values[place])
               for leaf, place in zip(outs["leaves"], found.places, strict=True)]  # fmt: skip
    return unflatten(outs["structure"], results)


def same(eager, static, path="result"):
    """An eager number may be a 0-D tensor of the program."""
    if isinstance(static, paddle.Tensor):
        if isinstance(eager, NUMBERS):
            assert static.spec.size == 1, path
            assert static.item() == pytest.approx(eager, rel=1e-5), path
            return
        assert isinstance(eager, paddle.Tensor), (path, eager, static)
        assert eager.shape == static.shape, path
        assert static.astype("float64").numpy() == pytest.approx(
            eager.astype("float64").numpy(), rel=1e-5
        ), path
    elif isinstance(eager, dict):
        assert eager.keys() == static.keys(), path
        for k in eager:
            same(eager[k], static[k], f"{path}[{k!r}]")
    elif isinstance(eager, list | tuple):
        assert len(eager) == len(static), path
        for k, (a, b) in enumerate(zip(eager, static)):
            same(a, b, f"{path}[{k}]")
    else:
        assert eager == static, path


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_same_as_eager(example):
    for call in example.calls:
        if example.refused:
            check_refused(example, call)
        else:
            check_same(example, call)


def check_refused(example, call):
    with pytest.raises(Dygraph2StaticException) as caught:
        traced(example.function, given(call))
    assert re.search(example.refused, str(caught.value), re.DOTALL), (call, str(caught.value))


def check_same(example, call):
    """The results are the same, and so are the lines printed, in any order."""
    printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed[0]):
        eager = example.function(*given(call))
    with contextlib.redirect_stdout(printed[1]):
        static = traced(example.function, given(call))
    same(eager, static, f"{call}: result")
    texts = [sorted(text.getvalue().splitlines()) for text in printed]
    assert texts[0] == texts[1], (call, "a program prints when it runs")
