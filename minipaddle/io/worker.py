"""The work of a DataLoader's worker process: it holds a data set and makes batches of it."""

import traceback
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy

from ..tensor.generator import GENERATOR
from .dataset import IterableDataset


@dataclass(frozen=True)
class WorkerInfo:
    """The facts of a worker: `id` (from 0), `num_workers`, its copy of `dataset`, its `seed`."""

    id: int
    num_workers: int
    dataset: object
    seed: int


class Failure(NamedTuple):
    """An exception on its way to the parent: the sample, and the traceback as text."""

    sample: object
    traceback: str


class WorkerTask(NamedTuple):
    """The work of a worker: a data set, and how to make batches of it."""

    dataset: object
    collate_fn: object
    batch_size: int | None  # for a stream: how many samples a batch has
    drop_last: bool
    init_fn: object
    num_workers: int


@dataclass(frozen=True)
class StreamEnd:
    """Follows a stream's last batch; equal to itself on the other side of a pipe."""


END = StreamEnd()


class Fetcher:
    """Makes batches: numbered samples of a data set, or the next ones of a stream."""

    def __init__(self, task: WorkerTask):
        self.task = task
        self.current = None
        self.restart()

    def restart(self) -> None:
        """Begin a stream again."""
        dataset = self.task.dataset
        self.stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def batch(self, indices):
        """The batch of the samples `indices` (one number without batching), or the stream's next,
        `END` after its last."""
        task, self.current = self.task, indices
        if self.stream is not None:
            return self.next_of_stream()
        if task.batch_size is None and not isinstance(indices, list):
            return task.collate_fn(task.dataset[indices])
        samples = []
        for self.current in indices:
            samples.append(task.dataset[self.current])
        self.current = indices
        return task.collate_fn(samples)

    def next_of_stream(self):
        task = self.task
        if task.batch_size is None:
            sample = next(self.stream, END)
            return END if sample is END else task.collate_fn(sample)
        samples = list(islice(self.stream, task.batch_size))
        if not samples or (task.drop_last and len(samples) < task.batch_size):
            return END
        return task.collate_fn(samples)


_info: WorkerInfo | None = None
_fetcher: Fetcher | None = None


def get_worker_info() -> WorkerInfo | None:
    """The facts of this worker process; None in the main process.

    >>> paddle.io.get_worker_info() is None
    True
    """
    return _info


def install(task: WorkerTask, worker: int, seed: int):
    """Make this process worker number `worker`; returns None or the Failure of `init_fn`."""
    global _info, _fetcher
    _info = WorkerInfo(worker, task.num_workers, task.dataset, seed)
    numpy.random.seed(seed % 2**32)
    GENERATOR.manual_seed(seed)
    try:
        if task.init_fn is not None:
            task.init_fn(worker)
        _fetcher = Fetcher(task)
    except (Exception, SystemExit):
        return Failure("worker_init_fn", traceback.format_exc())


def restart():
    """Begin the stream of this process again."""
    try:
        _fetcher.restart()
    except (Exception, SystemExit):
        return Failure("iter(dataset)", traceback.format_exc())


def fetch(indices):
    """The batch of `indices`, END when a stream is over, or a Failure."""
    try:
        return _fetcher.batch(indices)
    except (Exception, SystemExit):  # `sys.exit` here would end the parent, without a word
        return Failure(_fetcher.current, traceback.format_exc())
