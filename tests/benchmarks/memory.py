"""Memory of a training step: eager mode, and the arena that a plan of its program needs."""

from __future__ import annotations

import gc
import time
import tracemalloc

from rich.console import Console
from rich.table import Table

import minipaddle
from minipaddle.engine.core.dim import Dim
from minipaddle.engine.passes.arena import FAST, height
from minipaddle.engine.passes.lifetimes import specs_of
from minipaddle.engine.passes.list_scheduling import schedule
from minipaddle.engine.passes.manager import optimized
from minipaddle.engine.passes.memory import plan
from minipaddle.passes.arena_search import by_climbing
from minipaddle.passes.recompute import recompute
from tests.benchmarks import models

MIB = 2**20
PYTORCH = {"gpt": 20, "resnet": 22}
"""The transient heap of a step in PyTorch's eager mode, MiB."""
PRICE = 2e-9
"""Seconds that a byte less may cost: what a few operators move, no products of matrices."""
CLOSE, LESS = 1.05, 0.7
"""The arena to the largest live set, and with the outputs to eager mode's peak, at most."""


def eager_peak(workload) -> int:
    """The most bytes that a step of eager mode holds above what outlives it."""
    tracemalloc.start(1)
    step = models.step_of(minipaddle, workload)
    for _ in range(3):
        step()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


def program_of(workload):
    """The program of a step; None if it has sizes that are known only while it runs."""
    statics = []

    def whole(step):
        statics.append(minipaddle.jit.to_static(step))
        return statics[0]

    step = models.step_of(minipaddle, workload, whole=whole)
    step(), step()
    program = statics[0].concrete_program.program
    sizes = [n for r in program.records for s in specs_of(r) for n in s.shape]
    return None if any(type(n) is Dim for n in sizes) else program


def variants(program):
    """(name, program): as it is traced, and what the passes make of it."""
    yield "as traced", program
    yield "scheduled", schedule(program)
    after = schedule(optimized(program).program)
    yield "optimized", after
    yield "recomputed", schedule(recompute(after, budget=0, price=PRICE))


def run(threads: int, arguments=()) -> None:
    table = Table(title="Memory of a step, MiB")
    heads = ["step", "program", "records", "sum", "live set", "arena", "to live", "to eager"]
    for head in [*heads, "eager", "PyTorch"]:
        table.add_column(head, justify="left" if head in heads[:2] else "right")
    first = {}
    for name, workload in models.WORKLOADS.items():
        program, peak = program_of(workload), eager_peak(workload)
        if program is None:
            continue
        for k, (what, each) in enumerate(variants(program)):
            found = plan(each)
            first.setdefault(name, found)
            figures = [f"{n / MIB:.2f}" for n in (found.total, found.live, found.size)]
            outputs = sum(r.spec.nbytes for r in each.outputs)
            ratios = [mark(found.ratio, CLOSE), mark((found.size + outputs) / peak, LESS)]
            once = [f"{peak / MIB:.2f}", str(PYTORCH.get(name, ""))] if k == 0 else ["", ""]
            table.add_row(
                name if k == 0 else "", what, str(len(each.records)), *figures, *ratios, *once
            )
    Console().print(table)
    offsets(first)


def mark(value: float, most: float) -> str:
    return f"{value:.3f} {'✓' if value <= most else '✗'}"


def offsets(plans: dict) -> None:
    """Each method of placing the pieces: the arena to the bound, and the time."""
    table = Table(title="Offsets: arena to live set, and milliseconds", show_lines=False)
    methods = FAST | {"search": by_climbing}
    for head in ["step", "pieces", *methods]:
        table.add_column(head, justify="right")
    for name, found in plans.items():
        buffers, cells = [each.buffer for each in found.allocations], []
        for method in methods.values():
            began = time.perf_counter()
            places = method(buffers)
            took = 1e3 * (time.perf_counter() - began)
            cells.append(f"{height(buffers, places) / max(found.live, 1):.3f}, {took:.1f}")
        table.add_row(name, str(len(buffers)), *cells)
    Console().print(table)
