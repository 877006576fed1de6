"""Chapter 29's reader of lines, trained by however many ranks there are:

    mpiexec -n 2 python -m mpi4py tests/distributed/train_reader.py

Each takes its part of every batch. Batch norms keep their statistics.
"""

import json
import sys
from pathlib import Path

import matplotlib

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[2] / "hub"))
import text_lines
from text_networks import LETTERS, Reader

FONT = str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"))
STEPS, ROWS = 4, 8


def train():
    """The losses of all ranks together, and a sum over the weights of each rank."""
    dist.init_parallel_env()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    paddle.seed(1)
    net = Reader(len(LETTERS) + 1, width=32).eval()
    paddle.DataParallel(net)
    adam = paddle.optimizer.Adam(1e-3, parameters=net.parameters())
    losses = []
    for k in range(STEPS):
        pictures, texts = text_lines.draw_batch(ROWS, [FONT], k, text_lines.write_number)
        whole = (pictures, *text_lines.number_letters(texts))
        pictures, labels, counts = (paddle.to_tensor(each[rank::ranks]) for each in whole)
        scores = net.score(pictures).transpose([1, 0, 2])
        long = paddle.full([len(pictures)], scores.shape[0], "int64")
        loss = F.ctc_loss(scores, labels, long, counts)
        loss.backward()
        adam.step()
        adam.clear_grad()
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        losses.append(loss.item())
    sums = []
    dist.all_gather_object(sums, sum(float(p.abs().sum()) for p in net.parameters()))
    return losses, sums


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if sys.argv[1:] else 2
    losses, sums = dist.spawn(train, nprocs=ranks, timeout=60).results[0]
    if dist.get_rank() == 0:
        backend = dist.get_backend()
        print(json.dumps({"backend": backend, "losses": losses, "sums": sums}), flush=True)
