"""What can be explored beside a compiled step: a tape, a saved program, what was not compiled."""

import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn, viz
from minipaddle.engine.executors.compiler import compiler
from minipaddle.static import InputSpec
from minipaddle.viz.explore.command import main
from minipaddle.viz.explore.facts import StepFacts

from .steps import STEPS, read_facts

MODEL = """
import minipaddle as paddle


@paddle.jit.to_static(backend="native")
def wave(x):
    return paddle.tanh(x) * x


def plain(x):
    return paddle.tanh(x) * x


wave(paddle.ones([3]))
"""

TRAIN = """
import sys
import minipaddle as paddle

print("imported", sys.argv)


@paddle.jit.to_static(backend="native")
def step(x):
    print("runs")
    return (x * 2).sum()


def main():
    for _ in range(3):
        step(paddle.ones([4]))


if __name__ == "__main__":
    main()
"""


def saved(folder, *shape):
    path = str(folder / "model")
    spec = InputSpec(shape, "float32", "x")
    paddle.jit.save(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), path, input_spec=[spec])
    return paddle.jit.load(path)


def test_a_tape():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    with viz.source_lines(True):
        y = net(paddle.ones([3, 4])).sum()
    facts = StepFacts(y).json
    assert [t[0] for t in facts["tracks"]] == ["affine", "relu", "sum"]
    assert [s["name"] for s in facts["stages"]] == ["tape"]
    (tracks,) = facts["calls"].values()
    assert tracks == [0, 1]  # of `net(...)`
    assert "to_static" in facts["why"]["c"]


def test_a_saved_program_is_compiled_as_it_is_served(tmp_path):
    facts = StepFacts(saved(tmp_path, 3, 4), timed=False).json
    assert facts["c"].count("static void ") >= len(facts["kernels"]) > 0
    assert facts["src"][0]["lines"][0].startswith("test_targets.py:")


def test_open_sizes_say_why_there_is_no_c(tmp_path):
    facts = StepFacts(saved(tmp_path, None, 4)).json
    assert "open sizes" in facts["why"]["c"]
    assert not facts["kernels"]


def test_what_the_interpreter_runs():
    @paddle.jit.to_static(backend="interpreter")
    def double(x):
        return x * 2

    double(paddle.ones([3]))
    facts = StepFacts(double).json
    assert "backend='native'" in facts["why"]["c"]
    assert facts["stages"][0]["name"] == "captured"


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_what_the_backend_auto_still_interprets_is_compiled():
    @paddle.jit.to_static(backend="auto")
    def double(x):
        return x * 2

    double(paddle.ones([3]))
    facts = StepFacts(double, timed=False).json
    assert [k["name"] for k in facts["kernels"]] == ["k0_multiply"]
    assert not double.executables  # it goes on as it would


def test_what_cannot_be_explored():
    with pytest.raises(TypeError, match=r"viz\.tape"):
        viz.explore(3)
    with pytest.raises(ValueError, match="no program yet"):
        viz.explore(paddle.jit.to_static(lambda x: x))


def test_gradients_know_what_they_are_of():
    facts = StepFacts(STEPS["conv"](), timed=False).json
    rows = facts["tracks"]
    pairs = {(row[0], rows[row[6]][0]) for row in rows if row[6] >= 0}
    assert {("conv_weight_grad", "conv"), ("conv_input_grad", "conv"), ("gate", "relu")} <= pairs
    phases = {facts["paths"][row[3]][0] for row in rows}
    assert phases == {"forward", "backward", "update"}


def test_both_ranks_know_their_messages():
    facts = StepFacts(STEPS["two ranks"]()).json
    assert "does not run alone" in facts["why"]["time"]
    assert [each["rank"] for each in facts["ranks"]] == [0, 1]
    for each in facts["ranks"]:
        assert [row[1:] for row in each["recs"] if row[2]] == [
            ["R", "all_reduce along mesh dimension x", 4]
        ]
        assert {row[1] for row in each["recs"]} == {"S0", "P", "R"}


def test_a_program_that_moves_pieces_has_a_still_picture():
    """Its own text cannot say which mesh; a rank's program needs no mesh."""
    mesh = dist.ProcessMesh([0, 1], dim_names=["x"])

    @paddle.jit.to_static(backend="native")
    def rows(x):
        return dist.reshard(x * 2, mesh, [dist.Replicate()])

    def work():
        return rows(dist.shard_tensor(paddle.ones([4, 2]), mesh, [dist.Shard(0)])).sum().item()

    dist.spawn(work, nprocs=2)
    page = viz.explore(rows)
    assert "all_gather" in page.still
    assert "messages all_gather along mesh dimension x" in page.text


