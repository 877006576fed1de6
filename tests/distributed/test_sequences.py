"""Random sequences of collectives on sub-groups of threads."""

import pytest

import minipaddle.distributed as dist
from tests.distributed import sequences

pytestmark = pytest.mark.sweep(one_in=3)


@pytest.mark.parametrize(("size", "count"), [(2, 100), (3, 100), (4, 100)])
def test_threads(size, count):
    work = lambda: sequences.check(range(count))
    assert dist.spawn(work, nprocs=size, timeout=30).results == [count] * size


def test_an_error_is_found():
    """The oracle disagrees with a sum that forgets a rank."""
    from minipaddle.engine.core.slots import plugged

    def forgetful(group, array, op):
        return group.start("broadcast", array, root=0)

    work = lambda: sequences.check(range(50))
    with plugged("distributed.all_reduce", forgetful), pytest.raises(AssertionError):
        dist.spawn(work, nprocs=3, timeout=30)
