"""Sequences of many lengths in few: batches of like lengths, padded to the length of their bucket.

A program is written for each shape it meets. With buckets there are as many shapes as buckets.
"""

from bisect import bisect_left

import numpy

from ..engine.core.errors import value_error
from ..engine.eager.tensor import Tensor
from .collate import collate
from .dataloader import DataLoader
from .sampler import BatchSampler


def bucketed(dataset, batch_size=1, *, buckets=None, pad=0, shuffle=False, **options):
    """A DataLoader whose batches hold sequences of like lengths, padded to their bucket's length.

    A sample is a sequence (its first axis is padded), or a tuple or list whose first field is one:
    then every field of that length is padded too. `buckets` are the lengths to pad to, powers of
    two if None; a sample longer than the last one raises ValueError. `pad` is what is filled in.
    Further options are DataLoader's. The last batch of each bucket may be smaller; with
    `drop_last=True` it is left out, and `to_static` meets one shape per bucket.

    >>> words = [[1, 2, 3], [4], [5, 6], [7, 8, 9]]
    >>> [batch.shape for batch in paddle.io.bucketed(words, batch_size=2, buckets=[2, 4])]
    [[2, 2], [2, 4]]
    """
    lengths = [length_of(dataset[k]) for k in range(len(dataset))]
    edges = sorted(buckets) if buckets is not None else powers(max(lengths, default=1))
    if lengths and max(lengths) > edges[-1]:
        what = f"a sequence of length {max(lengths)} fits no bucket"
        raise value_error(what, expected=f"at most {edges[-1]}, the longest of buckets")
    drop_last = options.pop("drop_last", False)
    sampler = BucketSampler(lengths, edges, shuffle, batch_size, drop_last)
    collate_fn = Padding(tuple(edges), pad)
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=collate_fn, **options)


def powers(longest: int) -> list[int]:
    """1, 2, 4, … up to the first that is not below `longest`."""
    return [1 << k for k in range(max(longest - 1, 0).bit_length() + 1)]


def length_of(sample) -> int:
    return len(first_field(sample))


def first_field(sample):
    """The sequence that a sample is, or begins with."""
    nested = isinstance(sample, tuple | list) and len(sample) and hasattr(sample[0], "__len__")
    return sample[0] if nested else sample


class BucketSampler(BatchSampler):
    """Batches of samples of one bucket, the shortest first, or all in random order."""

    def __init__(self, lengths, edges, shuffle, batch_size, drop_last):
        super().__init__(lengths, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)
        self.bucket = [bisect_left(edges, n) for n in lengths]
        self.shuffle = shuffle

    def __iter__(self):
        groups: dict[int, list[int]] = {}
        for k in self.sampler:
            groups.setdefault(self.bucket[k], []).append(k)
        batches = [b for bucket in sorted(groups) for b in self.batches(groups[bucket])]
        if self.shuffle:  # the samples were shuffled, so a hash of them says nothing of the bucket
            batches.sort(key=lambda batch: hash(tuple(batch)))
        return iter(batches)

    def __len__(self):
        counts = [self.bucket.count(k) for k in set(self.bucket)]
        n = self.batch_size
        return sum(c // n if self.drop_last else -(-c // n) for c in counts)


class Padding:
    """Makes a batch of samples, their sequences padded to the length of their bucket."""

    def __init__(self, edges: tuple, pad):
        self.edges, self.pad = edges, pad

    def __call__(self, batch: list):
        size = self.edges[bisect_left(self.edges, max(map(length_of, batch)))]
        return collate([self.pad_sample(sample, size) for sample in batch], "the sample")

    def pad_sample(self, sample, size: int):
        first = first_field(sample)
        if first is sample:
            return self.fill(sample, size)
        n = len(first)
        return tuple(self.fill(x, size) if has_length(x, n) else x for x in sample)

    def fill(self, x, size: int):
        x = x.numpy() if isinstance(x, Tensor) else numpy.asarray(x)
        widths = [(0, size - len(x)), *[(0, 0)] * (x.ndim - 1)]
        return numpy.pad(x, widths, constant_values=self.pad)


def has_length(x, n: int) -> bool:
    return hasattr(x, "__len__") and not isinstance(x, str | bytes) and len(x) == n
