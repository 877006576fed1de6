"""Every kind of group does the same: threads here, MPI in processes."""

import pytest

import minipaddle.distributed as dist
from tests.distributed.conformance import conformance


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads(size):
    def work():
        return conformance(dist.get_group(), dist.new_group)

    assert dist.spawn(work, nprocs=size, timeout=30).results == [size] * size
