"""Sequences of many lengths, padded to few."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.io import bucketed


def sequences(seed=0, count=40, longest=30):
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 9, n) for n in rng.integers(1, longest + 1, count)]


def test_every_sample_comes_once_padded_at_its_end():
    words = sequences()
    rows = [row for batch in bucketed(words, 4, pad=-1) for row in batch.numpy()]
    found = sorted(tuple(row[row != -1]) for row in rows)
    assert found == sorted(map(tuple, words))
    assert all((row[np.argmax(row == -1) :] == -1).all() for row in rows if -1 in row)


def test_batches_have_the_lengths_of_buckets():
    words = sequences()
    loader = bucketed(words, 4, buckets=[8, 16, 30])
    shapes = [batch.shape for batch in loader]
    assert {n for _, n in shapes} == {8, 16, 30}
    assert len(shapes) == len(loader)
    assert [n for _, n in shapes] == sorted(n for _, n in shapes)


def test_lengths_fit_their_bucket_closely():
    for batch in bucketed(sequences(), 4, pad=-1):
        longest = max((row != -1).sum() for row in batch.numpy())
        assert batch.shape[1] / 2 < longest <= batch.shape[1]


def test_fields_as_long_as_the_first_are_padded_too():
    samples = [([1, 2, 3], [0.1, 0.2, 0.3], 7), ([4], [0.4], 8)]
    ((x, w, y),) = bucketed(samples, 2, buckets=[4])
    assert x.tolist() == [[1, 2, 3, 0], [4, 0, 0, 0]]
    assert (w.shape, y.tolist()) == ([2, 4], [7, 8])


def test_drop_last_and_shuffle():
    words = sequences(count=41)
    whole = list(bucketed(words, 4, drop_last=True))
    assert all(len(batch) == 4 for batch in whole)
    assert len(whole) == len(bucketed(words, 4, drop_last=True))
    paddle.seed(1)
    mixed = [b.shape[1] for b in bucketed(words, 4, shuffle=True)]
    assert mixed != sorted(mixed)
    assert sum(len(b) for b in bucketed(words, 4, shuffle=True)) == 41


def test_too_long_is_told():
    with pytest.raises(ValueError, match=r"length 5 fits no bucket\n  expected: at most 4"):
        bucketed([[1, 2, 3, 4, 5]], buckets=[2, 4])


def test_one_program_for_each_bucket():
    @paddle.jit.to_static
    def total(x):
        return x.sum()

    for batch in bucketed(sequences(), 4, buckets=[8, 16, 30], drop_last=True):
        total(batch)
    assert len(total.program_cache) == 3
