"""The forward scores of CTC: all paths at once.

A reader gives each column of a line probabilities of labels; one of them is the blank, which stands
for no letter. A path is a label for each column, and many paths spell the same letters: 3 - 5,
3 3 5 and - 3 5 are all "3 5". The loss is -log of the sum of them all. There are too many to list.
But they all walk through the same *places*, one after the other:

    letters 3 5     places  -  3  -  5  -        (- is the blank: before, between and behind)

A path stays at its place in the next column, goes on by one, or by two. Going by two skips a place.
Only a blank may be skipped, and not the one between two equal letters: without it they would be
one. So from column to column the score of a place s, the log of the probability of all ways to it,
is

    new[s] = log(exp(old[s]) + exp(old[s - 1]) + exp(old[s - 2]) if s may be reached by a skip)
             + emitted[s]

Write two functions in tensor functions: they are captured, and the engine derives them.

- `insert_blanks(labels, blank)`: `labels` is a tensor of integers [batch, L]. Return two tensors
  [batch, 2L + 1]: the label of each place (the dtype of `labels`), and bools, true where a place
  may be reached by a skip: where its label is neither a blank nor the label two places before. At
  the first two places these may have either value, since nothing is two places before;
- `advance(alpha, can_skip, emitted)`: all three are [2L + 1, batch]. `alpha` has the scores,
  `emitted` the log of the probability of each place's label in the new column. Return the new
  scores. There is no place before the first one: what would come from there is `IMPOSSIBLE`. That
  is the log of no probability, -1e30. It is not -inf, since -inf minus -inf is no number, and the
  derivative would be none. For the same reason take `paddle.logaddexp(x, y)`, which is
  log(exp(x) + exp(y)) and neither overflows nor takes the log of 0.

L may be 0: then there is one place.

    insert_blanks([[3, 5, 5]], 0)  ->  [[0, 3, 0, 5, 0, 5, 0]], [[?, ?, F, T, F, F, F]]
    probabilities of ways so far     [0.5, 0.25, 0, 0, 0]      for the letters 3 5
    probabilities of the labels      [0.5, 0.25, 0.5, 0.25, 0.5]
    and of ways to the new column    [0.25, 0.1875, 0.125, 0.0625, 0]

Source: Graves et al., "Connectionist temporal classification" (2006), section 4.1.
"""

import minipaddle as paddle

IMPOSSIBLE = -1e30


def insert_blanks(labels, blank):
    """The labels of all places, and which of them may be reached by a skip."""
    batch, length = labels.shape
    blanks = paddle.full_like(labels, blank)
    pairs = paddle.stack([blanks, labels], axis=2).reshape([batch, 2 * length])
    last = paddle.full([batch, 1], blank, labels.dtype)
    spelled = paddle.concat([pairs, last], axis=1)
    before = paddle.concat([last, last, spelled], axis=1)[:, :-2]
    return spelled, (spelled != blank) & (spelled != before)


def advance(alpha, can_skip, emitted):
    """The scores of all places, one column later."""
    nothing = paddle.full_like(alpha, IMPOSSIBLE)
    moved = paddle.concat([nothing[:1], alpha[:-1]])
    skipped = paddle.concat([nothing[:2], alpha[:-2]])
    skipped = paddle.where(can_skip, skipped, nothing)
    return paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) + emitted
