"""Data sets and samplers; numbers as Paddle 3.3 gives them, where it gives any."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import io


class Range(io.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_tensor_dataset():
    data = io.TensorDataset([paddle.arange(6).reshape([3, 2]), paddle.ones([3])])
    assert [x.tolist() for x in data[1]] == [[2, 3], 1.0]
    assert len(data) == 3


def test_composing_and_joining():
    assert io.ComposeDataset(["ab", [(1, 2), (3, 4)]])[1] == ("b", 3, 4)
    assert len(io.ComposeDataset(["ab", "cd"])) == 2
    joined = io.ConcatDataset([range(3), range(10, 15)])
    assert [joined[k] for k in (0, 2, 3, 7, -1, -8)] == [0, 2, 10, 14, 14, 0]
    assert joined.cumulative_sizes == [3, 8]
    assert list(io.ChainDataset([Range(2), Range(3)])) == [0, 1, 0, 1, 2]
    part = io.Subset("abcdef", [5, 0])
    assert [part[0], part[1], len(part)] == ["f", "a", 2]


def test_random_split():
    paddle.seed(0)
    a, b = io.random_split(range(10), [3, 7])
    assert sorted([*a.indices, *b.indices]) == list(range(10))
    assert (len(a), len(b)) == (3, 7)
    assert [len(p) for p in io.random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]
    rng = np.random.default_rng
    first, again = (io.random_split(range(9), [9], generator=rng(5))[0] for _ in range(2))
    assert first.indices == again.indices


def test_sequence_and_random():
    assert list(io.SequenceSampler("abc")) == [0, 1, 2]
    assert len(io.SequenceSampler("abc")) == 3
    paddle.seed(0)
    order, other = (list(io.RandomSampler(range(10))) for _ in range(2))
    assert order != other
    paddle.seed(0)
    assert list(io.RandomSampler(range(10))) == order
    assert sorted(order) == list(range(10))
    drawn = list(io.RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50
    assert set(drawn) == {0, 1, 2}
    assert len(list(io.RandomSampler(range(10), num_samples=4))) == 4
    assert list(io.RandomSampler(range(10), num_samples=2, generator=iter([7, 8, 9]))) == [7, 8]
    assert sorted(io.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9]
    assert len(io.SubsetRandomSampler([7, 8, 9])) == 3


def test_weights():
    paddle.seed(0)
    counts = np.bincount(list(io.WeightedRandomSampler([1, 0, 3], 4000)), minlength=3) / 4000
    np.testing.assert_allclose(counts, [0.25, 0, 0.75], atol=0.03)
    once = io.WeightedRandomSampler(paddle.to_tensor([1.0, 0.0, 3.0]), 2, replacement=False)
    assert sorted(once) == [0, 2]
    assert len(once) == 2


def test_batches():
    assert list(io.BatchSampler(range(10), batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    short = io.BatchSampler(sampler=io.SequenceSampler(range(10)), batch_size=4, drop_last=True)
    assert list(short) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(short) == 2
    assert len(io.BatchSampler(range(10), batch_size=4)) == 3
    shuffled = [
        i for batch in io.BatchSampler(range(10), shuffle=True, batch_size=3) for i in batch
    ]
    assert sorted(shuffled) == list(range(10))


@pytest.mark.parametrize(
    ("options", "expected"),
    [  # measured with Paddle 3.3, ten samples in batches of three
        ({"num_replicas": 2}, [[[0, 1, 2], [6, 7]], [[3, 4, 5], [8, 9]]]),
        ({"num_replicas": 3, "drop_last": True}, [[[0, 1, 2]], [[3, 4, 5]], [[6, 7, 8]]]),
    ],
)
def test_distributed_batches(options, expected):
    samplers = [
        io.DistributedBatchSampler(range(10), 3, rank=rank, **options)
        for rank in range(options["num_replicas"])
    ]
    assert [list(s) for s in samplers] == expected
    assert [len(s) for s in samplers] == [len(batches) for batches in expected]


@pytest.mark.parametrize("n", [1, 2, 7, 10, 23])
def test_processes_share_everything_evenly(n):
    parts = [
        [i for batch in io.DistributedBatchSampler(range(n), 2, 4, rank) for i in batch]
        for rank in range(4)
    ]
    assert len({len(part) for part in parts}) == 1
    assert {i for part in parts for i in part} == set(range(n))


def test_distributed_shuffling_follows_the_epoch():
    def order(epoch, rank):
        sampler = io.DistributedBatchSampler(range(12), 2, 2, rank, shuffle=True)
        sampler.set_epoch(epoch)
        return [i for batch in sampler for i in batch]

    assert order(1, 0) == order(1, 0) != order(2, 0)
    assert sorted(order(3, 0) + order(3, 1)) == list(range(12))
    sampler = io.DistributedBatchSampler(range(12), 2, shuffle=True)
    assert list(sampler) != list(sampler)
    assert sampler.epoch == 2


def unfinished(kind):
    return type("Unfinished", (kind,), {})()


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: unfinished(io.Dataset)[0], NotImplementedError, "Unfinished defines no __getit"),
        (lambda: len(unfinished(io.Dataset)), NotImplementedError, "__len__"),
        (lambda: iter(unfinished(io.IterableDataset)), NotImplementedError, "__iter__"),
        (lambda: iter(unfinished(io.Sampler)), NotImplementedError, "__iter__"),
        (lambda: Range(3)[0], RuntimeError, "no index"),
        (lambda: len(Range(3)), TypeError, "no length"),
        (
            lambda: io.TensorDataset([paddle.ones([2]), paddle.ones([3])]),
            ValueError,
            r"not \[2, 3\]",
        ),
        (lambda: io.ComposeDataset(["ab", "a"]), ValueError, r"not \[2, 1\]"),
        (lambda: io.ComposeDataset([]), ValueError, "at least one"),
        (lambda: io.ConcatDataset([Range(2)]), TypeError, "IterableDataset"),
        (lambda: io.ConcatDataset(["ab"])[2], IndexError, "out of range"),
        (lambda: io.ChainDataset(["ab"]), TypeError, "ConcatDataset"),
        (lambda: io.random_split("abc", [1, 1]), ValueError, "add up to 3"),
        (lambda: io.random_split("abc", [0.5, 0.4]), ValueError, "add up to 1"),
        (lambda: io.RandomSampler("abc", num_samples=0), ValueError, "positive"),
        (lambda: io.RandomSampler("abc", num_samples=4), ValueError, "without replacement"),
        (lambda: io.SubsetRandomSampler([]), ValueError, "at least one"),
        (lambda: io.WeightedRandomSampler([-1.0], 1), ValueError, "none negative"),
        (lambda: io.WeightedRandomSampler([1.0], 0), ValueError, "num_samples"),
        (lambda: io.WeightedRandomSampler([1.0, 0.0], 2, False), ValueError, "positive weight"),
        (lambda: io.BatchSampler(), ValueError, "either a dataset or a sampler"),
        (lambda: io.BatchSampler("ab", batch_size=0), ValueError, "batch_size"),
        (lambda: io.BatchSampler("ab", shuffle=1), TypeError, "shuffle"),
        (
            lambda: io.BatchSampler(sampler=io.SequenceSampler("ab"), shuffle=True),
            ValueError,
            "the sampler's",
        ),
        (lambda: io.DistributedBatchSampler("ab", 1, 0), ValueError, "num_replicas"),
        (lambda: io.DistributedBatchSampler("ab", 1, 2, 2), ValueError, "rank 2 is none of 2"),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make()
