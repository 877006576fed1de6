"""Every model's programs run in the memory that their plans say: forward, backward, whole steps."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.core.dim import Dim
from minipaddle.executors.arena import ArenaRun
from minipaddle.ir.cut import has_effect
from minipaddle.ir.interpreter import Run
from minipaddle.ir.program import everywhere
from minipaddle.passes.lifetimes import specs_of
from tests.jit.models import (
    MODELS,
    TRAININGS,
    collect,
    fill,
    floats,
    inputs,
    loss_of,
    parameters,
    tensors,
)

collect()
interpreted = Run.__call__


def is_open(program) -> bool:
    """Has it sizes that are known only while it runs, or does it do more than computing?"""
    records = [*program.given, *everywhere(program)]
    shapes = [s.shape for r in records for s in specs_of(r)]
    return any(isinstance(n, Dim) for shape in shapes for n in shape) or any(
        map(has_effect, program.records)
    )


class Planned:
    """Stands for the interpreter: each program runs in its arena too, and must agree."""

    def __init__(self):
        self.programs, self.runner, self.worst = set(), None, 1.0

    def __call__(self, run, program, arrays):
        wanted = interpreted(run, program, arrays)
        if not is_open(program):
            self.runner = self.runner or ArenaRun(run.m, check=True)
            found = self.runner(program, arrays)
            for x, y, record in zip(found, wanted, program.results, strict=True):
                assert x.dtype == record.dtype and x.shape == record.shape
                close = {"rtol": 1e-5, "atol": 1e-5} if x.dtype.kind in "fV" else {"rtol": 0}
                np.testing.assert_allclose(x, y, err_msg=repr(record), **close)
            self.programs.add(program)
            plan = self.runner.plans[program]
            if plan.size > 1000:
                self.worst = max(self.worst, plan.ratio)
        return wanted


def planned(run) -> Planned:
    """What was planned while `run` ran on programs."""
    found = Planned()
    with paddle.plugged("ir.run", lambda self, program, arrays: found(self, program, arrays)):
        run()
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_network(model):
    """Forward and backward, each a program."""

    def run():
        net = paddle.jit.to_static(model.net())
        for call in model.calls:
            y = net(*inputs(call))
            if floats(y):
                loss_of(y).backward()

    planned(run)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_whole_step(model):
    net = model.net()
    xs = inputs(model.calls[0])
    weights = [w for w in parameters(net) if not w.stop_gradient] or floats(xs)
    if not weights:
        pytest.skip("nothing to train")
    opt = paddle.optimizer.Momentum(0.01, parameters=weights)

    @paddle.jit.to_static
    def step():
        y = net(*xs)
        if floats(y):
            loss_of(y).backward()
            opt.step()
            opt.clear_grad()
        return y

    found = planned(lambda: [step() for _ in range(3)])
    assert found.worst <= 1.05


@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: t.name)
def test_training(training):
    step, layers = training.made()
    fill([w for layer in layers for w in layer.parameters()])
    step = paddle.jit.to_static(step)
    batches = [inputs(training.inputs, k) for k in range(3)]
    for x in tensors(batches):
        x.stop_gradient = True
    found = planned(lambda: [step(*batches[k]) for k in range(3)])
    assert found.programs and found.worst <= 1.05
