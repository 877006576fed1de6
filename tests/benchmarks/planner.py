"""What the planner predicts, beside published runs on GPUs and beside steps on 2 and 4 ranks here.

The first table has the runs of `tests/planner/published.toml`. For the second a step on one rank,
with and without its update, says how fast this machine is, all-reduces on n ranks how fast the
links between threads are;
the planner says how long the same net takes in data parallel, tensor parallel and ZeRO-3 on n
ranks, and it is measured. All times are processor times for each rank, so that others who use the
processors, and ranks that wait for each other, do not count. On two busy cores the order of the
three ways still changed from run to run: read no more into it than the machine allows.

    ./run bench planner --ranks 2 --rounds 3
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
from minipaddle import distributed as dist
from minipaddle.distributed.planner import Job, Layout, Recipe, figures
from minipaddle.distributed.simulator import Cluster, Device, Link, link_of
from minipaddle.static import InputSpec
from tests.planner.published import predictions

from .floor import machine
from .sharding import NETS, STEPS, WAYS, arrays, ours_step

HERE = Recipe(weights=4, gradients=4, states=8, clip=False, fused_attention=False,
              overlap_tensor=False, overlap_data=False, sequence=False, half=False)  # fmt: skip
"""Training in float32, collectives waited for where they stand."""
BUCKETS = [1 << k for k in (12, 16, 20, 22)]


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


def took(way: str) -> float:
    """Seconds of a step of a rank of the GPT."""
    group = dist.init_parallel_env()
    return least(ours_step("gpt", way)[1], group)


def without_update() -> float:
    """Seconds of a step of one rank that computes gradients, and leaves the weights."""
    group = dist.init_parallel_env()
    net = NETS["gpt"][0](paddle)
    x, y = (paddle.to_tensor(a) for a in arrays("gpt", [])[1])

    @paddle.jit.to_static(backend="native")
    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        net.clear_gradients()
        return loss

    return least(lambda: step(x, y), group)


def least(call, group, times: int = 3) -> float:
    """The processor time of a call for each rank, the least of some means: what it would take if
    nobody else used the processors, and no rank waited for another.
    """
    found = []
    for k in range(2 + max(3, STEPS // times)):
        group.barrier()
        began = time.process_time()
        for _ in range(times):
            call()
        group.barrier()
        spent = time.process_time() - began
        found += [spent / times / group.size] if k > 1 else []
    return min(found)


def link() -> Link:
    """The link on which rings take as long as all-reduces of these ranks."""
    group, times = dist.init_parallel_env(), []
    for nbytes in BUCKETS:
        array = np.zeros(nbytes // 4, "float32")
        times.append(least(lambda array=array: group.all_reduce(array), group, 20))
    return link_of(BUCKETS, times, group.size)


def job(ranks: int, alone: float, bare: float, between: Link) -> Job:
    """The GPT on so many ranks here, where a step of one rank takes `alone` seconds, and `bare`
    without its update: that one says how fast memory is, the rest what kernels reach.
    """
    build, shape, _ = NETS["gpt"]
    net, sample = build(paddle), InputSpec(shape[1:], "float32")
    found = {n: figures(net, sample, n, sequence=False, half=False) for n in {1, ranks}}
    best = machine(1)
    layout = Layout(micro_batch=shape[0])
    device = Device(best["flops_per_second"], best["bytes_per_second"])
    said = Job(found, device, Cluster(1, 1, between), HERE).cost(layout).seconds
    device = device._replace(bandwidth=device.bandwidth * said.update / (alone - bare))
    said = Job(found, device, Cluster(1, 1, between), HERE).cost(layout).seconds
    device = device._replace(whole=said.compute / bare)
    return Job(found, device, Cluster(1, ranks, between), HERE)


def layouts(ranks: int) -> dict[str, Layout]:
    """The three ways as layouts."""
    batch = NETS["gpt"][1][0]
    return {
        "data": Layout(data=ranks, micro_batch=batch // ranks),
        "tensor": Layout(model=ranks, micro_batch=batch),
        "zero3": Layout(sharding=ranks, micro_batch=batch // ranks, stage=3),
    }


def measured_table(ranks: int, rounds: int) -> Table:
    """A row for each way on so many ranks: predicted and measured."""
    seen: dict[str, list[float]] = {way: [] for way in ("alone", *WAYS)}
    links, bare = [], []
    for _ in range(rounds):
        bare += dist.spawn(without_update, nprocs=1).results
        seen["alone"] += dist.spawn(took, ("data",), nprocs=1).results
        links.append(dist.spawn(link, nprocs=ranks).results[0])
        for way in WAYS:
            seen[way].append(dist.spawn(took, (way,), nprocs=ranks).results[0])
    middle = {way: min(times) for way, times in seen.items()}
    between = Link(*(statistics.median(column) for column in zip(*links, strict=True)))
    here = job(ranks, middle["alone"], min(bare), between)
    costs = {way: here.cost(layout) for way, layout in layouts(ranks).items()}
    said = {way: cost.seconds.total for way, cost in costs.items()}
    same = sorted(said, key=said.get) == sorted(WAYS, key=middle.get)
    title = f"A step of a GPT on {ranks} ranks: ranking {'as' if same else 'not as'} predicted"
    table = Table(
        title=f"{title}; one rank {middle['alone'] * 1e3:.0f} ms, "
        f"{min(bare) * 1e3:.0f} without its update"
    )
    for head in ("", "predicted ms", "measured ms", "predicted / data", "measured / data"):
        table.add_column(head, justify="right" if head else "left")
    for way in WAYS:
        both = (said[way] * 1e3, middle[way] * 1e3)
        ratio = (said[way] / said["data"], middle[way] / middle["data"])
        table.add_row(way, *(f"{t:.1f}" for t in both), *(f"{r:.2f}" for r in ratio))
    return table


def run(threads: int, arguments=()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="./run bench planner", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--here", action="store_true", help="leave the published runs out")
    options = parser.parse_args(arguments)
    if not options.here:
        Console().print(published_table())
    for ranks in options.ranks:
        Console().print(measured_table(ranks, options.rounds))
