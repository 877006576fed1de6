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
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
from minipaddle.nn import functional as F
from tests.sharding.models import GPT, Block, R, megatron

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


def train_in_stages() -> list[float]:
    """The loss of each step of a pipeline of two stages, each of two ranks in tensor parallel."""
    strategy, size = fleet.DistributedStrategy(), dist.get_world_size()
    strategy.hybrid_configs = {"pp_degree": min(size, 2), "mp_degree": max(size // 2, 1)}
    strategy.pipeline_configs = {
        "accumulate_steps": 4, "micro_batch_size": 1, "schedule_mode": "ZBH1"
    }  # fmt: skip
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(3)
    blocks = [LayerDesc(Block, 16, 4, 0.1) for _ in range(2)]
    row = [LayerDesc(nn.Embedding, 32, 16), *blocks, LayerDesc(nn.Linear, 16, 32)]
    loss = lambda scores, y: F.cross_entropy(scores.reshape([-1, 32]), y.reshape([-1]))
    model = fleet.distributed_model(PipelineLayer(row, loss_fn=loss))
    if size > 1:
        mesh = fleet.get_hybrid_communicate_group().mesh
        for name, p in model.named_parameters():
            dist.shard_tensor(p, mesh, megatron(name, p.spec))
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    adam = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=model.parameters(), grad_clip=clip)
    adam = fleet.distributed_optimizer(adam)
    tokens = paddle.to_tensor(np.random.default_rng(0).integers(0, 32, (4, 9)))
    return [float(model.train_batch((tokens[:, :-1], tokens[:, 1:]), adam)) for _ in range(STEPS)]


def curves() -> dict[str, list[float]]:
    """The losses by placement, and those in stages."""
    dist.init_parallel_env()
    return {way: train(way) for way in PLACEMENTS} | {"stages": train_in_stages()}


def main(ranks: int) -> dict[str, list[float]]:
    """The curves, which all ranks must find alike."""
    every = dist.spawn(curves, nprocs=ranks, timeout=60).results
    assert all(found in (None, every[0]) for found in every), "the ranks have drifted apart"
    if dist.get_rank() == 0:
        print(json.dumps({"backend": dist.get_backend(), "curves": every[0]}), flush=True)
    return every[0]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
