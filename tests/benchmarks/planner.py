"""What the planner predicts, beside published runs on GPUs and beside steps on 2 and 4 ranks here.

The first table has the runs of `tests/planner/published.toml`. For the others a GPT is trained on
ranks that are threads: in data parallel, tensor parallel, ZeRO-3, and on 4 ranks on a mesh of both.
In each round all of them are measured one after the other, and beside them what the prediction is
made from: a step on one rank with and without its update, which say how fast this machine is, and
all-reduces, which say how fast its links are. So what else the machine does slows both sides. A row
shows the medians of the rounds: processor time for each rank (waiting does not count), its ratio to
data parallel in the same round, and how long a step takes by the clock. Where there are fewer cores
than ranks, they take turns, and so does the prediction. The last line says whether the planner puts
all layouts into the order in which they were measured.

    ./run bench planner --here --rounds 5
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

import minipaddle as paddle
from minipaddle import distributed as dist
from minipaddle.distributed.planner import OURS, Layout, StageJob, figures
from minipaddle.distributed.simulator import Cluster, Device, link_of
from minipaddle.static import InputSpec
from tests.planner.published import predictions

from .floor import machine
from .sharding import NETS, arrays, ours_step

BUCKETS = [1 << k for k in (12, 16, 20, 22)]
WARM, STEPS = 4, 3
"""Calls before a measurement, and of one."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def published_table() -> Table:
    """A row for each published run."""
    table = Table(title="Share of the devices' peak")
    for head in ("", "published", "predicted", "error", "layout"):
        table.add_column(head, justify="left" if head in ("", "layout") else "right")
    for each in predictions():
        run, cost = each.run, each.cost
        shares = f"{run['utilization']:.1%}", f"{cost.utilization:.1%}", f"{each.error:+.0%}"
        table.add_row(run["name"], *shares, f"{cost.layout} ({each.how})")
    return table


class Spent(NamedTuple):
    """What a call took: processor seconds for each rank, and seconds by the clock."""

    processor: float
    clock: float


def spent(call, group, times: int) -> Spent:
    """The mean of some calls, made by all ranks at once."""
    group.barrier()
    began = time.process_time(), time.perf_counter()
    for _ in range(times):
        call()
    group.barrier()
    processor, clock = time.process_time() - began[0], time.perf_counter() - began[1]
    return Spent(processor / times / group.size, clock / times)


def step_alone(update: bool):
    """A step of the GPT on one rank, with its update or without: then each gradient is read once,
    for a backward that nobody needs would be left out.
    """
    net = NETS["gpt"][0](paddle)
    x, y = (paddle.to_tensor(a) for a in arrays("gpt", [])[1])
    adam = paddle.optimizer.Adam(1e-3, parameters=net.parameters())

    @paddle.jit.to_static(backend="native")
    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        if update:
            adam.step()
        found = [] if update else [(p.grad**2).sum() for p in net.parameters()]
        net.clear_gradients()
        return loss, found

    return lambda: step(x, y)


