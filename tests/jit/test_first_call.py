"""What the first call of a function costs: the path of one `relu` through eager mode to C."""

import gc
import sys

import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from tests.benchmarks.depth import deep_step
from tests.jit.first_calls import printed_by

pytestmark = pytest.mark.sweep

RELU = """
def f(x):
    return paddle.nn.functional.relu(x)

static, x = paddle.jit.to_static(f, backend="native"), paddle.to_tensor([1.0, -1.0])
f(x)
for _ in range(4):
    print(*counted(lambda: static(x)))
"""

INT8 = """
from minipaddle.nn import Linear
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver

net = paddle.nn.Sequential(Linear(16, 32), Linear(32, 32), Linear(32, 8)).eval()
ptq, x = PTQ(QuantConfig(AbsmaxObserver(), AbsmaxObserver())), paddle.ones([4, 16])
observed = ptq.quantize(net)
with paddle.no_grad():
    observed(x)
    run = paddle.jit.to_static(ptq.convert(observed).forward, backend="native")
    print(*counted(lambda: run(x)))
"""


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_calls_inside_the_package(tmp_path):
    """(The first call took 5,600 calls in 101 files when reductions that nobody uses were written
    as C, and every object was compared piece by piece.)
    """
    first, files, *_, later, _ = printed_by(RELU, tmp_path)
    assert first < 1_340
    assert files <= 63  # 44 of the engine
    assert later == 0


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_calls_of_a_network_on_whole_numbers(tmp_path):
    """(Three layers took 30,200 calls when each node of a file, each record of a program and each
    place of an index was asked by a call of its own.)
    """
    calls, _ = printed_by(INT8, tmp_path)
    assert calls < 16_600


def python_calls(function) -> int:
    """How many functions in Python a call runs."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    function()
    sys.setprofile(None)
    return calls


def test_what_a_layer_costs_does_not_depend_on_the_depth():
    """Of tracing, passes and code generation. (Later calls: `test_bound.py`.)"""
    traced, compiled = [], []
    for depth in (2, 10, 50):  # the first is a warm-up
        step = deep_step(depth, "interpreter")
        traced.append(python_calls(step))
        program = step.func.main_program
        compiled.append(python_calls(lambda p=program: Executable(p, load=False)))
    for _, shallow, deep in (traced, compiled):
        assert deep < 5 * shallow


def test_garbage_is_collected_again_after_a_trace_that_fails():
    before = gc.get_threshold()

    @paddle.jit.to_static(backend="interpreter")
    def f(x):
        raise ValueError(f"the threshold is {gc.get_threshold()[0]}")

    with pytest.raises(ValueError, match="the threshold is 0"):
        f(paddle.ones([2]))
    assert gc.get_threshold() == before
