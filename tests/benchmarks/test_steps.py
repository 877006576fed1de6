"""The benchmark of steps measures what it says, in few and short rounds; no time is judged."""

import importlib.util
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.benchmarks import against, floor, frameworks, models, steps, tables
from tests.benchmarks.fleet import ROOT, Failed, Worker
from tests.benchmarks.workloads import WORKLOADS


@pytest.mark.slow
@pytest.mark.timeout(300)  # six processes
def test_the_tiny_mlp_in_our_own_modes(tmp_path, capsys):
    kept = tmp_path / "figures.json"
    arguments = ["--only", "tiny", "--peers", "none", "--rounds", "2", "--seconds", "0.001"]
    steps.run(1, [*arguments, "--executors", "interpreter", "--json", str(kept)])
    found = json.loads(kept.read_text())["workloads"]["tiny"]
    ours = {"minipaddle", "to_static interpreter"}
    assert ours == {*found["median"]} == {*found["memory"]} == {*found["first"]}
    losses = [loss for (loss,) in found["first"]["minipaddle"]["results"]]
    assert losses == sorted(losses, reverse=True), "it does not learn"
    assert all(len(times) == 2 for times in found["rounds"].values())
    pools = found["first"]["to_static interpreter"]["pools"]
    assert {threads for _, threads in pools} == {1}
    products = 64 * 32 + 32 * 32 + 32 * 10  # each forward, for its weight, and for its input,
    assert found["floor"]["flops"] == 2 * 32 * (3 * products - 64 * 32)  # which the first is spared
    shown = capsys.readouterr().out
    for table in ("A step, medians", "Targets", "Time to first step", "Memory", "The floor"):
        assert table in shown


@pytest.mark.slow
@pytest.mark.timeout(300)  # two processes that compile
def test_a_commit_beside_this_tree(capsys):
    against.run(1, ["--only", "tiny", "--rounds", "2", "--seconds", "0.001"])
    *_, row, _ = capsys.readouterr().out.splitlines()
    title, before, now, by, *_, losses = [cell.strip() for cell in row.split("│")[1:-1]]
    assert (title, losses) == ("tiny", "same")
    assert before[-1] == now[-1] == "s"
    assert float(by) > 0


def test_what_a_convolution_must_compute():
    import minipaddle as paddle

    @paddle.jit.to_static
    def both(x, w):
        y = paddle.nn.functional.conv2d(x, w, stride=2, padding=1)
        return paddle.grad(y.sum(), [x, w])

    x, w = paddle.ones([2, 3, 8, 8]), paddle.ones([5, 3, 3, 3])
    x.stop_gradient = w.stop_gradient = False
    both(x, w)
    one = 2 * (2 * 5 * 4 * 4) * (3 * 3 * 3)
    records = list(floor.everything(both.main_program))
    counted = {r.op.name: 2 * floor.multiply_adds(r) for r in records}
    assert counted["conv_input_grad"] == counted["conv_weight_grad"] == one
    assert floor.of(both.main_program)["flops"] == sum(counted.values())


def test_a_peer_that_is_not_there_is_named(monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "jax" else there(n))
    chosen = steps.options(["--peers", "jax,jax"])
    columns, absent = steps.candidates(chosen)
    assert absent == ["jax", "jax"]
    assert "jax" not in columns


def test_an_unknown_peer_is_refused(capsys):
    with pytest.raises(SystemExit):
        steps.options(["--peers", "tensorflow"])
    assert "tensorflow" in capsys.readouterr().err


def test_a_worker_that_dies_says_why():
    worker = Worker("minipaddle", "no such workload", 1)
    with pytest.raises(Failed, match="KeyError: 'no such workload'"):
        worker.ask("first")
    worker.close()


def test_other_numbers_are_an_error():
    first = {"minipaddle": {"results": [[2.0]]}, "torch": {"results": [[2.1]]}}
    with pytest.raises(AssertionError, match="torch computes something else"):
        steps.compare("tiny", first)


def test_ratios_are_taken_round_by_round():
    rounds = {"minipaddle": [2.0, 6.0, 20.0], "torch": [1.0, 2.0, 100.0], "jax": [3.0, 3.0, 3.0]}
    found = {"rounds": rounds, "median": {"minipaddle": 6.0, "torch": 2.0, "jax": 3.0}}
    assert tables.best_peer(found) == "torch"
    assert tables.ratio(found, "minipaddle", "torch") == 2.0
    assert tables.ours_best(found) == "minipaddle"


def test_each_workload_has_a_target():
    assert all(0 < w.target.ratio < 1 for w in WORKLOADS.values())


def test_the_command_names_the_benchmarks():
    def ask(*arguments):
        command = [sys.executable, "-m", "tests.benchmarks", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    shown = ask("--help")
    assert shown.returncode == 0
    assert "--threads" in shown.stdout
    assert "--peers" in ask("steps", "--help").stdout
    wrong = ask("eager", "--peers", "torch")
    assert wrong.returncode != 0
    assert "what is --peers torch?" in wrong.stderr


@pytest.mark.parametrize("title", ["tiny", "while"])
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_what_is_written_by_hand_computes_the_same(title):
    workload = WORKLOADS[title]
    weights = models.weights_of(workload)
    steps_of = {name: frameworks.MAKE[name](workload, weights) for name in ("minipaddle", "c")}
    for _ in range(3):
        ours, by_hand = (models.numbers(step.run()) for step in steps_of.values())
        np.testing.assert_allclose(by_hand, ours, rtol=1e-5)


def test_a_workload_that_nobody_wrote_in_c():
    with pytest.raises(NotImplementedError, match="nobody wrote"):
        frameworks.by_hand(WORKLOADS["gpt"], {})
