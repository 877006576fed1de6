"""Ranks that leave and join while training continues: actors of Ray, each with the full model.

A step is a transaction. All workers compute the gradients of their parts of the batch; only when
all of these have arrived, every worker adds them up, in one order, and updates its model. If a
worker is lost before, nothing is lost: the others divide the same batch among them and compute
again. If one is lost later, all others have made the step. A worker that joins gets the state of
another one. Ray carries the arrays, and the function that makes the model, to processes of its own
cluster. Source: Ray's manual, "Actors", "Fault tolerance".
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

from ....core.prelude import NUMPY, Tensor, runtime_error, value_error
from ....engine.core.rank import among, hash_64
from ....tensor.generator import seed as start
from ...ps.on_ray import ray

PARTS = "model", "optimizer"
"""The parts of a replica."""


class Trainee(Protocol):
    """The model, optimizer and data of a worker."""

    model: object
    optimizer: object

    def part(self, step: int) -> Tensor:
        """This worker's part of the loss of a step; the parts of all workers add up to it.
        `own_samples` knows the rank that the worker has in this step.
        """


class Worker:
    """A worker in a process of its own."""

    def __init__(self, make: Callable[[], Trainee]):
        self.replica = make()
        self.trained = [p for p in self.replica.model.parameters() if p.trainable]

    def process(self) -> int:
        """The number of its process."""
        return os.getpid()

    def compute(self, step: int, rank: int, ranks: int) -> list:
        """The part of the loss of rank `rank` of `ranks`, and its gradients."""
        among.now = rank, ranks
        start(hash_64("elastic", step, rank) >> 1)  # a repeated step draws the same
        part = self.replica.part(step)
        part.backward()
        gradients = [None if p.grad is None else p.grad.numpy() for p in self.trained]
        self.replica.optimizer.clear_grad()
        return [part.numpy(), *gradients]

    def update(self, shares: list[list]) -> float:
        """Make the step with the sum of the ranks' gradients; return the loss."""
        loss, *gradients = ([x for x in each if x is not None] for each in zip(*shares))
        for p, each in zip(self.trained, gradients):
            p.grad = Tensor(sum(each[1:], each[0].copy()), p.dtype) if each else None
        self.replica.optimizer.step()
        self.replica.optimizer.clear_grad()
        return float(sum(loss))

    def state(self, name: str) -> dict:
        """The state dict of a part of the replica, as arrays."""
        return map_leaves(getattr(self.replica, name).state_dict(), as_array)

    def load(self, name: str, state: dict) -> None:
        """Load the state dict of a part."""
        getattr(self.replica, name).set_state_dict(state)


