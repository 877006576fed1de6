"""What the first call of a function costs: the path of one `relu` through eager mode to C."""

import gc
import os
import subprocess
import sys

import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from tests.benchmarks.depth import deep_step

pytestmark = pytest.mark.sweep

SCRIPT = """
import os, sys
import minipaddle as paddle

calls, root = [], os.path.dirname(paddle.__file__)

def count(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        calls.append(frame.f_code)

def f(x):
    return paddle.nn.functional.relu(x)

static, x = paddle.jit.to_static(f, backend="native"), paddle.to_tensor([1.0, -1.0])
f(x)
for _ in range(4):
    calls.clear()
    sys.setprofile(count)
    static(x)
    sys.setprofile(None)
    print(len(calls), len({code.co_filename for code in calls}))
"""


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_calls_inside_the_package(tmp_path):
    """(The first call took 5,600 calls in 101 files when reductions that nobody uses were written
    as C, and every object was compared piece by piece.)
    """
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    own = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    own["MINIPADDLE_CACHE"] = str(tmp_path)
    out = subprocess.run([sys.executable, str(file)], env=own, capture_output=True, check=True)
    first, files, *_, later, _ = map(int, out.stdout.split())
    assert first < 1_650
    assert files <= 63  # 44 of the engine
    assert later == 0


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
