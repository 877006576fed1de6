"""Stragglers: who holds the others up.

In a sync step everybody waits for the slowest worker. A server sees when it answers a worker's pull
and when his push comes, so it knows how long each of his steps took, without his waiting for the
others. Write `stragglers(seconds, factor=2.0)`:

- `seconds` is a dict: for the number of each worker the list of the seconds that his latest steps
  took. A list may be empty: then nothing is known of that worker, and he does not count;
- how fast a worker is, is the **median** of his list. One slow step, when a file was read or memory
  was cleaned up, makes nobody a straggler;
- a worker is a straggler if his median is *more than* `factor` times the median of the medians of
  all *others*. Who is alone is none;
- return the numbers of the stragglers, a list of ints in rising order.

His own speed does not count among the others: of two workers one is ten times as slow, and the
median of both would be half of his own.

    {0: [1.0, 1.2], 1: [1.0, 9.0, 1.1], 2: [2.5, 2.7]}  ->  [2]

Source: Dean and Barroso, "The tail at scale", 2013.
"""

from statistics import median


def stragglers(seconds, factor=2.0):
    """The workers that hold the others up."""
    raise NotImplementedError
