"""The engine stands alone: copied to an empty folder it trains, compiles and runs on two ranks."""

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from minipaddle.engine.executors.compiler import compiler

HERE = Path(__file__).parent
ENGINE = HERE.parents[1] / "minipaddle" / "engine"
MODELS = "Perceptron", "Convolutions", "GPT"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(ENGINE, folder / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("alone.py", "only_numpy.py"):
        shutil.copy(HERE / name, folder)
    hidden = ("PYTHON", "COV", "MINIPADDLE_BACKEND")
    own = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    command = [sys.executable, "-P", "-c", "import sys; sys.path.insert(0, '.'); import runpy; "
               "runpy.run_path('alone.py', run_name='__main__')"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_imports_numpy_and_nothing_else(report):
    allowed = {"__main__", "alone", "engine", "numpy", "only_numpy"}
    assert {name for name in report["imported"] if not name.startswith("_")} <= allowed


@pytest.mark.parametrize("model", MODELS)
def test_every_way_to_run_a_step_trains_alike(report, model):
    """The losses fall, and are those of eager mode in programs and in C."""
    eager, interpreted, native = (report[model][b] for b in ("None", "interpreter", "native"))
    assert all(a > b for a, b in pairwise(eager["losses"]))
    np.testing.assert_allclose(interpreted["losses"], eager["losses"], rtol=1e-5)
    np.testing.assert_allclose(native["losses"], eager["losses"], rtol=1e-5)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("model", MODELS)
def test_a_step_is_one_c_function_with_a_planned_arena(report, model):
    native = report[model]["native"]
    assert native["functions"] == 1
    assert native["live"] <= native["arena"] <= 1.1 * native["live"]
    assert native["hosted"] == []


def test_two_ranks_keep_the_same_weights(report):
    first, second = report["ranks"]
    losses = [np.mean(pair) for pair in zip(first[:6], second[:6], strict=True)]
    assert all(a > b for a, b in pairwise(losses))
    assert first[6:] == second[6:]
    assert first[:6] != second[:6]
