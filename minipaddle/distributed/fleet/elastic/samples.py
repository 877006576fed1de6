"""The samples of a rank in a step: a function of the step alone, not of earlier steps.

So a job that continues from a checkpoint, on any number of ranks, sees the batches that it would
have seen without the interruption.
"""

from functools import lru_cache

from ....engine.core.errors import value_error
from ....engine.core.rank import among
from ....engine.core.slots import slot
from ....engine.eager.device import NUMPY


@slot("elastic.share")
def share(step: int, rank: int, ranks: int, batch: int, size: int) -> tuple[int, range]:
    """(epoch, places in the order of that epoch) of the samples of a rank in a step.

    The ranks divide the `batch` samples of the step among them: all places once, in the order of
    the ranks, in parts that differ by one sample at most. An epoch has the full batches of `size`
    samples.

    >>> from minipaddle.distributed.fleet.elastic.samples import share
    >>> [share(5, rank, 3, batch=8, size=30) for rank in range(3)]
    [(1, range(16, 18)), (1, range(18, 21)), (1, range(21, 24))]
    """
    epoch, turn = divmod(step, size // batch)
    first = turn * batch
    return epoch, range(first + rank * batch // ranks, first + (rank + 1) * batch // ranks)


def own_samples(
    step: int,
    batch: int,
    size: int,
    seed: int = 0,
    rank: int | None = None,
    ranks: int | None = None,
) -> list[int]:
    """The numbers of this rank's samples in a step, of `size` samples.

    All ranks together take `batch` samples, the same for any number of ranks: parts may differ by
    one sample, so weigh the mean loss of n samples by n / batch. `seed` and the epoch determine the
    order. `rank` of `ranks` is this rank of all by default (ranks that share a sharded model take
    the same samples). ValueError for a batch larger than the data, or smaller than the ranks.

    >>> from minipaddle.distributed.fleet import elastic
    >>> whole = elastic.own_samples(7, batch=6, size=20)
    >>> whole == [k for r in range(4) for k in elastic.own_samples(7, 6, 20, rank=r, ranks=4)]
    True
    """
    if not 0 < batch <= size:
        raise value_error(f"batches of {batch} samples", expected=f"1 to {size}, all there are")
    here, all_ranks = among.now
    rank, ranks = here if rank is None else rank, all_ranks if ranks is None else ranks
    if not 0 <= rank < ranks:
        raise value_error(f"samples of rank {rank}", expected=f"0 to {ranks - 1}")
    if batch < ranks:
        raise value_error(f"a batch of {batch} for {ranks} ranks", expected="a sample for each")
    epoch, places = share(step, rank, ranks, batch, size)
    return order(size, seed, epoch)[places.start : places.stop].tolist()


@lru_cache(2)
def order(size: int, seed: int, epoch: int):
    """Shuffle the samples of an epoch; NumPy promises the same order in each of its versions."""
    return NUMPY.random.RandomState([seed, epoch]).permutation(size)
