"""A lazy row: the first values of rows that nobody has drawn.

A table of 10⁸ rows and 16 columns would take 6.4 GB. A server keeps the rows that were changed;
of all others it computes the first values when it is asked, and they have to be the same each time,
on each server, in whatever order rows are asked for. A generator that counts cannot do that. One
whose numbers follow from their *place* can: `draw(index)` takes an array of whole numbers, the
places in an endless stream, and returns the random number at each, in the shape of `index`.

Write `first_rows(ids, width, draw)`:

- `ids` are n whole numbers, int64 [n], each 0 or more, in any order; one may come twice;
- return [n, width], the rows with these numbers: what they would be if the whole table were drawn
  at once, row after row, from the start of the stream;
- call `draw` once, with int64 [n, width].

    width 3, draw = identity, ids [2, 0]  ->  [[6, 7, 8], [0, 1, 2]]

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

import numpy as np


def first_rows(ids, width: int, draw):
    """The first values of rows: [n, width]."""
    raise NotImplementedError
