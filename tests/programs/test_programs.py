"""Ordinary Paddle programs give on MiniPaddle what they gave on Paddle 3.3.1.

`python -m tests.programs.record` wrote the expected results, with real Paddle installed. A program
can be added without: until its result is recorded it must run, and is skipped as "not asked".
"""

import subprocess
import sys
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest

import minipaddle
from tests.programs.common import SUBJECTS, programs
from tests.programs.outcome import differences, load, plain
from tests.programs.usage import eager, used

PROGRAMS = programs()
CORE = (Path(__file__).parents[1] / "data" / "api_core.txt").read_text().split()
NEVER_ON_REAL_NUMBERS = {"paddle.real", "paddle.imag"}

recorded = cache(load)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    check(name, PROGRAMS[name])


def check(name, program):
    """The program runs, and gives what is recorded."""
    subject, _, short = name.partition(".")
    got = plain(program(minipaddle))
    if short not in recorded(subject):
        command = f"python -m tests.programs.record {name}"
        pytest.skip(f"not asked of Paddle: {name}; where it is installed: {command}")
    assert differences(got, recorded(subject)[short]) == []


def test_every_result_belongs_to_a_program():
    kept = {f"{subject}.{short}" for subject in SUBJECTS for short in recorded(subject)}
    assert kept - set(PROGRAMS) == set()


def test_a_program_needs_no_paddle():
    """It runs all the same."""
    with pytest.raises(pytest.skip.Exception, match=r"not asked of Paddle: tensors\.new; .*record"):
        check("tensors.new", lambda paddle: paddle.ones([2]).sum())
    with pytest.raises(TypeError, match="which no file can keep"):
        check("tensors.new", lambda paddle: object())


def test_programs_use_the_core_names():
    core = eager(name.replace("paddle.Tensor.", "Tensor.") for name in CORE)
    unused = core - used() - NEVER_ON_REAL_NUMBERS
    assert not unused, f"{len(unused)} of {len(core)} core names stand in no program"


def test_a_wrong_number_would_be_noticed():
    want = recorded("training")["linear_regression"]
    assert differences(want, want) == []
    assert differences([1.0, 2.0], [1.0, 2.01]) == ["[1]: 2.0, Paddle gives 2.01"]
    assert differences([float("nan")], [0.0])
    assert differences({"tensor float64[1]": [1.0]}, {"tensor float32[1]": [1.0]})
    assert differences(1, 1.0)
    assert differences([1], [1, 2])
    with pytest.raises(TypeError, match="which no file can keep"):
        plain(object())


INSTALLED = any(d.name == "paddlepaddle" for d in distributions())

COMPARE = """
import paddle
from tests.programs.common import programs
from tests.programs.outcome import differences, load, plain
for name, program in programs().items():
    subject, _, short = name.partition(".")
    for line in differences(plain(program(paddle)), load(subject)[short], name):
        print(line)
"""


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="Paddle is not installed")
def test_real_paddle_still_gives_the_recorded_results():
    """In a process of its own: Paddle warns while it is imported, and numbers its layers."""
    command = [sys.executable, "-W", "ignore", "-c", COMPARE]
    run = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stderr
    assert [line for line in run.stdout.splitlines() if "Paddle gives" in line] == []
