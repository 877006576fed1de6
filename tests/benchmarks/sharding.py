"""A training step in pieces beside PyTorch's on gloo: `./run bench sharding`.

One network, three ways to lie on the ranks, which all compute the same losses:

    data     the batch cut by rows                  beside DistributedDataParallel
    tensor   weights cut by columns, then by rows   beside DTensor (parallelize_module)
    zero3    everything cut, gathered before use    beside FSDP2 (fully_shard)

Each engine is started anew in each round, one after the other, with one thread a rank; the table
shows medians over the rounds of rank 0's median step, and how much of ours the collectives take:
the same compiled step with collectives that answer at once, with what they gave before. In half a
minute is done:

    ./run bench sharding --ranks 2 --rounds 1 --steps 10 --nets mlp
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import reduce
from itertools import product
from operator import getitem
from threading import get_ident

import numpy as np
from rich.console import Console
from rich.table import Table

from minipaddle.engine.distributed.process_group import Done

from .collectives import ENGINES, started
from .timing import in_units
from .workloads.workload import is_torch, module

WAYS = ("data", "tensor", "zero3")
WARM = 4
"""Steps before the clock runs."""
STEPS = int(os.environ.get("BENCH_STEPS", 30))
WIDTH, HEAD, BLOCKS, TOKENS = 256, 64, 4, 64
CUT = {  # how tensor parallel cuts a layer's weight: by columns or by rows
    **dict.fromkeys(("q", "k", "v", "up", "0"), "columns"),
    **dict.fromkeys(("out", "down", "2"), "rows"),
}


# ---- the networks ----------------------------------------------------------------------------


def mlp(framework):
    """A perceptron with two hidden layers."""
    nn = framework.nn
    linear = [nn.Linear(*sizes) for sizes in ((784, 1024), (1024, 1024), (1024, 10))]
    return nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2])


def blocks(framework):
    """Blocks of a GPT. Heads are counted from what is there: a rank may have a part of them."""
    nn, F, torch = framework.nn, framework.nn.functional, is_torch(framework)

    def swap(x, a, b):
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        return x.permute(order) if torch else x.transpose(order)

    class Block(module(framework)):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.v, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            (n, t, _), y = x.shape, self.norm1(x)
            q, k, v = (swap(f(y).reshape([n, t, -1, HEAD]), 1, 2) for f in (self.q, self.k, self.v))
            y = F.softmax(q @ swap(k, 2, 3) * HEAD**-0.5, -1) @ v
            x = x + self.out(swap(y, 1, 2).reshape([n, t, -1]))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return nn.Sequential(*(Block() for _ in range(BLOCKS)))


NETS = {"mlp": (mlp, (128, 784), (128, 10)), "gpt": (blocks, *2 * [(8, TOKENS, WIDTH)])}
"""What builds a net, and the shapes of a batch and of what is wanted."""


def arrays(net: str, specs) -> tuple[dict, list]:
    """The same parameters, [in, out], and the same batch for everyone."""
    rng = np.random.default_rng(0)
    draw = lambda shape, scale=1.0: (scale * rng.standard_normal(shape)).astype("float32")
    weights = {name: draw(shape, shape[0] ** -0.5) for name, shape in specs if len(shape) == 2}
    return weights, [draw(shape) for shape in NETS[net][1:]]


# ---- in a rank -------------------------------------------------------------------------------


def timed(step, barrier, value=float) -> dict:
    """The losses of the first steps, and the median seconds of the later ones."""
    losses, took = [value(step()) for _ in range(WARM)], []
    barrier()
    for _ in range(STEPS):
        began = time.perf_counter()
        step()
        took.append(time.perf_counter() - began)
    barrier()
    return {"losses": losses, "seconds": statistics.median(took)}


def ours_step(net: str, way: str):
    """A step of MiniPaddle as `to_static` made it, and what calls it. The way "mesh" is data
    parallel among pairs of ranks that are tensor parallel.
    """
    import minipaddle as paddle
    from minipaddle import distributed as dist

    rows, whole = dist.Shard(0), dist.Replicate()
    ranks, grid = np.arange(dist.get_world_size()), way == "mesh"
    mesh = dist.ProcessMesh(ranks.reshape(-1, 2) if grid else ranks, ["y", "x"][1 - grid :])

    def lies(name, shape):
        """The placement of a parameter."""
        layer, what = name.split(".")[-2:]
        if way not in ("tensor", "mesh"):
            return rows if way == "zero3" else whole
        cut = CUT.get(layer)
        if cut == "columns":
            return dist.Shard(len(shape) - 1)
        return rows if cut and what == "weight" else whole

    model = NETS[net][0](paddle)
    weights, batch = arrays(net, [(n, p.shape) for n, p in model.named_parameters()])
    for name, p in model.named_parameters():
        value = weights.get(name, p.numpy())  # biases are 0, scales of norms 1
        p.set_value(paddle.to_tensor(value))
        dist.shard_tensor(p, mesh, [whole, lies(name, p.shape)][1 - grid :])
    kind = [rows, whole] if grid else [whole if way == "tensor" else rows]
    x, y = (dist.shard_tensor(paddle.to_tensor(a), mesh, kind) for a in batch)
    adam = paddle.optimizer.Adam(1e-3, parameters=model.parameters())

    @paddle.jit.to_static(backend="native")
    def step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return step, lambda: step(x, y)


def ours(nets=tuple(NETS)) -> dict:
    """{net: {way: figures}} of MiniPaddle."""
    from minipaddle import distributed as dist

    group, found = dist.init_parallel_env(), {}
    for net, way in product(nets, WAYS):
        _, step = ours_step(net, way)
        row = found.setdefault(net, {})[way] = timed(step, group.barrier)
        with silent(group, step):
            row["alone"] = timed(step, group.barrier)["seconds"]
    return found


BEGIN: dict[type, Callable] = {}
RECORDED: dict[int, list] = {}
PLACE: dict[int, int] = {}
"""How each kind of group begins a collective; what those of a step gave to each rank's thread, and
which comes next."""


def record(self, name: str, array, **options):
    """A collective whose result is kept."""
    found = BEGIN[type(self)](self, name, array, **options).wait()
    if name != "barrier":
        RECORDED.setdefault(get_ident(), []).append(found)
    return Done(found)


def replay(self, name: str, array, **options):
    """The result of the collective that stood here in the recorded step, at once."""
    if name == "barrier":
        return BEGIN[type(self)](self, name, array, **options)
    own, k = RECORDED[get_ident()], PLACE.get(get_ident(), 0)
    PLACE[get_ident()] = (k + 1) % len(own)
    return Done(own[k])


@contextmanager
def silent(group, step):
    """In the block collectives of all groups answer at once, with what they gave in a step."""
    kind = type(group)
    BEGIN.setdefault(kind, kind.start)
    for start in (record, replay):
        group.barrier()
        kind.start = start
        group.barrier()
        if start is record:
            RECORDED[get_ident()], PLACE[get_ident()] = [], 0
            step()
    try:
        yield
    finally:
        group.barrier()
        kind.start = BEGIN[kind]
        group.barrier()


def torch_on_gloo(nets=tuple(NETS)) -> dict:
    """{net: {way: figures}} of PyTorch."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    kinds = {"columns": ColwiseParallel, "rows": RowwiseParallel}

    def placed(model, way):
        if way == "data":
            return torch.nn.parallel.DistributedDataParallel(model)
        for child in model:
            if way == "zero3" and [*child.parameters()]:
                fully_shard(child, mesh=mesh)
        if way == "zero3":
            return fully_shard(model, mesh=mesh)
        names = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
        cut = {n: CUT.get(n.rpartition(".")[2]) for n in names}
        return parallelize_module(model, mesh, {n: kinds[c]() for n, c in cut.items() if c})

    def step_of(net, way):
        model = NETS[net][0](torch)
        turned = lambda p: p.T if p.ndim == 2 else p  # PyTorch's weights are [out, in]
        specs = [(n, [*turned(p).shape]) for n, p in model.named_parameters()]
        weights, batch = arrays(net, specs)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if name in weights:
                    p.copy_(turned(torch.from_numpy(weights[name])))
                elif name.endswith("bias"):
                    p.zero_()
        model = placed(model, way)
        part = (
            slice(None) if way == "tensor" else np.array_split(np.arange(len(batch[0])), size)[rank]
        )
        x, y = (torch.from_numpy(a[part]) for a in batch)
        adam = torch.optim.Adam(model.parameters(), 1e-3)

        def step():
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            adam.step()
            adam.zero_grad()
            return loss.detach()

        return step

    def mean(loss):
        """The mean of all ranks: each has the loss of its own rows."""
        dist.all_reduce(loss)
        return float(loss) / size

    found = {}
    for net, way in product(nets, WAYS):
        found.setdefault(net, {})[way] = timed(step_of(net, way), dist.barrier, mean)
    found = found if rank == 0 else {}
    dist.destroy_process_group()
    return found


