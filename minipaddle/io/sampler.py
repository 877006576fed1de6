"""Samplers: the order of samples, and their groups.

Random orders follow `paddle.seed`, as all randomness here does; Paddle's follow NumPy's.
"""

import math
from itertools import islice

import numpy

from ..engine.core.errors import value_error
from ..engine.core.rank import among
from ..tensor import random
from ..tensor.creation import to_tensor

__all__ = [
    "BatchSampler", "DistributedBatchSampler", "RandomSampler", "Sampler", "SequenceSampler",
    "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip


class Sampler:
    """The base: define `__iter__`, giving numbers of samples. Source: Paddle API.

    >>> class Reversed(paddle.io.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(len(self.data_source) - 1, -1, -1))
    >>> list(Reversed("abc"))
    [2, 1, 0]
    """

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")


class SequenceSampler(Sampler):
    """0, 1, 2, …"""

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Every number once in random order, or with `replacement` any number each time.

    `num_samples` are taken, all if None; `generator` is an iterable of numbers used instead.

    >>> sorted(paddle.io.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source)
        self.replacement, self.generator = replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        if self.num_samples <= 0:
            raise ValueError(f"num_samples must be positive, not {self.num_samples}")
        if not replacement and self.num_samples > len(data_source):
            what = f"{self.num_samples} samples cannot be taken from {len(data_source)}"
            raise ValueError(f"{what} without replacement")

    def __iter__(self):
        if self.generator is not None:
            return islice(iter(self.generator), self.num_samples)
        n = len(self.data_source)
        if self.replacement:
            return iter(random.randint(0, n, [self.num_samples]).tolist())
        return iter(random.randperm(n).tolist()[: self.num_samples])

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given numbers in random order."""

    def __init__(self, indices):
        super().__init__()
        if len(indices) == 0:
            raise ValueError("SubsetRandomSampler needs at least one number")
        self.indices = indices

    def __iter__(self):
        return (self.indices[k] for k in random.randperm(len(self.indices)).tolist())

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Number i with a chance in proportion to weights[i].

    >>> list(paddle.io.WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(self, weights, num_samples, replacement=True):
        super().__init__()
        weights = numpy.asarray(weights, dtype="float64")
        if weights.ndim != 1 or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError("weights must be one row of numbers, none negative, not all zero")
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"num_samples must be a positive int, not {num_samples!r}")
        if not replacement and num_samples > (positive := (weights > 0).sum()):
            what = f"{num_samples} samples cannot be taken without replacement"
            raise ValueError(f"{what} from {positive} of positive weight")
        self.weights, self.num_samples = weights / weights.sum(), num_samples
        self.replacement = replacement

    def __iter__(self):
        weights = to_tensor(self.weights)
        return iter(random.multinomial(weights, self.num_samples, self.replacement).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers, from a data set (in order or shuffled) or from a sampler.

    >>> list(paddle.io.BatchSampler("abcde", batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, dataset=None, sampler=None, shuffle=False, batch_size=1, drop_last=False):
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler takes either a dataset or a sampler")
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size must be a positive int, not {batch_size!r}")
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {value!r}")
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        elif shuffle:
            raise ValueError("with a sampler the order is the sampler's: shuffle must be False")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        return self.batches(self.sampler)

    def batches(self, numbers):
        """The numbers in lists; the last one may be shorter, or is dropped then."""
        numbers = iter(numbers)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)


class DistributedBatchSampler(BatchSampler):
    """The batches of one process among `num_replicas`, which take batches in turn.

    By default it is this rank among all ranks (`paddle.distributed`). The data is padded (from its
    start) so that every process gets equally many samples. Shuffling depends on `set_epoch` alone,
    so that all processes agree.

    >>> list(paddle.io.DistributedBatchSampler("abcdef", batch_size=2, num_replicas=2, rank=1))
    [[2, 3], [5]]
    """

    def __init__(
        self, dataset, batch_size, num_replicas=None, rank=None, shuffle=False, drop_last=False
    ):
        here, size = among.now
        self.nranks = size if num_replicas is None else num_replicas
        self.local_rank = here if rank is None else rank
        if not isinstance(self.nranks, int) or self.nranks <= 0:
            raise ValueError(f"num_replicas must be a positive int, not {num_replicas!r}")
        if not isinstance(self.local_rank, int) or not 0 <= self.local_rank < self.nranks:
            what = f"rank {rank!r} is none of {self.nranks} processes"
            raise value_error(what, expected=f"0 to {self.nranks - 1}")
        self.dataset, self.shuffle, self.epoch = dataset, shuffle, 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)
        self.total_size = self.num_samples * self.nranks
        own = range(self.num_samples)  # as many as this process takes, wherever they are
        super().__init__(sampler=own, batch_size=batch_size, drop_last=drop_last)

    def __iter__(self):
        n = len(self.dataset)
        order = [i % n for i in range(self.total_size)]
        if self.shuffle:
            numpy.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        yield from self.batches(self.take_part(order))

    def take_part(self, order: list) -> list:
        """The part of `order` that belongs to this process: whole batches in turn, then a share of
        the rest.
        """
        turn = self.batch_size * self.nranks
        whole = len(order) - len(order) % turn
        own = []
        for start in range(self.local_rank * self.batch_size, whole, turn):
            own += order[start : start + self.batch_size]
        share = (len(order) - whole) // self.nranks
        start = whole + self.local_rank * share
        return own + order[start : start + share]

    def set_epoch(self, epoch: int) -> None:
        """Shuffle by `epoch` from now on."""
        self.epoch = epoch
