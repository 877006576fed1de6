"""What the first call of a function costs: the path of one `relu` through eager mode to C."""

import os
import subprocess
import sys

import pytest

from minipaddle.engine.executors.compiler import compiler

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
    assert first < 1_575
    assert files <= 49
    assert later == 0