def test_a_step_of_one_rank_shows_the_programs_of_all():
    """As in the book: each rank makes a function of its own."""

    def work():
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])

        @paddle.jit.to_static(backend="native")
        def rows(x):
            return dist.reshard(x * 2, mesh, [dist.Shard(0), dist.Replicate()])

        x = dist.shard_tensor(paddle.ones([5, 2]), mesh, [dist.Shard(0), dist.Shard(1)])
        rows(x)
        return rows

    for rows in dist.spawn(work, nprocs=4).results:
        facts = viz.explore(rows).facts
        assert [each["rank"] for each in facts["ranks"]] == [0, 1, 2, 3]
        messages = [[row for row in each["recs"] if row[2]] for each in facts["ranks"]]
        assert [len(each) for each in messages] == [1] * 4
        assert [each[0][3] for each in messages] == [12, 12, 8, 8]  # 3 rows, or 2, of a float32
        assert facts["c"]


def test_rules_of_algebra_have_their_patterns():
    @paddle.jit.to_static(backend="native")
    def f(x):
        return (x * 1).transpose([1, 0]).transpose([1, 0]) / 4

    f(paddle.ones([2, 3]))
    facts = StepFacts(f, timed=False).json
    (algebra,) = [s for s in facts["stages"] if s["name"] == "algebra"]
    names = [rule["name"] for rule in algebra["rules"]]
    assert "multiply(x, 1) → a value that is there" in names
    assert "divide(x, c) → multiply" in names


def test_the_text_follows_each_line():
    text = str(viz.explore(STEPS["conv"](), timed=False))
    lines = text.split("\n")
    at = next(k for k, line in enumerate(lines) if "self.bn(self.conv1(x))" in line)
    words = [line.split()[0] for line in lines[at + 1 : at + 6]]
    assert words == ["records", "kernels", "C", "arena", "backward"]
    assert any("logits = net(x)" in line for line in lines)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "waves.py").write_text(MODEL)
    assert main(["waves.py:wave", "--no-times", "--text"]) == 0
    assert capsys.readouterr().out.startswith("wave.html\nwave: 2 records")
    assert main(["waves.py:plain", "--input", "3", "-o", "page.html", "--no-times"]) == 0
    assert {"wave.html", "page.html"} <= {path.name for path in tmp_path.iterdir()}
    saved(tmp_path, 3, 4)
    assert main(["model.pdmodel", "--no-times"]) == 0
    capsys.readouterr()
    for words, expected in (
        (["waves.py:wav"], "did you mean wave"),
        (["waves.py:plain"], "plain: missing a required argument: 'x'\n  try: --input SHAPE"),
        (["waves.py:wave", "-o", "page.svg"], ".html"),
        (["waves.py:wave", "-o", "none/page.html"], "cannot be written"),
        (["none.pdmodel"], "none"),
    ):
        assert main(words) == 2
        assert expected in capsys.readouterr().err


def test_the_command_runs_nothing_twice(tmp_path, capsys, monkeypatch):
    """A stranger's training script: its `main` runs with `python train.py` alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    assert main(["train.py:step"]) == 2
    told = capsys.readouterr()
    assert told.out == "imported ['train.py']\n"
    assert "train.py, when it is imported, does not call step; step: missing" in told.err
    assert main(["train.py:step", "--input", "4"]) == 0
    assert capsys.readouterr().out.splitlines() == ["imported ['train.py']", "runs", "step.html"]
    (tmp_path / "called.py").write_text(TRAIN.replace('if __name__ == "__main__":', "if True:"))
    assert main(["called.py:step"]) == 0
    assert capsys.readouterr().out.count("runs") == 3
    assert "a run would print" in read_facts((tmp_path / "step.html").read_text())["why"]["time"]
    assert main(["called.py:main"]) == 2
    assert "main() returned a NoneType, which cannot be called" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1 / 0", "train.py could not be run: ZeroDivisionError: division by zero"),
        ("def step(x", "SyntaxError: '(' was never closed"),
        ("import sys; sys.exit(3)", "train.py ended before step was there: exit(3)"),
        ("step = 3", "step is a int, which cannot be called"),
    ],
)
def test_a_file_that_fails_is_a_line(tmp_path, capsys, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(text)
    assert main(["train.py:step"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_a_saved_model_that_is_none_is_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pdmodel").write_text("hello")
    assert main(["bad.pdmodel"]) == 2
    assert "error: bad.pdiparams.info cannot be read" in capsys.readouterr().err
    for end in ("pdiparams", "pdiparams.info"):
        (tmp_path / f"bad.{end}").touch()
    assert main(["bad.pdmodel"]) == 2
    assert "error: bad holds no model, or a damaged one" in capsys.readouterr().err
