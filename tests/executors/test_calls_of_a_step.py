"""What a small training step costs eager mode: Python calls, where arrays hardly cost anything."""

import os
import sys
from collections import Counter

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.eager.execution import Eager
from minipaddle.executors.hot import tapes
from tests.executors.hot import at_once, compiles, served

ROOT = os.path.dirname(paddle.__file__)


@pytest.fixture(autouse=True)
def no_array_was_in_pieces(monkeypatch):
    """The first one puts another class in charge of the thread, whose calls pass through it."""
    monkeypatch.setattr(current.top, "__class__", Eager)


def calls_of(function) -> Counter:
    """The calls of functions inside the package, by their names."""
    calls = Counter()

    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            calls[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def make_step():
    """The step of the benchmark's tiny perceptron: SGD, cross entropy, 64-32-32-10, batch 32."""
    nn, rng = paddle.nn, np.random.default_rng(0)
    parts = nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
    net = nn.Sequential(*parts)
    x = paddle.to_tensor(rng.normal(size=(32, 64)).astype("float32"))
    label = paddle.to_tensor(rng.integers(0, 10, 32))
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step():
        nn.functional.cross_entropy(net(x), label).backward()
        optimizer.step()
        optimizer.clear_grad()

    return step


def calls_of_steps(count: int) -> Counter:
    """The calls of the last of some steps."""
    step = make_step()
    for _ in range(count - 1):
        step()
    return calls_of(step)


def test_calls_of_a_step():
    """(There were 460 before edges were made only where something is recorded, and before the walk
    back looked up what it calls.) A cap that is passed by far is lowered, so that it goes on
    watching.
    """
    calls = calls_of_steps(2)
    assert calls["Eager.apply"] == 24
    assert 300 < calls.total() <= 371, calls.most_common()


@compiles
def test_calls_of_a_step_in_c():
    """Programs compute the walk back and the step of the optimizer: see `hot/tapes.py` and
    `optimizer/update.py`.
    """
    with at_once():
        calls = calls_of_steps(5)
        assert served(tapes.TAPES) == 1
    assert calls["Eager.apply"] == 6
    assert 150 < calls.total() <= 280, calls.most_common()
