"""Unequal batches: the mean of means is not the mean.

Each rank computes the mean loss of its own batch, and the average of the gradients over the ranks
is used for the update. If the batches are equally large that is the gradient of the joined batch.
If not, a sample on a rank with few samples counts for more than one on a rank with many. Write
`joined_mean(loss, count, group=None)`:

- `loss` is a tensor with no axis: the mean loss of this rank's `count` samples. A rank may have
  none; then its loss is zero, and still it takes part;
- return a tensor, such that the *average over the ranks* of what all return is the mean loss of the
  joined batch. Then the same holds for the gradients, which are averaged too.

`paddle.distributed.all_reduce(x, group=group)` makes every rank's tensor x the sum over the ranks;
all ranks call it, and it may be part of a program. `paddle.distributed.get_world_size(group)` is
how many ranks there are. The dtype stays that of the loss.

    two ranks, losses 4.0 (of 3 samples) and 8.0 (of 1)  ->  6.0 and 4.0, whose average is 5.0

Source: the joined batch's mean, Σᵣ nᵣ·lossᵣ / Σᵣ nᵣ.
"""

import minipaddle as paddle


def joined_mean(loss, count, group=None):
    """The loss of this rank with the weight that its samples have among all."""
    total = paddle.full([], float(count), dtype=loss.dtype)
    paddle.distributed.all_reduce(total, group=group)
    ranks = paddle.distributed.get_world_size(group)
    return loss * (count * ranks / total)
