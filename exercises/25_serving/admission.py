"""Admission: who may wait, who has to go, and when to ask again.

A server that accepts everything answers nothing in time. So only `capacity` requests may wait; the
others are refused at once (HTTP's 503), and told when to ask again. Write three functions. A
request has `rows`, a `deadline` (a time; infinite, if it has none), a `priority` (the smaller
number comes first) and a `number` (the order in which they came).

- `make_room(waiting, priority, capacity)`: may a request of this priority wait? `waiting` holds
  those that wait, in no order: it can be iterated, and has a `len`. Return None if there is room.
  If there is none, the new one may take the place of a request that is *less* important, whose
  priority is a larger number: return the one that has to go, the least important, and of several
  the one that came last. If none is less important, `raise Full`.
- `find_late(waiting, now, cost)`: a list of those for which it is too late: if they ran at once and
  alone, `cost(rows)` seconds, they would end after their deadline. To end at the deadline is in
  time.
- `retry_after(rows, largest, seconds, workers)`: in how many seconds to ask again, when so many
  rows wait. A batch of `largest` rows takes so many `seconds`, and so many workers run batches side
  by side: the time after which all these rows have run, in parts of batches. Less than one second
  makes no sense: 1.0 then.

    priorities 1, 2, 2 wait, capacity 3; priority 1 comes  ->  the last one goes
    the same, and priority 2 comes                         ->  Full
    retry_after(64, 16, 2.0, 2)                            ->  4.0

Source: RFC 9110, sections 15.6.4 (503) and 10.2.3 (Retry-After).
"""

from minipaddle.serving.batcher import Full


def make_room(waiting, priority, capacity):
    """The request that has to go, or None."""
    raise NotImplementedError


def find_late(waiting, now, cost):
    """The requests that would end after their deadline."""
    raise NotImplementedError


def retry_after(rows, largest, seconds, workers):
    """Seconds after which to ask again."""
    raise NotImplementedError
