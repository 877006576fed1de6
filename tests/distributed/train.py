"""A script that trains on however many ranks there are, wherever it is started:

    %run tests/distributed/train.py            in a notebook: four ranks, threads
    mpiexec -n 4 python -m mpi4py tests/distributed/train.py
    python -m minipaddle.distributed.launch --nproc 4 tests/distributed/train.py

Where there is a GPU for each rank they compute there, and talk by NCCL.
"""

import json
import os
import sys
import tempfile

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.io import DataLoader, DistributedBatchSampler, TensorDataset

BATCH = 48  # of all ranks together
EPOCHS = 3


def data():
    """Points in the plane, and which of four rings each lies in."""
    rng = np.random.default_rng(0)
    angle, label = rng.uniform(0, 2 * np.pi, 480), rng.integers(0, 4, 480)
    radius = label + rng.uniform(0.6, 1.4, 480)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype("float32")
    return TensorDataset([paddle.to_tensor(points), paddle.to_tensor(label)])


def network():
    """Batch norm takes the moments of the batches of all ranks."""
    return nn.Sequential(
        nn.Linear(2, 32), nn.BatchNorm1D(32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(),
        nn.Linear(32, 4),
    )  # fmt: skip


def train():
    """The mean loss of each step; rank 0 saves the weights."""
    dist.init_parallel_env()
    paddle.seed(1 + dist.get_rank())
    net = nn.SyncBatchNorm.convert_sync_batchnorm(network())
    net = paddle.DataParallel(net, comm_buffer_size=0.002, last_comm_buffer_size=0.0005)
    opt = paddle.optimizer.Momentum(0.1, 0.9, net.parameters())
    criterion = nn.CrossEntropyLoss()
    sampler = DistributedBatchSampler(data(), BATCH // dist.get_world_size(), shuffle=True)
    losses = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(sampler.dataset, batch_sampler=sampler):
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
            dist.all_reduce(loss, dist.ReduceOp.AVG)
            losses.append(loss.item())
    if dist.get_rank() == 0:
        with tempfile.TemporaryDirectory() as folder:
            paddle.save(net.state_dict(), os.path.join(folder, "net.pdparams"))
            network().set_state_dict(paddle.load(os.path.join(folder, "net.pdparams")))
    found = []
    dist.all_gather_object(found, [float(p.numpy().sum()) for p in net.parameters()])
    assert found == [found[0]] * len(found), "the copies of the model have drifted apart"
    return losses


def main(ranks: int):
    """The losses of rank 0."""
    if paddle.is_compiled_with_cuda():
        paddle.set_device("gpu")
    losses = dist.spawn(train, nprocs=ranks, timeout=60).results[0]
    if dist.get_rank() == 0:
        print(json.dumps({"backend": dist.get_backend(), "losses": losses}), flush=True)
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
