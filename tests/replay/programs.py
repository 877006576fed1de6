"""The programs that are replayed: those that the tests, exercises and ONNX files have already.

A task of a group, `GROUPS[group]()[name]()`, returns cases. A tree without a table that is imported
here lacks the group, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import minipaddle as paddle

ROOT = Path(__file__).parents[2]
Tasks = dict[str, Callable[[], list]]


class Case(NamedTuple):
    """A program with arrays for its inputs and states; `results` are those of its run where it
    cannot run alone.
    """

    program: object
    arrays: list
    results: list | None = None


def watch(run: Callable) -> list[Case]:
    """The programs that a function runs on the first and the last rank, with their first arrays."""
    from minipaddle.engine.executors.executable_cache import ExecutableCache

    found, original = {}, ExecutableCache.run

    def watched(self, program, arrays, *more):
        if any(hasattr(a, "placements") for a in arrays):  # a rank's own program follows
            return original(self, program, arrays, *more)
        copies = [np.array(a) for a in arrays]
        results = original(self, program, arrays, *more)
        case = Case(program, copies, [np.array(y) for y in results[0]])
        found.setdefault((paddle.distributed.get_rank(), program), case)
        return results

    with mock.patch.object(ExecutableCache, "run", watched):
        run()
    last = max((rank for rank, _ in found), default=0)
    return [found[key] for rank in sorted({0, last}) for key in found if key[0] == rank]


def watch_alone(run: Callable) -> list[Case]:
    """The programs that a function runs, on one rank: they can run again."""
    return [case._replace(results=None) for case in watch(run)]


# ---- the groups ------------------------------------------------------------------------------


def operators() -> Tasks:
    """One program for each operator, of all its cases in the operator suite."""
    from minipaddle.engine.core.op import OPS
    from tests.executors.test_native_operators import fits, program_of
    from tests.ops.test_operators import ALL

    found: dict[str, list] = {}
    for name, k in ALL:
        if name in OPS and fits(name, k, "float32"):
            found.setdefault(name, []).append((name, k))

    def replay(cases):
        yield Case(*program_of(cases, "float32")[:2])

    return {name: partial(replay, cases) for name, cases in found.items()}


def models() -> Tasks:
    """The models of the transpiler's tests: what they predict, and their training steps."""
    from tests.passes.programs import MAKERS, cases

    def replay(name):
        for case in cases(name)[-1:]:
            yield Case(case.program, case.arrays)

    return {name: partial(replay, name) for name in MAKERS}


def exercises() -> Tasks:
    """A training step on the engine, with the solution of each exercise in its slots."""
    from minipaddle.learn.exercise import load, names
    from minipaddle.learn.judge import module_of
    from tests.distributed import programs, test_data_parallel

    def replay(name):
        exercise = load(name)
        with exercise.plugged(module_of(exercise.solution, f"{name}.py")):
            run = partial(test_data_parallel.trained, "mlp", programs.plain, ranks=1)
            yield from watch_alone(run)[-1:]

    return {name: partial(replay, name) for name in names()}


def distributed() -> Tasks:
    """The programs of each rank: training with averages of gradients, and on tensors in pieces.
    Ranks are threads.
    """
    from minipaddle.distributed import spawn
    from tests.distributed import test_data_parallel
    from tests.sharding import test_training as in_pieces

    tasks = {}
    for kind, step_of in test_data_parallel.EVERY:
        run = partial(test_data_parallel.trained, kind, step_of, ranks=2, bucket_mb=0.01)
        tasks[f"{kind}, {step_of.__name__}"] = partial(watch, run)
    for layout, (mesh, place, rows) in in_pieces.WAYS.items():
        for kind in ("mlp", "gpt"):
            args = kind, True, mesh, place, rows, 2
            run = partial(spawn, in_pieces.train, args=args, nprocs=np.size(mesh))
            tasks[f"{kind}, {layout}"] = partial(watch, run)
    return tasks


def int8() -> Tasks:
    """Networks on whole numbers: those of the tests of quantization, and the models' layers after
    training.
    """
    from minipaddle.quantization.observers import AbsMaxChannelWiseWeightObserver, AbsmaxObserver
    from tests.jit import models as zoo
    from tests.quantization import test_networks as nets

    zoo.collect()

    def predict(net, inputs):
        run = paddle.jit.to_static(lambda *xs: net(*xs))
        with paddle.no_grad():
            return watch_alone(lambda: run(*inputs))

    def replay_pair(pair):
        yield from predict(nets.converted(*pair), [nets.batch()])

    def replay_model(model):
        net = model.net().eval()
        if not any(isinstance(each, kinds) for each in net.sublayers()):
            return
        inputs = zoo.inputs(model.calls[0])
        ptq = nets.PTQ(nets.QuantConfig(AbsmaxObserver(), AbsMaxChannelWiseWeightObserver()))
        observed = ptq.quantize(net)
        with paddle.no_grad():
            observed(*inputs)
        yield from predict(ptq.convert(observed), inputs)

    kinds = paddle.nn.Linear, paddle.nn.Conv2D
    layers = [model for model in zoo.MODELS if isinstance(model.make, type)]
    tasks = {model.name: partial(replay_model, model) for model in layers}
    return tasks | {name: partial(replay_pair, pair) for name, pair in nets.PAIRS.items()}


def onnx() -> Tasks:
    """The models as nodes of ONNX, and the programs of files that another exporter wrote."""

    def read(path):
        net = paddle.onnx.load(str(path))
        (x,) = net.program().inputs
        shape = [n if isinstance(n, int) else 2 for n in x.shape]
        run = paddle.jit.to_static(lambda x: net(x))
        yield from watch_alone(lambda: run(paddle.ones(shape, x.dtype)))

    files = sorted((ROOT / "tests/data/onnx").glob("*.onnx"))
    return {path.stem: partial(read, path) for path in files}


GROUPS: dict[str, Callable[[], Tasks]] = {
    each.__name__: each for each in (operators, models, exercises, distributed, int8, onnx)
}
