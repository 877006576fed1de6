"""Data sets: things with an index and a length, or streams."""

from bisect import bisect_right
from itertools import accumulate, chain

from ..engine.core.errors import type_error
from ..tensor.random import randperm

__all__ = [
    "ChainDataset", "ComposeDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip


class Dataset:
    """Samples by number: define `__getitem__(index)` and `__len__()`.

    >>> class Squares(paddle.io.Dataset):
    ...     def __getitem__(self, index):
    ...         return index, index**2
    ...     def __len__(self):
    ...         return 10
    >>> Squares()[3]
    (3, 9)
    """

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__(index)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__()")


class IterableDataset(Dataset):
    """Samples as a stream: define `__iter__()`.

    With several workers each has its own copy: use `get_worker_info()` to take a part of it.

    >>> class Count(paddle.io.IterableDataset):
    ...     def __iter__(self):
    ...         yield from range(3)
    >>> [x.tolist() for x in paddle.io.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2]]
    """

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")

    def __getitem__(self, idx):
        raise RuntimeError(f"{type(self).__name__} is an IterableDataset: it has no index")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} is an IterableDataset: it has no length")


class TensorDataset(Dataset):
    """Row `i` of each of several tensors.

    >>> data = paddle.io.TensorDataset([paddle.ones([4, 2]), paddle.arange(4)])
    >>> len(data), data[3][1].item()
    (4, 3)
    """

    def __init__(self, tensors):
        lengths = [t.shape[0] for t in tensors]
        if len(set(lengths)) != 1:
            raise ValueError(f"the tensors must have the same number of rows, not {lengths}")
        self.tensors = list(tensors)

    def __getitem__(self, idx):
        return tuple(t[idx] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


def not_streams(name: str, datasets) -> list:
    """The data sets as a list; raises if there is none, or one is a stream."""
    several = list(datasets)
    if not several:
        raise ValueError(f"{name} needs at least one data set")
    for dataset in several:
        if isinstance(dataset, IterableDataset):
            raise TypeError(f"{name} takes no IterableDataset ({type(dataset).__name__})")
    return several


class ComposeDataset(Dataset):
    """Sample `i` of each data set, their fields side by side.

    >>> paddle.io.ComposeDataset([["a", "b"], [(1, 2), (3, 4)]])[1]
    ('b', 3, 4)
    """

    def __init__(self, datasets):
        self.datasets = not_streams("ComposeDataset", datasets)
        lengths = [len(d) for d in self.datasets]
        if len(set(lengths)) != 1:
            raise ValueError(f"the data sets must have the same length, not {lengths}")

    def __getitem__(self, idx):
        samples = (d[idx] for d in self.datasets)
        fields = (s if isinstance(s, list | tuple) else [s] for s in samples)
        return tuple(chain.from_iterable(fields))

    def __len__(self):
        return len(self.datasets[0])


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                what = f"ChainDataset takes IterableDatasets, not {type(dataset).__name__}"
                raise type_error(what, hint="ConcatDataset")

    def __iter__(self):
        return chain.from_iterable(self.datasets)


class ConcatDataset(Dataset):
    """Data sets one after the other.

    >>> paddle.io.ConcatDataset([["a", "b"], ["c"]])[2]
    'c'
    """

    def __init__(self, datasets):
        self.datasets = not_streams("ConcatDataset", datasets)
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, idx):
        index = idx + len(self) if idx < 0 else idx
        if not 0 <= index < len(self):
            raise IndexError(f"index {idx} is out of range for {len(self)} samples")
        k = bisect_right(self.cumulative_sizes, index)
        return self.datasets[k][index - (self.cumulative_sizes[k - 1] if k else 0)]

    def __len__(self):
        return self.cumulative_sizes[-1]


class Subset(Dataset):
    """The samples of a data set at `indices`.

    >>> paddle.io.Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx):
        return self.dataset[self.indices[idx]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None) -> list[Subset]:
    """Parts of a data set in random order; `lengths` are numbers of samples, or shares of 1.

    `generator` is a `numpy.random.Generator`; without it the order follows `paddle.seed`.

    >>> [len(part) for part in paddle.io.random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total = len(dataset)
    if lengths and sum(lengths) <= 1 + 1e-9 and any(isinstance(n, float) for n in lengths):
        shares, lengths = lengths, [int(total * share) for share in lengths]
        if abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"the shares {list(shares)} do not add up to 1")
        for k in range(total - sum(lengths)):  # what rounding left over goes to the first parts
            lengths[k % len(lengths)] += 1
    if sum(lengths) != total:
        raise ValueError(f"the lengths {list(lengths)} do not add up to {total} samples")
    order = randperm(total) if generator is None else generator.permutation(total)
    order = order.tolist()
    ends = list(accumulate(lengths))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(lengths, ends)]