def layouts(ranks: int) -> dict[str, Layout]:
    """The ways of `sharding.ours_step` as layouts."""
    batch = NETS["gpt"][1][0]
    found = {
        "data": Layout(data=ranks, micro_batch=batch // ranks),
        "tensor": Layout(model=ranks, micro_batch=batch),
        "zero3": Layout(sharding=ranks, micro_batch=batch // ranks, stage=3),
    }
    if ranks > 2:
        found["mesh"] = Layout(data=ranks // 2, model=2, micro_batch=2 * batch // ranks)
    return found


def rounds_here(rounds: int) -> list[dict[str, Spent | list[float]]]:
    """On each rank: what all steps took in each round, the two on one rank, and all-reduces."""
    group, rank = dist.init_parallel_env(), dist.get_rank()
    steps = {way: ours_step("gpt", way)[1] for way in layouts(group.size)}
    for name, update in (("alone", True), ("bare", False)):
        steps[name] = step_alone(update) if rank == 0 else lambda: None
    buffers = [np.zeros(nbytes // 4, "float32") for nbytes in BUCKETS]
    for call in steps.values():
        spent(call, group, WARM)
    found = []
    for _ in range(rounds):
        row = {name: spent(call, group, STEPS) for name, call in steps.items()}
        row["link"] = [spent(lambda x=x: group.all_reduce(x), group, 10).processor for x in buffers]
        found.append(row)
    return found


def job(ranks: int, found: dict, best: dict, row: dict) -> StageJob:
    """The GPT on so many ranks here, by what a round measured: how long a step of one rank takes
    without its update says what kernels reach, the update how fast memory is.
    """
    alone, bare = (row[name].processor * ranks for name in ("alone", "bare"))  # only one computes
    layout = Layout(micro_batch=NETS["gpt"][1][0])
    device = Device(best["flops_per_second"], best["bytes_per_second"])
    between = link_of(BUCKETS, row["link"], ranks)
    said = StageJob(found, device, Cluster(1, 1, between), OURS).cost(layout).seconds
    read = OURS.gradients / (OURS.gradients + 2 * OURS.states + OURS.weights)
    update = max(alone - bare, 0.01 * alone) / (1 - read)
    device = device._replace(bandwidth=device.bandwidth * said.update / update)
    said = StageJob(found, device, Cluster(1, 1, between), OURS).cost(layout).seconds
    device = device._replace(whole=said.compute / bare)
    return StageJob(found, device, Cluster(1, ranks, between), OURS)


class Compared(NamedTuple):
    """A layout here, medians of some rounds: predicted and measured seconds of processor time and
    by the clock, and their ratios to data parallel; how much the rounds differ.
    """

    way: str
    said: float
    took: float
    said_ratio: float
    took_ratio: float
    said_clock: float
    took_clock: float
    spread: float


def compared(ranks: int, rounds: int) -> list[Compared]:
    """All layouts on so many ranks."""
    build, shape, _ = NETS["gpt"]
    net, sample = build(paddle), InputSpec(shape[1:], "float32")
    sizes = {layout.model for layout in layouts(ranks).values()}
    by_ranks = {n: figures(net, sample, n, sequence=False, half=False) for n in sizes}
    best, turns = machine(1), max(1.0, ranks / CORES)
    rows = dist.spawn(rounds_here, (rounds,), nprocs=ranks).results[0]
    seen: dict[str, list[tuple]] = {}
    for row in rows:
        here = job(ranks, by_ranks, best, row)
        said = {way: here.cost(layout).seconds.total for way, layout in layouts(ranks).items()}
        for way, seconds in said.items():
            took, base = row[way], row["data"].processor
            ratios = seconds / said["data"], took.processor / base
            clock = seconds * turns, took.clock
            seen.setdefault(way, []).append((seconds, took.processor, *ratios, *clock))
    found = []
    for way, each in seen.items():
        columns = [*zip(*each, strict=True)]
        middle, took = [statistics.median(column) for column in columns], columns[1]
        found.append(Compared(way, *middle, (max(took) - min(took)) / middle[1]))
    return found


def measured_table(ranks: int, found: list[Compared]) -> Table:
    """A row for each layout on so many ranks: predicted → measured."""
    turns = f", {ranks / CORES:g} take turns on each" if ranks > CORES else ""
    title = f"A step of a GPT on {ranks} ranks and {CORES} cores{turns}: predicted → measured"
    table = Table(title=title)
    for head in ("", "error", "processor ms", "/ data parallel", "clock ms"):
        table.add_column(head, justify="right" if head else "left")
    for each in found:
        times = f"{1e3 * each.said:.1f} → {1e3 * each.took:.1f}"
        ratios = f"{each.said_ratio:.2f} → {each.took_ratio:.2f}"
        clock = f"{1e3 * each.said_clock:.0f} → {1e3 * each.took_clock:.0f}"
        table.add_row(each.way, f"{each.said / each.took - 1:+.0%}", times, ratios, clock)
    return table


def verdict(found: list[Compared]) -> str:
    """Whether the order is as predicted, and how far ratios to data parallel are off."""
    order = spearmanr([c.said for c in found], [c.took for c in found]).statistic
    ratios = max((abs(c.said_ratio / c.took_ratio - 1), c.way) for c in found)
    times = [abs(c.said / c.took - 1) for c in found]
    return (
        f"order of {len(found)} layouts by processor time: rank correlation {order:.2f}; "
        f"times off by {statistics.median(times):.0%} (median), {max(times):.0%} at most; "
        f"ratios to data parallel by {ratios[0]:.0%} at most ({ratios[1]}); "
        f"rounds of a layout differ by {statistics.median(c.spread for c in found):.0%}"
    )


def run(threads: int, arguments=()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="./run bench planner", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--here", action="store_true", help="leave the published runs out")
    options = parser.parse_args(arguments)
    if not options.here:
        Console().print(published_table())
    found = []
    for ranks in options.ranks:
        rows = compared(ranks, options.rounds)
        Console().print(measured_table(ranks, rows))
        found += rows
    print(verdict(found))
