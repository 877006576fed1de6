"""What a worker process does, called in this one: its globals are put back afterwards."""

import numpy as np
import pytest

from minipaddle.io import collate, dataset, worker


class Stream(dataset.IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.fixture
def installed(monkeypatch):
    """A function that makes this process a worker for a data set."""
    for name in ("_info", "_fetcher"):
        monkeypatch.setattr(worker, name, None)

    def install(data, init_fn=None, batch_size=2):
        task = worker.WorkerTask(data, collate.default_collate_fn, batch_size, False, init_fn, 4)
        return worker.install(task, 1, 77)

    return install


def test_a_worker_answers(installed):
    started = []
    assert installed([10, 20, 30], started.append) is None
    assert started == [1]
    info = worker.get_worker_info()
    assert (info.id, info.num_workers, info.seed, info.dataset) == (1, 4, 77, [10, 20, 30])
    assert worker.fetch([0, 2]).tolist() == [10, 30]
    failure = worker.fetch([0, 3])
    assert failure.sample == 3
    assert "IndexError" in failure.traceback
    first = np.random.rand()
    installed([1])
    assert np.random.rand() == first


def test_a_worker_reads_a_stream(installed):
    installed(Stream())
    assert worker.fetch(None).tolist() == [0, 1]
    assert worker.fetch(None).tolist() == [2]
    assert worker.fetch(None) == worker.StreamEnd()
    assert worker.restart() is None
    assert worker.fetch(None).tolist() == [0, 1]


def test_failures_before_the_first_batch(installed, monkeypatch):
    def broken(k):
        raise OSError("no disk")

    assert "no disk" in installed([1], broken).traceback
    installed(Stream())
    monkeypatch.setattr(Stream, "__iter__", broken)
    assert "no disk" in worker.restart().traceback
