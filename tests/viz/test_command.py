"""`python -m minipaddle draw`: for people who only want a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minipaddle.viz import command

ROOT = Path(__file__).parents[2]

MODEL = """
import helper
import minipaddle as paddle
from minipaddle import nn


class Net(nn.Layer):
    def __init__(self, width=helper.WIDTH):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.body(x)


class Wide(nn.Layer):
    def __init__(self, width):
        super().__init__()


def wave(x, y):
    return paddle.tanh(x) * y


def build(width=3, **kwargs):
    return Net(width)


def lookup(x):
    return paddle.exp(paddle.cast(x, "float32") * paddle.ones([1]))


def choose(x):
    if x.sum() > 0:
        return x
    return -x


@paddle.jit.to_static
def chosen(x):
    return choose(x)


ready = Net(5)
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("WIDTH = 8\n")
    (tmp_path / "broken.py").write_text("x = 1\nx.y\n")
    (tmp_path / "real.py").write_text("import paddle_gone\n")
    (tmp_path / "other.py").write_text("import paddle.nothing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("model", "helper", "broken", "real", "other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def run(capsys, text):
    """(status, stdout, stderr) of a command line."""
    status = command.main(text.split())
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_as_a_user_calls_it(folder):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "minipaddle",
            "draw",
            "model.py:Net",
            "--input",
            "2,4",
            "-o",
            "g.svg",
        ],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "g.svg\n", "")
    svg = (folder / "g.svg").read_text()
    assert svg.count('class="node"') == 8  # the input, four parameters, three operators
    assert "model.py:" in svg


def test_a_mistake_ends_with_status_2(folder):
    done = subprocess.run(
        [sys.executable, "-m", "minipaddle", "draw", "model.py:Nett"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: model.py has no 'Nett'; did you mean Net?\n"
    assert not done.stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("model.py:Net", "Net: 58 parameters"),
        ("model.py:ready", "Net: 37 parameters"),
        ("model.py:build", "Net: 23 parameters"),
        ("model.py:build --input 3,4", "v8 = affine(v5, v6, v7) : float32[3, 2]"),
        ("model.py:ready --depth 0", "Net: 4 layers inside, 37 parameters"),
        ("model.py:ready --what module --input 1,4", "Net: 37 parameters"),
        ("model.py:Net --input 3,4", "v6 = weight : float32[8, 2]"),
        ("model.py:wave --input 3,4 --input 4", "v3 = input : float32[4]"),
        ("model.py:wave --input 2:float64 --input 2:float64", "v2 = tanh(v1) : float64[2]"),
        ("model.py:wave --input :float32 --input 1,", "v3 = input : float32[1]"),
        ("tanh --what operator", "d/dx: g * (1 - out * out)"),
    ],
)
def test_what_is_drawn(folder, capsys, monkeypatch, line, text):
    options = command.parser().parse_args(line.split())
    graphs = []
    for name in ("tape", "module", "operator"):
        make = getattr(command, name)
        monkeypatch.setattr(
            command, name, lambda *a, make=make, **k: graphs.append(make(*a, **k)) or graphs[-1]
        )
    path = command.draw(options)
    assert path.name == f"{options.target.split(':')[-1]}.svg"
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert text in graphs[-1].text


@pytest.mark.parametrize("kind", ["png", "dot"])
def test_the_ending_says_the_format(folder, capsys, kind):
    assert run(capsys, f"model.py:Net -o net.{kind}") == (0, f"net.{kind}\n", "")
    assert (folder / f"net.{kind}").stat().st_size > 500


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("modle.py:Net", "no file modle.py; did you mean model.py?"),
        ("zzz.py:Net", "no file zzz.py\n"),
        ("Net", "Net: give FILE.py:NAME"),
        ("model.py:Nett", "model.py has no 'Nett'; did you mean Net?"),
        ("helper.py:Net", "helper.py has no 'Net'; it has nothing"),
        ("broken.py:x", "'int' object has no attribute 'y'\n  at: broken.py:2"),
        ("real.py:x", "No module named 'paddle_gone'\n  at: real.py:1"),
        ("model.py:Wide", "Wide() could not be made: "),
        ("model.py:Wide", "small = Wide(...)"),
        ("model.py:number", "number is no layer, so it has no tree"),
        ("model.py:wave", "wave is no layer, so it has no tree; for its tape give --input"),
        ("model.py:wave --what module --input 1", "wave is no layer, so it has no tree"),
        ("model.py:number --input 1", "number is a int, which cannot be called"),
        ("model.py:Net --input 2,5", "in: Net.body.0 (Linear)"),
        ("model.py:Net --input 2,5", "Net(float32[2, 5]) failed: ValueError"),
        (
            "model.py:wave --input 2 --input 3",
            "failed: ValueError: multiply(float32[2], float32[3])",
        ),
        ("model.py:lookup --input 2,3:int64", "no tape leads to these tensors"),
        ("model.py:Net --input 3x4", "--input 3x4: expected a shape, such as 1,3,32,32"),
        ("model.py:Net --input 3,4:int7", "--input 3,4:int7: 'int7' is no data type"),
        ("model.py:Net -o net.bmp", "net.bmp: the ending must be one of .svg, .png, .dot"),
        ("model.py:Net -o no/such/net.svg", "cannot be written: No such file or directory"),
        ("tahn --what operator", "no operator 'tahn'"),
        ("model.py:choose --what transpiling --stage if", "no converter 'if'"),
        ("model.py:number --what transpiling", "how int is converted"),
        ("model.py:lookup --what joint --input 2:int64", "has no backward program"),
        ("model.py:Net --what program --input 2,5", "Net(float32[2, 5]) failed: ValueError"),
    ],
)
def test_mistakes_are_explained(folder, capsys, line, message):
    status, out, err = run(capsys, line)
    assert status == 2
    assert err.startswith("error: ")
    assert message in err
    assert not out


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("model.py:choose --what program --input 2", "cond"),
        ("model.py:chosen --what program --input 2", "cond"),
        ("model.py:Net --what program --input 2,4", "body (Sequential)"),
        ("model.py:Net --what program --input 2,4 --depth 0", "Net"),
        ("model.py:ready --what joint --input 2,4", "backward"),
        ("model.py:choose --what transpiling", "converters"),
        ("model.py:Net --what transpiling", "converted"),
        ("model.py:choose --what transpiling --stage if_else", "FunctionDef _jst_"),
    ],
)
def test_programs_and_their_making(folder, capsys, line, inside):
    status, out, err = run(capsys, f"{line} -o g.svg")
    assert (status, out, err) == (0, "g.svg\n", "")
    assert inside in (folder / "g.svg").read_text().replace("&#160;", " ")


def test_a_file_that_wants_paddle_learns_whom_to_import(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "paddle", None)
    _, _, err = run(capsys, "other.py:x")
    assert "try: import minipaddle as paddle" in err


def test_help_shows_examples(capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    assert "python -m minipaddle draw model.py:Net --input 1,3,32,32 -o net.svg" in (
        capsys.readouterr().out
    )
