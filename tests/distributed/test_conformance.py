"""Every kind of group does the same: threads here, MPI in processes."""

import pytest

import minipaddle.distributed as dist
from tests.distributed.conformance import (
    conformance,
    disagreements,
    models_that_differ,
    named_nan,
)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads(size):
    def work():
        return conformance(dist.get_group(), dist.new_group)

    assert dist.spawn(work, nprocs=size, timeout=30).results == [size] * size


def test_threads_that_disagree():
    def work():
        found = disagreements(dist.new_group), named_nan(dist.new_group())
        return *found, models_that_differ(dist.get_rank())

    assert dist.spawn(work, nprocs=3, timeout=30).results == [(6, "named", "named")] * 3


def test_nan_is_named_where_the_environment_says_so(monkeypatch):
    assert not dist.get_group().check_nan
    monkeypatch.setenv("MINIPADDLE_CHECK_NAN", "1")
    assert dist.spawn(lambda: dist.get_group().check_nan, nprocs=2).results == [True] * 2
