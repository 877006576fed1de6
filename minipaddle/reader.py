"""Readers of Paddle 1: a reader is a function that gives an iterator over samples.

`paddle.io.DataLoader` does more; these are here because programs still begin with them. Source:
Paddle `paddle.reader`, `paddle.batch`.
"""

import itertools
import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from .engine.core.errors import value_error

__all__ = [
    "ComposeNotAligned", "batch", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
    "shuffle", "xmap_readers",
]  # fmt: skip


class ComposeNotAligned(ValueError):
    """The readers of `compose` are not equally long."""


def batch(reader, batch_size: int, drop_last: bool = False):
    """A reader of lists of `batch_size` samples; the last may be shorter, or is left out.

    >>> list(paddle.batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    if batch_size <= 0:
        raise value_error(f"batch_size={batch_size}", "a positive number")

    def batches():
        samples = reader()
        while group := list(itertools.islice(samples, batch_size)):
            if len(group) == batch_size or not drop_last:
                yield group

    return batches


def map_readers(func, *readers):
    """A reader of `func(a, b, …)` of the samples of several, side by side."""
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader, buf_size: int):
    """A reader of the same samples in random order within each `buf_size` of them."""

    def read_shuffled():
        for group in batch(reader, buf_size)():
            random.shuffle(group)
            yield from group

    return read_shuffled


def chain(*readers):
    """A reader of the samples of one reader after the other.

    >>> list(paddle.reader.chain(lambda: iter("ab"), lambda: iter("c"))())
    ['a', 'b', 'c']
    """
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers, check_alignment: bool = True):
    """A reader of tuples: a sample of each reader, tuples taken apart.

    Raises ComposeNotAligned where one ends before another; without the check the shortest ends it.

    >>> list(paddle.reader.compose(lambda: iter([1, 2]), lambda: iter([(3, 4), (5, 6)]))())
    [(1, 3, 4), (2, 5, 6)]
    """

    def read_tuples():
        samples = [reader() for reader in readers]
        if not check_alignment:
            yield from map(join, zip(*samples, strict=False))
            return
        missing = object()
        for each in itertools.zip_longest(*samples, fillvalue=missing):
            if any(part is missing for part in each):
                raise ComposeNotAligned("the readers of compose are not equally long")
            yield join(each)

    return read_tuples


def join(parts) -> tuple:
    """One tuple of all parts; some are tuples."""
    return tuple(x for part in parts for x in (part if isinstance(part, tuple) else (part,)))


def firstn(reader, n: int):
    """A reader of the first n samples."""
    return lambda: itertools.islice(reader(), n)


def cache(reader):
    """A reader that reads another one once, at once, and keeps its samples."""
    samples = tuple(reader())
    return lambda: iter(samples)


def xmap_readers(mapper, reader, process_num: int, buffer_size: int, order: bool = False):
    """A reader of `mapper(sample)`, computed by threads ahead of need, in the samples' order."""

    def read_mapped():
        samples, waiting = reader(), deque()
        with ThreadPoolExecutor(process_num) as threads:
            for sample in samples:
                waiting.append(threads.submit(mapper, sample))
                if len(waiting) > buffer_size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    return read_mapped


def buffered(reader, size: int):
    """A reader whose thread reads up to `size` samples ahead."""

    def ahead():
        samples, end, waiting = reader(), object(), deque()
        with ThreadPoolExecutor(1) as thread:  # one thread: the samples stay in order
            while True:
                while len(waiting) <= size:
                    waiting.append(thread.submit(next, samples, end))
                if (sample := waiting.popleft().result()) is end:
                    return
                yield sample

    return ahead
