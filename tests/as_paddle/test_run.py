"""`python -m minipaddle run SCRIPT.py` beside `python SCRIPT.py`, and one module for two names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minipaddle
from minipaddle.distributed import launch

ROOT = str(Path(__file__).parents[2])
NAMES = """
import sys
import paddle, paddle.nn.functional as F
from paddle.nn import Linear
import minipaddle
import minipaddle.hub
import paddle.hub
import paddle.distributed.fleet.utils as utils

assert paddle is minipaddle
for name in ("nn", "nn.functional", "hub", "distributed.fleet.utils"):
    assert sys.modules["paddle." + name] is sys.modules["minipaddle." + name], name
    assert sys.modules["paddle." + name].__spec__.name == "minipaddle." + name
assert Linear is minipaddle.nn.Linear
assert F.__name__ == "minipaddle.nn.functional"
assert "paddle.viz" not in sys.modules and "minipaddle.viz" not in sys.modules
for missing in ("paddle.fft", "paddle.nowhere", "paddle.sparse.nn"):
    try:
        __import__(missing)
    except ImportError as error:
        print(error)
try:
    from paddle import stft
except ImportError as error:
    print(error)
"""


def python(*arguments, folder=None, path=(), **options):
    """A fresh interpreter, which finds MiniPaddle from any folder."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, path), ROOT])}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, **options)


def run(*arguments, **options):
    return python("-m", "minipaddle", "run", *arguments, **options)


def test_one_module_has_both_names(tmp_path):
    (tmp_path / "names.py").write_text(NAMES)
    done = run(tmp_path / "names.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "paddle.fft: complex numbers are not supported by MiniPaddle"
    assert lines[1] == "No module named 'paddle.nowhere'"
    assert lines[2].startswith("paddle.sparse: sparse tensors are not supported")
    assert lines[3] == "paddle.stft: complex numbers are not supported by MiniPaddle"


def test_the_import_does_the_same(tmp_path):
    (tmp_path / "names.py").write_text(f"import minipaddle.as_paddle\n{NAMES}")
    done = python(tmp_path / "names.py")
    assert done.returncode == 0, done.stderr


SAME = {
    "arguments": """
import sys, helper
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__ and __spec__.name)
print(sys.modules["__main__"].helper is helper, helper.x)
""",
    "error": """
def f():
    raise ValueError("ä")

try:
    f()
except ValueError as error:
    raise KeyError(1) from error
""",
    "syntax": "import (\n",
    "encoding": "# -*- coding: latin-1 -*-\nprint('é')\n",
    "exit": "import sys\nsys.exit(7)\n",
    "message": "raise SystemExit('no')\n",
    "at exit": "import atexit\nx = 5\natexit.register(lambda: print(x, __name__))\n",
    "hook": """
import sys
sys.excepthook = lambda kind, error, trace: print("mine", kind)
1 / 0
""",
    "interrupt": """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(9)
""",
    "spawn": """
import multiprocessing

def double(x):
    return 2 * x

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
""",
}


CASES = [("file", name) for name in SAME]
CASES += [("module", name) for name in ("arguments", "error", "exit")]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(("how", "name"), CASES)
def test_it_is_as_python(name, how, tmp_path):
    """What is printed, to both streams, and the exit status."""
    encoding = "latin-1" if name == "encoding" else "utf-8"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/script.py").write_text(SAME[name], encoding=encoding)
    for folder in (tmp_path, tmp_path / "deep"):
        (folder / "helper.py").write_text("x = 3")
    target = ["deep/script.py"] if how == "file" else ["-m", "deep.script"]
    wanted = python(*target, "-v", "a b", folder=tmp_path)
    found = run(*target, "-v", "a b", folder=tmp_path)
    assert (found.returncode, found.stdout) == (wanted.returncode, wanted.stdout)
    without_runpy = [line for line in wanted.stderr.splitlines() if "<frozen runpy>" not in line]
    assert found.stderr.splitlines() == without_runpy


def test_what_is_not_there(tmp_path):
    for target in (["nowhere.py"], ["-m", "nowhere"]):
        wanted, found = (call(*target, folder=tmp_path) for call in (python, run))
        assert (found.returncode, found.stderr) == (wanted.returncode, wanted.stderr)
    assert run().returncode == 2
    assert "usage: python -m minipaddle run" in run("--help").stdout


def test_a_folder_and_a_module_of_paddle(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__main__.py").write_text("import paddle, part\nprint(part.y, __name__)")
    (tmp_path / "app/part.py").write_text("import paddle\ny = paddle.ones([2]).tolist()")
    assert run("app", folder=tmp_path).stdout == "[1.0, 1.0] __main__\n"
    done = run("-m", "paddle.distributed.launch", "--help")
    assert "usage: python -m minipaddle.distributed.launch" in done.stdout


def test_another_paddle_that_was_imported_before_is_named(tmp_path):
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle/__init__.py").touch()
    done = python("-c", "import paddle, minipaddle.as_paddle", path=[tmp_path])
    assert done.returncode == 1
    assert "paddle was imported before as another module, from" in done.stderr
    assert str(tmp_path / "paddle") in done.stderr
    done = python("-c", "import minipaddle.as_paddle, paddle; paddle.ones([1])", path=[tmp_path])
    assert done.returncode == 0, done.stderr


def test_ranks_run_through_it(monkeypatch):
    options = launch.parse(["train.py", "-x"])
    monkeypatch.delitem(sys.modules, "paddle", raising=False)
    assert launch.program_of(options)[2:] == ["train.py", "-x"]
    monkeypatch.setitem(sys.modules, "paddle", minipaddle)
    assert launch.program_of(options)[2:] == ["-m", "minipaddle", "run", "train.py", "-x"]
