"""Memory of a training step: eager mode, and the arena that a plan of its program needs.

./run bench memory --tokens 512 1024 2048 4096    a GPT on longer and longer texts instead
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
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
from tests.benchmarks import frameworks, models
from tests.benchmarks.workloads.gpt import trained_on

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


def captured(workload, **how):
    """(A step, the function that was captured)."""
    statics = []

    def whole(step):
        statics.append(minipaddle.jit.to_static(step, **how))
        return statics[0]

    return models.step_of(minipaddle, workload, whole=whole), statics[0]


def program_of(workload):
    """The program of a step; None if it has sizes that are known only while it runs."""
    step, static = captured(workload)
    step(), step()
    program = static.concrete_program.program
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
    parser = argparse.ArgumentParser(prog="./run bench memory")
    parser.add_argument("--tokens", type=int, nargs="+", help="of the text of a GPT's step")
    tokens = parser.parse_args([*arguments]).tokens
    if tokens:
        by_tokens(tokens, threads)
    else:
        by_workload()


def by_tokens(tokens: list[int], threads: int) -> None:
    """Native steps of a GPT on one text: the arena and the outputs, beside PyTorch's memory."""
    table = Table(title="Memory of a step of a GPT on one text")
    for head in ["tokens", "MiB", "KiB a token", "PyTorch, MiB", "ours / theirs", "losses"]:
        table.add_column(head, justify="right")
    there = importlib.util.find_spec("torch") is not None
    if there:
        frameworks.keep_to("torch", threads)
    for count in tokens:
        workload = trained_on(count)
        step, static = captured(workload, backend="native")
        losses = [f"{float(step()):.3f}" for _ in range(3)]
        plan = static.executables[-1].plan
        size = plan.size + sum(r.spec.nbytes for r in plan.program.outputs)
        theirs = frameworks.torch(workload, models.weights_of(workload)).memory() if there else None
        peer = [f"{theirs / MIB:.1f}", mark(size / theirs, 1)] if there else ["", ""]
        row = [f"{count:,}", f"{size / MIB:.1f}", f"{size / 1024 / count:.1f}", *peer]
        table.add_row(*row, ", ".join(losses))
    Console().print(table)


def by_workload() -> None:
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
