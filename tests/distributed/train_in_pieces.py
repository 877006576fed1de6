"""A script that trains a GPT on tensors in pieces, on one rank or on a mesh of two by two:

    %run tests/distributed/train_in_pieces.py        in a notebook: four ranks, threads
    mpiexec -n 4 python -m mpi4py tests/distributed/train_in_pieces.py

From data to tensor parallel to ZeRO-3 nothing changes but the lines of `PLACEMENTS`.
"""

import json
import sys

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.nn import functional as F
from tests.sharding.models import GPT, R, megatron

ROWS = dist.Shard(0)
PLACEMENTS = {  # of a parameter, and of a batch, on the axes of the mesh
    "data": (lambda name, spec: [R, R], [ROWS, ROWS]),
    "tensor": (lambda name, spec: megatron(name, spec, [R]), [ROWS, R]),
    "zero3": (lambda name, spec: [ROWS, R], [ROWS, ROWS]),
}
STEPS = 5


def train(way: str) -> list[float]:
    """The loss of each step."""
    place, batch = PLACEMENTS[way]
    size = dist.get_world_size()
    mesh = dist.ProcessMesh(np.arange(size).reshape(-1, 2 if size > 1 else 1), ["dp", "mp"])
    paddle.seed(3)
    net, rng = GPT(), np.random.default_rng(0)
    for name, p in net.named_parameters():
        dist.shard_tensor(p, mesh, place(name, p.spec))
    tokens = rng.integers(0, 32, (4, 9))
    x, y = (
        dist.shard_tensor(paddle.to_tensor(each), mesh, batch)
        for each in (tokens[:, :-1].copy(), tokens[:, 1:].copy())
    )
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    adam = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=net.parameters(), grad_clip=clip)

    @paddle.jit.to_static
    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), y.reshape([-1]))
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return [float(step(x, y)) for _ in range(STEPS)]


def curves() -> dict[str, list[float]]:
    """The losses by placement."""
    dist.init_parallel_env()
    return {way: train(way) for way in PLACEMENTS}


def main(ranks: int) -> dict[str, list[float]]:
    """The curves, which all ranks must find alike."""
    every = dist.spawn(curves, nprocs=ranks, timeout=60).results
    assert all(found in (None, every[0]) for found in every), "the ranks have drifted apart"
    if dist.get_rank() == 0:
        print(json.dumps({"backend": dist.get_backend(), "curves": every[0]}), flush=True)
    return every[0]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
