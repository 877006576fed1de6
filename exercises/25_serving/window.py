"""The window: when does a batch leave?

Requests of the same shape wait in a group, and may run together. A batch that leaves at once is
small; one that waits makes its first request wait, too. Write two functions.

- `find_latest_start(group, policy, cost)`: the time at which a group starts even if nobody else
  comes. Each request waits no longer than the window: from `arrived` on, `policy.window` seconds.
  And none of them may miss its `deadline` (a time): a run of all rows of the group takes
  `cost(rows)` seconds and has to end by then. The earliest of all these times counts.
- `choose_batch(group, now, room, policy, cost)`: a list of the requests that start now, the first
  ones of the group, in its order. A batch has at most `room` rows.
  1. All requests that fit, if the batch is *full*: it has `room` rows, or the next request does not
     fit in any more. A request is never cut, and none overtakes another.
  2. All that fit, too, if `now` is the latest start of the group, or later.
  3. Else, as many as make a preferred size: `policy.preferred` holds numbers of rows with which a
     batch leaves at once. Of several, take the largest.
  4. Else none: an empty list.

A group has a request or more; each has `rows`, `arrived` and `deadline` (infinite, if it has none).
Change nothing that you are given.

    rows 1, 2 arrived at 0.0; window 2.0, room 8, now 1.9  ->  []
    the same at 2.0                                        ->  both
    rows 4, 4, 1 at 0.0                                    ->  the first two: full

Source: the dynamic batcher of NVIDIA Triton, whose options have the same names.
"""


def find_latest_start(group, policy, cost):
    """When a group starts, whatever else arrives."""
    raise NotImplementedError


def choose_batch(group, now, room, policy, cost):
    """The requests of a group that start now."""
    raise NotImplementedError
