"""Checkpoints of tensors in pieces beside torch.distributed.checkpoint's: 100 MiB on two ranks.

Two ranks hold the rows of eight tensors. They write a checkpoint, and load it where columns are
asked for, so that each rank reads from both files. Ours is on the disk before it appears under its
name. Each engine is started anew in each round; medians of the rounds, of rank 0's median.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile

import numpy as np

from .collectives import measured, started
from .timing import report

RANKS, ROUNDS, TIMES = 2, 3, 5
SHAPE = 8, 1280, 2560
"""Tensors, and the shape of each: 100 MiB of float32."""
OURS = ("mpi", "threads")


def arrays() -> list[np.ndarray]:
    """The same whole tensors in all ranks."""
    return [*np.random.default_rng(0).random(SHAPE, "float32")]


def figures(save, load, barrier, right) -> dict[str, float]:
    """The seconds of both, and whether what was loaded is what was saved."""
    found = {"save": measured(save, barrier, TIMES), "load": measured(load, barrier, TIMES)}
    assert right(), "another tensor was loaded"
    return found


def ours(folder: str) -> dict[str, float]:
    import minipaddle as paddle
    from minipaddle import distributed as dist

    group = dist.init_parallel_env()
    mesh, whole = dist.ProcessMesh([*range(dist.get_world_size())]), arrays()
    lie = lambda values, dim: {
        f"w{k}": dist.shard_tensor(paddle.to_tensor(a), mesh, [dist.Shard(dim)])
        for k, a in enumerate(values)
    }
    state, empty = lie(whole, 0), lie([np.zeros_like(a) for a in whole], 1)
    return figures(
        lambda: dist.save_state_dict(state, folder, unique_id=0),
        lambda: dist.load_state_dict(empty, folder),
        group.barrier,
        lambda: all((empty[f"w{k}"].numpy() == a).all() for k, a in enumerate(whole)),
    )


def theirs(folder: str) -> dict[str, float]:
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo")
    mesh, whole = init_device_mesh("cpu", (dist.get_world_size(),)), arrays()
    lie = lambda values, dim: {
        f"w{k}": distribute_tensor(torch.from_numpy(a), mesh, [Shard(dim)])
        for k, a in enumerate(values)
    }
    state, empty = lie(whole, 0), lie([np.zeros_like(a) for a in whole], 1)
    found = figures(
        lambda: dcp.save(state, checkpoint_id=folder),
        lambda: dcp.load(empty, checkpoint_id=folder),
        dist.barrier,
        lambda: all((empty[f"w{k}"].full_tensor().numpy() == a).all() for k, a in enumerate(whole)),
    )
    dist.destroy_process_group()
    return found


def main(engine: str, ranks: int) -> None:
    """Be an engine, or one rank of it; rank 0 prints."""
    folder = os.environ["BENCH_FOLDER"]
    if engine == "threads":
        from minipaddle.distributed import spawn

        found = spawn(ours, (folder,), nprocs=ranks).results[0]
    else:
        found = {"mpi": ours, "gloo": theirs}[engine](folder)
    if int(os.environ.get("PMI_RANK", os.environ.get("RANK", 0))) == 0:
        print(json.dumps(found), flush=True)


def run(threads: int, arguments=()) -> None:
    rows: dict[str, dict[str, list]] = {"save": {}, "load": {}}
    for _ in range(ROUNDS):
        for engine in (*OURS, "gloo"):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["BENCH_FOLDER"] = folder
                found = started(engine, RANKS, "tests.benchmarks.sharded_checkpoints")
            name = {"mpi": "minipaddle", "gloo": "torch"}.get(engine, engine)
            for what, seconds in found.items():
                rows[what].setdefault(name, []).append(seconds)
    middle = {w: {n: statistics.median(ts) for n, ts in row.items()} for w, row in rows.items()}
    report(f"100 MiB on {RANKS} ranks", middle)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
