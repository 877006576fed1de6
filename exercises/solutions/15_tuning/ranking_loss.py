"""The loss of the cost model: which of two kernels is the faster one?

A model gives every way to write a kernel a score, one number. Nobody needs to know how many
microseconds it stands for; but of two ways the faster one should have the higher score. Read the
difference of two scores as how sure the model is:

    P(i is faster than j) = 1 / (1 + e^(s_j - s_i))

and let it be surprised, -log P = log(1 + e^(s_j - s_i)), wherever i *was* faster.

Write `ranking_loss(scores, slower)`:

- `scores` is a tensor [n];
- `slower` is a tensor [n, n] of ones and zeros: `slower[i, j]` is 1 if j takes longer than i and
  the two may be compared (they are the same kernel, and apart by more than noise).

Return the mean surprise over the pairs where `slower` is 1, a tensor without axes. Pairs where it
is 0 do not count at all. Scores may be far apart: a difference of 1000 is no reason for an `inf` or
a `nan`, not even in a pair that does not count. There is always a pair that counts.

    scores = [3, 1],  slower = [[0, 1], [0, 0]]   (the first is the faster one)
    ranking_loss(scores, slower)  ->  log(1 + e^(1 - 3)) = 0.1269…

The engine trains its cost model on your loss.
Source: Burges and others, "Learning to Rank using Gradient Descent" (2005).
"""

import minipaddle.nn.functional as F


def ranking_loss(scores, slower):
    """The mean surprise of scores [n] over the pairs (i, j) that slower [n, n] marks."""
    mine, others = scores.reshape([-1, 1]), scores.reshape([1, -1])
    surprise = F.softplus(others - mine)  # log(1 + e^x), which does not overflow
    return (surprise * slower).sum() / slower.sum()
