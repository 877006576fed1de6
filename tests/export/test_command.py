"""`python -m minipaddle export`, as users call it, with their mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.export import command
from minipaddle.jit.formats import FORMATS, ExportFormat
from minipaddle.static import InputSpec

ROOT = Path(__file__).parents[2]
MODEL = """
import minipaddle as paddle
from minipaddle import nn


def net():
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.ReLU())


def half(x):
    return x.astype("float16") * 2.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    paddle.jit.save(paddle.nn.Linear(4, 2), "saved", [InputSpec([None, 4], name="x")])
    return tmp_path


def run(capsys, text):
    """(status, stdout, stderr) of a command line."""
    status = command.main(text.split())
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_as_a_user_calls_it(folder):
    words = ["export", "model.py:net", "--to", "c", "--input", "1,4"]
    done = subprocess.run(
        [sys.executable, "-m", "minipaddle", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    files = done.stdout.split()
    assert {"net_c/model.c", "net_c/model.h", "net_c/Makefile", "net_c/README.md"} <= {*files}
    assert all(Path(folder, file).stat().st_size for file in files)


def test_what_was_saved_is_exported_for_the_sizes_that_are_given(folder, capsys):
    status, out, err = run(capsys, "saved --to c --input 5,4 -o made --processor x86-64-v3 --embed")
    assert (status, err) == (0, "")
    assert "#define MODEL_INPUT_X_SHAPE {5, 4}" in Path("made/model.h").read_text()
    assert "-march=x86-64-v3" in Path("made/Makefile").read_text()
    assert "made/model_weights.c" in out.split()


def test_a_further_format_is_a_row_and_a_module(folder, capsys, monkeypatch):
    monkeypatch.setitem(
        FORMATS, "names", ExportFormat("testing_names", ".txt", "the names of inputs")
    )
    module = type(sys)("minipaddle.testing_names")
    module.OPTIONS = {"upper_case": {"action": "store_true", "help": "large letters"}}

    def write(saved, path, *, upper_case=False):
        names = " ".join(saved.methods["forward"].inputs)
        Path(path).write_text(names.upper() if upper_case else names)
        return [Path(path)]

    module.write = write
    monkeypatch.setitem(sys.modules, "minipaddle.testing_names", module)
    assert run(capsys, "saved --to names --upper-case") == (0, "saved.txt\n", "")
    assert Path("saved.txt").read_text() == "X"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("nothing --to c", ["there is no nothing.pdmodel", "try: give the path that jit.save"]),
        ("saved --to c", ["sizes are open: batch", "try: --input 1,4"]),
        (
            "saved --to c --input 1,5",
            ["--input for x: float32[1, 5]", "expected: float32[batch, 4]"],
        ),
        ("saved --to c --input 1,4:int64", ["--input for x: int64[1, 4]"]),
        ("saved --to c --input 1,4 --input 3", ["2 times --input, but 1 inputs"]),
        ("saved --to c --input 1,4 --method back", ["the model has no 'back'"]),
        ("model.py:net --to c", ["give the shape of its input, such as --input 1,1,8,8"]),
        ("model.py:nett --to c --input 1,4", ["model.py has no 'nett'; did you mean net?"]),
        ("model.py:half --to c --input 3", ["cast of float16", "at: ", "model.py:11"]),
    ],
)
def test_mistakes_are_explained(folder, capsys, line, parts):
    status, out, err = run(capsys, line)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert "__main__.py" not in err
    for part in parts:
        assert part in err


def test_help_lists_formats_and_their_options(capsys):
    with pytest.raises(SystemExit):
        command.main(["--to", "c", "--help"])
    out = capsys.readouterr().out
    assert "--processor" in out
    assert "WebAssembly module and a page" in " ".join(out.split())
