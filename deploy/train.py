"""A GPT that learns to write like Python's help texts, on however many workers there are. The
planner says how they divide model and batch. Training goes on from its last checkpoint:

    python deploy/train.py runs/gpt
    python -m minipaddle.distributed.launch --nproc 4 --max_restart 3 --elastic_level 2 \
        deploy/train.py runs/gpt
    python deploy/train.py runs/gpt --ray 4
"""

import argparse
import json
import os
import sys
from pydoc_data.topics import topics

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.fleet import elastic
from minipaddle.distributed.planner import OURS, apply_plan, describe, plan
from minipaddle.distributed.simulator import cluster_named
from minipaddle.nn import functional as F
from minipaddle.static import InputSpec

TEXT = "\n".join(topics[name] for name in sorted(topics))
LETTERS = sorted({*TEXT})


class Replica:
    """A model with its optimizer, as each worker has it."""

    def __init__(self, options):
        paddle.seed(0)
        self.batch, n = options.batch, options.length + 1
        tokens = np.array([*map(LETTERS.index, TEXT[: options.letters])])
        self.texts = tokens[: len(tokens) // n * n].reshape(-1, n)
        self.model = paddle.text.GPT(len(LETTERS), options.width, options.layers, 4, options.length)
        self.optimizer = paddle.optimizer.AdamW(options.rate, parameters=self.model.parameters())

    def batch_of(self, step, *share):
        """(letters, those that follow) of a share of a step's batch: by default this rank's."""
        rows = elastic.own_samples(step, self.batch, len(self.texts), 0, *share)
        return paddle.to_tensor(self.texts[rows, :-1]), paddle.to_tensor(self.texts[rows, 1:])

    def part(self, step):
        """This rank's part of the mean loss of a step's batch: the parts of all ranks add up."""
        letters, following = self.batch_of(step)
        return F.cross_entropy(self.model(letters), following) * (len(letters) / self.batch)


def train_by_mpi(options) -> None:
    """This process is one rank of `launch`, `mpiexec` or `srun`; or it is alone."""
    ranks, replica = dist.init_parallel_env().size, Replica(options)
    device, cluster = cluster_named(options.cluster or f"1x{ranks} CPU")
    sample = InputSpec([options.length], "int64")
    device = device._replace(memory=options.memory or device.memory)
    job = replica.model, sample, device, cluster, options.batch
    planned = plan(*job, recipe=OURS)
    if dist.get_rank() == 0:
        print(describe(planned), file=sys.stderr, flush=True)
    model = apply_plan(planned, replica.model, sample, F.cross_entropy, replica.optimizer)
    share = planned.best.layout.locate_samples(dist.get_rank())
    for step in elastic.steps(options.steps, options.every, model.split_state(), options.folder):
        say(step, model(*replica.batch_of(step, *share)).item(), ranks)


def train_on_ray(options) -> None:
    """This process drives workers on Ray; they leave and join."""
    with elastic.Workers(lambda: Replica(options), options.ray) as workers:
        state = {"model": workers.model, "optimizer": workers.optimizer}
        for step in elastic.steps(options.steps, options.every, state, options.folder):
            say(step, workers.step(step), len(workers))


def say(step: int, loss: float, ranks: int) -> None:
    """Print a line for a step."""
    if dist.get_rank() == 0:
        os.write(1, (json.dumps({"step": step, "loss": loss, "ranks": ranks}) + "\n").encode())


def parsed(arguments=None) -> argparse.Namespace:
    """The command line."""
    add = (parser := argparse.ArgumentParser(description=__doc__.splitlines()[0])).add_argument
    add("folder", help="where the checkpoints are; all workers must see it")
    add("--cluster", help='what to plan for, as "2x2 CPU"; by default one machine of all ranks')
    add("--memory", type=float, default=0.0, help="bytes of each device; 0: as its data sheet says")
    add("--ray", type=int, default=0, help="how many workers of Ray; 0: the ranks of MPI")
    add("--steps", type=int, default=200)
    add("--every", type=int, default=20, help="steps between two checkpoints")
    add("--batch", type=int, default=24, help="texts in a step, of all workers together")
    add("--length", type=int, default=64, help="letters of a text")
    add("--letters", type=int, default=200_000, help="letters to learn from")
    for name, default in (("--width", 64), ("--layers", 2), ("--rate", 3e-3)):
        add(name, type=type(default), default=default)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    train_on_ray(options) if (options := parsed()).ray else train_by_mpi(options)
