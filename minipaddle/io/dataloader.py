"""`DataLoader`: batches of a data set, made here or by worker processes."""

import itertools

from . import worker as w
from .collate import as_tensors, default_collate_fn, default_convert_fn
from .dataset import IterableDataset
from .sampler import BatchSampler


class DataLoader:
    """Iterate over the batches of `dataset`: a list of tensors each, one for each field.

    `num_workers` processes prepare batches ahead, each up to `prefetch_factor`; the order is the
    same as without them. Each epoch starts its own, with the data set as it is then; with
    `persistent_workers` they stay, with the first one, also where an epoch was left early. On Linux
    they are forks; elsewhere, and beside a GPU, fresh processes, which take a second to start. A
    worker that fails or dies is a RuntimeError with its number, the samples it worked on and its
    traceback; `timeout` (seconds, 0 for none) limits the wait for a batch. `batch_size=None` hands
    out single samples. `use_shared_memory`, `use_buffer_reader` and `reader_buffer_size` change
    only how Paddle moves data: they are accepted and do nothing.

    >>> data = paddle.io.TensorDataset([paddle.arange(5)])
    >>> [x.tolist() for (x,) in paddle.io.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, dataset, feed_list=None, places=None, return_list=True, batch_sampler=None,
        batch_size=1, shuffle=False, drop_last=False, collate_fn=None, num_workers=0,
        use_buffer_reader=True, reader_buffer_size=2, prefetch_factor=2, use_shared_memory=True,
        timeout=0, worker_init_fn=None, persistent_workers=False,
    ):  # fmt: skip
        if feed_list is not None or not return_list:
            raise NotImplementedError("feed_list and return_list=False belong to static graphs")
        check_at_least(0, num_workers=num_workers, timeout=timeout)
        check_at_least(1, prefetch_factor=prefetch_factor)
        stream = isinstance(dataset, IterableDataset)
        one_order(stream, batch_sampler, batch_size, shuffle, drop_last)
        self.dataset, self.batch_sampler = dataset, batch_sampler
        if not stream and batch_sampler is None and batch_size is not None:
            self.batch_sampler = BatchSampler(
                dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last
            )
        single = batch_size is None and batch_sampler is None
        self.batch_size, self.drop_last = batch_size, drop_last
        self.collate_fn = collate_fn or (default_convert_fn if single else default_collate_fn)
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.persistent_workers = persistent_workers
        self._pool = None

    def __len__(self):
        if isinstance(self.dataset, IterableDataset):
            raise TypeError("a DataLoader of an IterableDataset has no length")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self):
        names = ("dataset", "collate_fn", "batch_size", "drop_last", "worker_init_fn")
        task = w.WorkerTask(*(getattr(self, name) for name in names), self.num_workers)
        return self._run_workers(task) if self.num_workers else self._here(task)

    __call__ = __iter__

    def _requests(self):
        """The requests, one for each batch; an endless row of None for a stream."""
        if isinstance(self.dataset, IterableDataset):
            return itertools.repeat(None)
        return iter(range(len(self.dataset)) if self.batch_sampler is None else self.batch_sampler)

    def _here(self, task):
        fetcher = w.Fetcher(task)
        for request in self._requests():
            batch = fetcher.batch(request)
            if isinstance(batch, w.StreamEnd):
                return
            yield as_tensors(batch)

    def _run_workers(self, task):
        from .worker_pool import WorkerPool  # takes a while to import

        pool, self._pool = self._pool, None  # in use: another iterator gets its own
        keep = False
        try:
            if pool is None:
                pool = WorkerPool(task, self.timeout)
            else:
                pool.restart()
            yield from map(as_tensors, pool.batches(self._requests(), self.prefetch_factor))
            keep = self.persistent_workers
        except GeneratorExit:
            keep = self.persistent_workers
            raise
        finally:
            if keep and self._pool is None:
                self._pool = pool
            elif pool is not None:
                pool.dismiss()


def length_of(loader) -> int | None:
    """The number of batches, or None if it is unknown."""
    try:
        return len(loader)
    except TypeError:
        return None


def check_at_least(least: int, **values) -> None:
    """Raise ValueError for a value below `least`."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def one_order(stream: bool, batch_sampler, batch_size, shuffle: bool, drop_last: bool) -> None:
    """Raise ValueError if two of them decide which samples make a batch, or none can."""
    if stream and (shuffle or batch_sampler is not None):
        raise ValueError("an IterableDataset has its own order: no shuffle and no batch_sampler")
    if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
        raise ValueError("a batch_sampler decides on batch_size, shuffle and drop_last itself")
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"batch_size must be None or positive, not {batch_size}")
