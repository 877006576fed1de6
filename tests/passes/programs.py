"""Programs to try passes on: the steps of all models of tests/jit, with what they are run on."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

import minipaddle as paddle
from minipaddle.engine.core.dim import Dim
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import Program, everywhere
from minipaddle.engine.jit.capture import Captured
from minipaddle.engine.passes.lifetimes import specs_of
from tests.jit import models as zoo

zoo.collect()
O = paddle.optimizer
OPTIMIZERS = [O.SGD, O.Momentum, O.Adam, O.AdamW, O.RMSProp, O.Adagrad, O.NAdam]


def is_open(program: Program) -> bool:
    """Has it sizes that are known only while it runs?"""
    records = [*program.given, *everywhere(program)]
    return any(type(n) is Dim for r in records for s in specs_of(r) for n in s.shape)


class Case(NamedTuple):
    """A program, the arrays for its inputs and states, and the results it gives for them."""

    name: str
    program: Program
    arrays: list
    results: list


def step_of(net, xs, opt, learn: bool):
    """A training step; or what the network gives."""

    def step():
        y = net(*xs)
        if not learn:
            return zoo.floats(y)
        loss = zoo.loss_of(y)
        if zoo.floats(y):
            loss.backward()
            opt.step()
            opt.clear_grad()
        return loss

    return step


def of_model(model, learn: bool):
    net, xs = model.net(), zoo.inputs(model.calls[0])
    weights = [w for w in zoo.parameters(net) if not w.stop_gradient] or zoo.floats(xs)
    if isinstance(net, paddle.nn.Layer) and not learn:
        net.eval()
    kind = OPTIMIZERS[zoo.MODELS.index(model) % len(OPTIMIZERS)]
    opt = kind(0.01, parameters=weights) if weights else None
    return step_of(net, xs, opt, learn and bool(weights)), ()


def of_training(training):
    step, layers = training.made()
    zoo.fill([w for layer in layers for w in layer.parameters()])
    batch = zoo.inputs(training.inputs, 0)
    for x in zoo.tensors(batch):
        x.stop_gradient = True
    return step, batch


MAKERS = {f"{m.name}, step": partial(of_model, m, True) for m in zoo.MODELS}
MAKERS |= {f"{m.name}, eval": partial(of_model, m, False) for m in zoo.MODELS}
MAKERS |= {t.name: partial(of_training, t) for t in zoo.TRAININGS}


@cache
def cases(name: str) -> tuple[Case, ...]:
    """The programs that are run when a model's step is called twice: an optimizer's first step
    differs from the others.
    """
    paddle.seed(7)
    step, batch = MAKERS[name]()
    found: dict[Program, Case] = {}
    run = Captured.__call__

    def watched(self, inputs):
        if self.program not in found:
            arrays = [*(x.array for x in inputs), *(cell.read() for cell in self.states)]
            arrays = [np.array(a) for a in arrays]
            found[self.program] = Case(name, self.program, arrays, [])
        return run(self, inputs)

    Captured.__call__ = watched
    try:
        paddle.seed(5)
        step = paddle.jit.to_static(step)
        step(*batch), step(*batch)
    finally:
        Captured.__call__ = run
    return tuple(c._replace(results=results(c.program, c.arrays)) for c in found.values())


def results(program: Program, arrays) -> list:
    """What the interpreter makes of a program: outputs, then the states' updates. Constants that
    passes have added are where they put them.
    """
    arrays = [
        *arrays,
        *(s.storage.read() for s in program.states[len(arrays) - len(program.inputs) :]),
    ]
    found = QUIET.copy().run(Run(NUMPY), program, [a.copy() for a in arrays])
    return [np.array(x) for x in found]


def program_of(function, *specs, name: str = "f") -> Program:
    """The program of a function for inputs of these specs: a shape is one of floats."""
    specs = [s if isinstance(s, Spec) else Spec(tuple(s), np.dtype("float32")) for s in specs]

    def listed(*xs):
        found = function(*xs)
        return list(found) if isinstance(found, tuple | list) else [found]

    return trace(listed, specs, name=name, names=[*"xyzuvw"][: len(specs)]).program


def body(program: Program) -> str:
    """The text of a program without its head and its closing brace."""
    return "\n".join(line.strip() for line in str(program).splitlines()[1:-1])


def draw_arrays(program: Program, seed: int = 0) -> list:
    """Draw arrays for the inputs and states of a program; whole numbers are 0, 1 and 2."""
    rng = np.random.default_rng(seed)

    def array(spec):
        if spec.dtype.kind == "f":
            return rng.standard_normal(spec.shape).astype(spec.dtype)
        return rng.integers(0, 3, spec.shape).astype(spec.dtype)

    return [array(r.spec) for r in program.given]


def same_results(program: Program, other: Program, arrays=None, **tolerance) -> None:
    """Raise AssertionError unless both give the same for the same."""
    arrays = draw_arrays(program) if arrays is None else arrays
    for a, b in zip(results(program, arrays), results(other, arrays), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b, a, **({"rtol": 1e-6, "atol": 1e-6} | tolerance))
