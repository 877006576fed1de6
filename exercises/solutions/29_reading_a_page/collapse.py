"""Collapse: from a path of columns to letters.

A reader looks at a line column by column, and gives each column a label: a letter, or the blank,
which stands for no letter. A wide letter fills several columns. So a row of equal labels is one
letter, and a letter that comes twice has a blank between. Write two functions:

- `mark_letters(path, blank)`: `path` is an array of integers [T]. Return an array of bools [T],
  true where a letter begins: where the label is not the blank, and not the label before it. The
  engine takes the mean of the probabilities at these places as the score of a line.
- `collapse(path, blank=0)`: the letters that a path spells, a list of ints. Here the path may be a
  list or an array, with no element, too.

First equal neighbours become one, then blanks go. In the other order a double letter would be lost.

    path = [0, 3, 3, 0, 3, 5, 0]
    mark_letters(path, 0)  ->  [F, T, F, F, T, T, F]
    collapse(path)         ->  [3, 3, 5]

Source: Graves et al., "Connectionist temporal classification" (2006), section 3.1.
"""

import numpy as np


def mark_letters(path, blank):
    """Which places of a path begin a letter."""
    begins = path != blank
    begins[1:] &= path[1:] != path[:-1]
    return begins


def collapse(path, blank=0):
    """The letters that a path spells."""
    path = np.asarray(path, int)
    return path[mark_letters(path, blank)].tolist()
