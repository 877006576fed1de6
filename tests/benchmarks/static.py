"""Programs: a training step captured, tracing it, and a call that finds its program."""

from __future__ import annotations

import functools
import time

import numpy as np

import minipaddle
from tests.benchmarks import models
from tests.benchmarks.eager import peers
from tests.benchmarks.timing import in_units, interleaved, report


def steps(frameworks) -> dict[str, dict[str, float]]:
    """The same step: eager, its loss converted, all of it one program (on the interpreter)."""
    rows = {}
    for title, workload in models.STEPS.items():
        candidates = {"minipaddle": captured(workload)}
        candidates["network"] = models.step_of(minipaddle, workload, convert=static(minipaddle))
        candidates["eager"] = models.step_of(minipaddle, workload)
        if "torch" in frameworks:
            candidates["torch"] = models.step_of(frameworks["torch"], workload)
        if "paddle" in frameworks:
            paddle = frameworks["paddle"]
            candidates["paddle network"] = models.step_of(paddle, workload, convert=static(paddle))
        losses = {n: [models.numbers(step()) for _ in range(3)] for n, step in candidates.items()}
        for name, values in losses.items():
            np.testing.assert_allclose(
                values, losses["minipaddle"], rtol=2e-3, err_msg=f"{title}: losses of {name} differ"
            )
        rows[title] = interleaved(candidates, title=title, rounds=9, seconds=0.3)
    return rows


def captured(workload):
    """A step that is one program."""
    return models.step_of(minipaddle, workload, whole=static(minipaddle))


def static(framework):
    return functools.partial(framework.jit.to_static, full_graph=True)


def hits(frameworks) -> dict[str, dict[str, float]]:
    """A call that finds its program: four tensors go in, the first comes out."""
    rows = {}
    candidates = {}
    for name in ("minipaddle", "paddle"):
        if name in frameworks:
            framework = frameworks[name]
            x = framework.ones([4])
            candidates[name] = functools.partial(static(framework)(first), x, x, x, x)
    rows["a hit, four tensors"] = interleaved(candidates, title="a hit")
    return rows


def first(a, b, c, d):
    return a


def tracing(frameworks) -> None:
    """How long the first call of a step takes beyond a later one: converting and tracing."""
    for title, workload in models.STEPS.items():
        step = captured(workload)
        began = time.perf_counter()
        step()
        step()  # gradients waited for nobody at first: the second call may trace again
        both = time.perf_counter() - began
        again = interleaved({"step": step}, rounds=5)["step"]
        print(f"tracing {title}: {in_units(both - 2 * again)} before the third call")


def run(threads: int, arguments=()) -> None:
    frameworks = peers()
    if "torch" in frameworks:
        frameworks["torch"].set_num_threads(threads)
    report(f"Calls ({threads} thread)", hits(frameworks))
    tracing(frameworks)
    report(f"A training step as a program ({threads} thread)", steps(frameworks))