class Workers:
    """`count` workers, each with a `Trainee` that `make()` returns; for `with`.

    For a lost worker this asks Ray for another one, which joins when Ray has found room for it.
    `model` and `optimizer` are the replicas of all workers, for `steps` to save and load.
    timeout: the seconds in which the first workers must start, and each must answer
    options: Ray's resources for each worker, such as num_cpus=2, num_gpus=1

    Starts Ray on this machine unless `ray.init` was called, or the program is a job of Ray's.
    RuntimeError if Ray is not installed, and when no worker is left.
    """

    def __init__(self, make: Callable[[], Trainee], count: int, timeout: float = 120.0, **options):
        if count < 1:
            raise value_error(f"{count} workers", expected="1 or more")
        self.ray = ray()
        self.wanted, self.timeout = count, timeout
        self.model, self.optimizer = WorkerState(self, "model"), WorkerState(self, "optimizer")
        if not self.ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            self.ray.init(include_dashboard=False)
        actor = self.ray.remote(**{"num_cpus": 1, **options})(Worker)
        self.make = lambda: actor.remote(make)
        self.members: dict = {}  # worker -> the number of its process
        self.coming: dict = {}  # worker -> its first answer, to come
        self.invite()
        self.ray.wait([*self.coming.values()], num_returns=count, timeout=timeout)
        self.admit({})
        self.require_some()
        say(f"{len(self)} workers, processes {', '.join(map(str, self.members.values()))}")

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc) -> None:
        for worker in [*self.members, *self.coming]:
            self.dismiss(worker)

    def __len__(self) -> int:
        """The number of workers now."""
        return len(self.members)

    def step(self, step: int) -> float:
        """Make a step with all present workers; return the loss before it."""
        while True:
            self.invite()
            if self.ready():
                self.admit({name: self.state(name) for name in PARTS})
            ranks = len(self)
            asked = {w: w.compute.remote(step, k, ranks) for k, w in enumerate(self.members)}
            shares = self.collect(asked, f"step {step}")
            if len(shares) == ranks:
                break
        total = self.ray.put([*shares.values()])
        losses = self.collect({w: w.update.remote(total) for w in shares}, f"step {step}")
        return next(iter(losses.values()))

    def resize(self, count: int) -> None:
        """Have `count` workers from the next step on: new ones join, or the last ones leave."""
        self.wanted = count
        for worker in [*self.members, *self.coming][count:]:
            self.dismiss(worker)

    def state(self, name: str) -> dict:
        """The state dict of a part of a replica, as arrays: all have the same."""
        while True:
            worker = next(iter(self.members))
            states = self.collect({worker: worker.state.remote(name)}, "its state")
            if states:
                return states[worker]

    def load(self, name: str, state: dict) -> None:
        """Give all replicas the state of a part, as arrays."""
        shared = self.ray.put(state)
        self.collect({w: w.load.remote(name, shared) for w in self.members}, "loading")

    # ---- members ---------------------------------------------------------------------------------

    def invite(self) -> None:
        """Ask Ray for the workers that are missing."""
        for _ in range(self.wanted - len(self.members) - len(self.coming)):
            worker = self.make()
            self.coming[worker] = worker.process.remote()

    def ready(self) -> list:
        """The workers that have started."""
        return [w for w, answer in self.coming.items() if self.ray.wait([answer], timeout=0)[0]]

    def admit(self, state: dict) -> None:
        """Admit the workers that have started, with the state of the others."""
        for worker in self.ready():
            answer = self.coming.pop(worker)
            try:
                process = self.ray.get(answer)
                self.ray.get([worker.load.remote(name, each) for name, each in state.items()])
            except self.ray.exceptions.RayActorError as error:
                if error.actor_init_failed:
                    raise
                continue
            self.members[worker] = process
            if state:
                say(f"a worker joins (process {process}): there are {len(self)}")

    def collect(self, asked: dict, what: str) -> dict:
        """Collect the answers, {worker: its answer}; workers without one are members no longer."""
        answers, deadline, lost = {}, time.monotonic() + self.timeout, self.ray.exceptions
        for k, (worker, answer) in enumerate(asked.items()):
            try:
                left = max(0.0, deadline - time.monotonic())
                answers[worker] = self.ray.get(answer, timeout=left)
            except (lost.RayActorError, lost.ObjectLostError, lost.GetTimeoutError) as error:
                late = isinstance(error, lost.GetTimeoutError)
                how = f"did not answer within {self.timeout:g} s" if late else "was lost"
                process = self.members[worker]
                self.dismiss(worker)
                say(f"worker {k} (process {process}) {how} in {what}: {len(self)} go on")
        self.require_some()
        return answers

    def dismiss(self, worker) -> None:
        """End a worker."""
        self.members.pop(worker, None)
        self.coming.pop(worker, None)
        self.ray.kill(worker)

    def require_some(self) -> None:
        if not self.members:
            raise runtime_error(
                f"none of {self.wanted} workers is there",
                hint="start again: `steps` goes on from the last checkpoint. `ray status` says "
                "whether Ray has room for them",
            )


class WorkerState:
    """The model, or the optimizer, of all workers."""

    def __init__(self, workers: Workers, name: str):
        self.workers, self.name = workers, name

    def state_dict(self) -> dict:
        """The state dict of one worker."""
        as_tensor = lambda x: Tensor(x) if isinstance(x, NUMPY.ndarray) else x
        return map_leaves(self.workers.state(self.name), as_tensor)

    def set_state_dict(self, state: dict) -> None:
        """Load a state into all workers."""
        self.workers.load(self.name, map_leaves(state, as_array))


def map_leaves(state: dict, change) -> dict:
    """Apply `change` to all values of a state dict that are no dicts."""
    pairs = state.items()
    return {k: map_leaves(x, change) if isinstance(x, dict) else change(x) for k, x in pairs}


def as_array(x):
    """Convert a tensor to an array of NumPy, which Ray can carry; return another value itself."""
    return x.numpy() if isinstance(x, Tensor) else x


def say(event: str) -> None:
    """Report an event of the workers."""
    print(f"elastic: {event}", file=sys.stderr, flush=True)