def main(engine: str, ranks: int) -> None:
    """Be an engine, or one rank of it; rank 0 prints."""
    nets = os.environ["BENCH_NETS"].split()
    if engine == "threads":
        from minipaddle.distributed import spawn

        found = spawn(ours, (nets,), nprocs=ranks).results[0]
    else:
        found = {"mpi": ours, "gloo": torch_on_gloo}[engine](nets)
    if int(os.environ.get("PMI_RANK", os.environ.get("RANK", 0))) == 0:
        print(json.dumps(found), flush=True)


# ---- who starts them -------------------------------------------------------------------------


def table(ranks: int, rounds: dict[str, list], nets) -> None:
    """Print the medians of the rounds."""
    shown = Table(title=f"A step on {ranks} ranks, medians")
    for head in ("", *rounds, "ours / theirs", "collectives take"):
        shown.add_column(head, justify="right" if head else "left")
    middle = lambda found, *keys: statistics.median(reduce(getitem, keys, f) for f in found)
    for net, way in product(nets, WAYS):
        took = {engine: middle(found, net, way, "seconds") for engine, found in rounds.items()}
        mine = {engine: t for engine, t in took.items() if engine != "gloo"}
        ratio = [f"{t / took['gloo']:.2f}" for t in mine.values() if "gloo" in took]
        free = [f"{1 - middle(rounds[e], net, way, 'alone') / t:.0%}" for e, t in mine.items()]
        cells = ", ".join(ratio), ", ".join(free)
        shown.add_row(f"{net}, {way}", *(in_units(t) for t in took.values()), *cells)
        first = {engine: found[0][net][way]["losses"][:2] for engine, found in rounds.items()}
        if not np.allclose([*first.values()], first[next(iter(first))], rtol=1e-4):
            raise RuntimeError(f"{net}, {way}: the losses differ: {first}")
    Console().print(shown)


def run(threads: int, arguments) -> None:
    """Print a table for each number of ranks."""
    parser = argparse.ArgumentParser(prog="./run bench sharding", description=__doc__)
    add = parser.add_argument
    add("--ranks", type=int, nargs="+", default=[2, 4])
    add("--rounds", type=int, default=3)
    add("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    add("--nets", nargs="+", choices=NETS, default=[*NETS])
    add("--steps", type=int, default=STEPS, help="of each net, each way")
    options = parser.parse_args(arguments)
    os.environ |= {"BENCH_STEPS": str(options.steps), "BENCH_NETS": " ".join(options.nets)}
    for ranks in options.ranks:
        rounds: dict[str, list] = {engine: [] for engine in options.engines}
        for _ in range(options.rounds):
            for engine, found in rounds.items():
                found.append(started(engine, ranks, "tests.benchmarks.sharding"))
        table(ranks, rounds, options.nets)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
