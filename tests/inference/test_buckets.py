"""Which batch serves a request, and what fills the rest of it."""

import numpy as np
import pytest

from minipaddle.inference.buckets import bucket_for, fill


@pytest.mark.parametrize(
    ("rows", "room"), [(0, 2), (1, 2), (2, 2), (3, 8), (8, 8), (9, 32), (32, 32), (33, 33)]
)
def test_the_smallest_bucket_that_holds_the_rows(rows, room):
    assert bucket_for(rows, (2, 8, 32)) == bucket_for(rows, [32, 2, 8]) == room


def test_without_buckets_a_batch_has_its_own_size():
    assert bucket_for(5, ()) == 5


def test_requests_lie_one_after_the_other_and_the_last_row_fills_the_rest():
    memory = np.full((6, 2), 9.0)
    parts = [np.arange(4.0).reshape(2, 2), np.zeros((0, 2)), -np.ones((1, 2))]
    places = fill(memory, parts)
    assert [memory[rows].tolist() for rows in places] == [part.tolist() for part in parts]
    assert memory[3:].tolist() == [[-1, -1]] * 3


def test_what_fits_exactly_and_what_has_no_rows():
    memory = np.full(2, 9)
    assert fill(memory, [np.array([1, 2])]) == [slice(0, 2)]
    assert memory.tolist() == [1, 2]
    assert fill(memory, [np.zeros(0)]) == [slice(0, 0)]
    assert memory.tolist() == [1, 2]
