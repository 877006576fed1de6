"""Resume exactly: the batches and the draws of the run that was not interrupted.

A job loses a rank in step 700, and goes on from the checkpoint of step 690 with one rank fewer. Its
losses are those of an uninterrupted run only if each step has the same batch, however many ranks
divide it, and if random numbers go on where they stopped. Write two functions:

- `share(step, rank, ranks, batch, size)`: which samples a rank takes in a step. Return a pair
  (epoch, places). The data has `size` samples; an epoch has as many whole batches of `batch`
  samples as fit into it, and the rest is left out. `places` is a `range` of places in the order of
  that epoch (which is shuffled elsewhere): the ranks divide the places of the step's batch among
  them, all places once. Rank r's part begins at the place r * batch // ranks of the batch.
- `generator_of(rank, saved)`: with which (key, counter) the random numbers of a rank go on. `saved`
  has a pair for each rank that there was, in order; it may be a list. A rank that was there goes
  on with its own. A new one has that of the others if they all had the same; else it needs draws of
  its own: the key `hash_64(saved, rank) >> 1`, and the counter 0.

    30 samples in batches of 8, step 5, three ranks
        ->  epoch 1, places 16 to 23: two, three and three of them

Nothing here knows what happened before the step: that is why it can be repeated.
"""

from minipaddle.engine.core.rank import hash_64


def share(step, rank, ranks, batch, size) -> tuple:
    """(epoch, places in the order of that epoch) of the samples that a rank takes in a step."""
    batches = size // batch  # in an epoch
    epoch, turn = step // batches, step % batches
    bounds = [turn * batch + k * batch // ranks for k in (rank, rank + 1)]
    return epoch, range(*bounds)


def generator_of(rank, saved) -> tuple:
    """The (key, counter) with which a rank goes on."""
    if rank < len(saved):
        return tuple(saved[rank])
    if all(each == saved[0] for each in saved):
        return tuple(saved[0])
    return hash_64(saved, rank) >> 1, 0
