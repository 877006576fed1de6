"""Batches of different sizes on the ranks: the mean of means is not the mean."""

from ...engine.core.slots import slot
from ...tensor.creation import full
from ..ranks.known_groups import group_of
from . import operators


@slot("distributed.joined_mean")
def joined_mean(loss, count: int, group=None):
    """The mean loss of this rank's `count` samples, weighted for batches of different sizes.

    The average of these over the ranks is the mean loss of the joined batch, and the average of
    their gradients is its gradient. All ranks call it; ranks without a sample pass a loss of zero
    and count=0.

    >>> from minipaddle.distributed.collectives.unequal_batches import joined_mean
    >>> def work():
    ...     x = [[2.0, 4.0, 6.0], [8.0]][paddle.distributed.get_rank()]
    ...     return joined_mean(paddle.to_tensor(x).mean(), len(x)).item()
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [6.0, 4.0]
    """
    group = group_of(group)
    total = operators.all_reduce(full([], float(count), loss.dtype), op="sum", group=group.id)
    return loss * (count * group.size / total)
