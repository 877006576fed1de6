"""Adding an elementwise operator is one edit in one file: its public function follows from it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "minipaddle"
EDIT = '''

@elementwise(result="float")
def softcap(m, x, *, cap=30.0):
    """cap · tanh(x / cap)."""
    return cap * m.tanh(x / cap)


softcap.vjp(lambda g, out, cap: g * (1 - (out / cap) * (out / cap)))
'''
PROGRAM = """
import minipaddle as paddle
from minipaddle.testing import check_grad
x = paddle.to_tensor([3.0], dtype="bfloat16")
print({call}(x, cap=2.0).dtype, {call}(x, 2.0).item(), {method})
check_grad({call}, [[0.5, -40.0]], order=2)
"""


@pytest.mark.parametrize(
    ("file", "call", "method"),
    [
        ("ops/gamma.py", "paddle.softcap", "x.softcap().shape"),
        ("engine/ops/special.py", "paddle.softcap", "x.softcap().shape"),
        ("engine/ops/activation.py", "paddle.nn.functional.softcap", "x.shape"),
    ],
)
def test_a_new_operator_is_there(tmp_path, file, call, method):
    shutil.copytree(PACKAGE, tmp_path / "minipaddle", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "minipaddle" / file).open("a", encoding="utf-8") as source:
        source.write(EDIT)
    elsewhere = {
        k: v for k, v in os.environ.items() if not k.startswith("COV")
    }  # a copy is not measured
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(call=call, method=method)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=elsewhere | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["paddle.bfloat16", "1.8125", "[1]"]
