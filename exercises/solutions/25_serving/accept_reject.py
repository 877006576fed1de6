"""Accept or reject: drafts of a small model, the text of a large one.

A small model q has drafted some tokens, one after the other. The large model p has read them all in
one run, and says at each place what *it* would have drawn from. Write `accept_or_replace(drafts, q,
p, sampler)`, which returns a list of tokens that is distributed as if the large model had drawn
each of them itself.

- `drafts` is a list of tokens. `q[k]` are the probabilities (an array) that draft k was drawn with;
  `p[k]` those of the large model at the same place, after the drafts before it. p has one more.
- Go through the drafts, from the first on. The draft x is accepted with probability
  min(1, p(x) / q(x)): draw a number u in [0, 1) by `sampler.random.random()`, and accept if
  u · q(x) < p(x). A draft that p cannot draw is never accepted.
- The first draft that is not accepted is replaced, and those after it are forgotten. Its
  replacement is drawn from what p has *more* than q: max(0, p - q), at each token. This need not
  sum to 1: `sampler.draw_from(weights)` draws a token in proportion to weights.
- If all are accepted, one more token is drawn from the last p. So there is always one token more
  than there were accepted drafts.
- One number u for each draft that is looked at, then one draw: so equal seeds give equal texts.
  Change no array that you are given.

    q = [[0.5, 0.5]], p = [[0.9, 0.1], [0, 1]], drafts [0]  ->  [0, 1]
    the same, drafts [1]  ->  [1, 1] with probability 0.2, else [0]

Source: Leviathan et al., "Fast inference from Transformers via speculative decoding", 2023.
"""

import numpy as np


def accept_or_replace(drafts, q, p, sampler):
    """The drafts that are accepted, and one more token."""
    for k, token in enumerate(drafts):
        if sampler.random.random() * q[k][token] < p[k][token]:
            continue
        more = np.maximum(p[k] - q[k], 0)
        return [*drafts[:k], sampler.draw_from(more)]
    return [*drafts, sampler.draw_from(p[len(drafts)])]
