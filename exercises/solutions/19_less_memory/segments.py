"""Recompute in segments: of a chain of layers only a few inputs are kept.

A chain of layers keeps all that lies between them for its backward. Cut it into segments and keep
the input of each: when the backward comes to a segment, it is computed again from there. Write
`run_segments(functions, n, args, again)`:

- `functions` is a list of at least n functions (layers, say). The first is called with `*args`,
  each other one with what the one before it returns. Return what the last one returns.
- There are n segments, each of functions that follow each other. Each has `len(functions) // n` of
  them; the last one has the rest too.
- `Segment(some)` makes one function of a list: it calls them one after the other, and knows the
  layers among them. (What a layer changes as it is called, a batch norm's statistics, must not
  change once more when it is computed again: `again` asks the segment for it.)
- `again(function, *args)` gives what `function(*args)` gives, but keeps the arguments alone, and
  computes the function again when the backward needs it, with the same random numbers.
- The backward begins with the last segment: it would let everything go and compute it again at
  once. So the last segment is called plainly, and all others with `again`. With n = 1 nothing is
  computed twice.

    7 functions, n = 3  ->  again: 0 1, again: 2 3, plainly: 4 5 6

Source: Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016.
"""

from minipaddle.distributed.fleet.recompute import Segment


def run_segments(functions, n, args, again):
    """What a chain of functions makes of `args`; all segments but the last are recomputed."""
    size = len(functions) // n
    last = size * (n - 1)
    for start in range(0, last, size):
        # what a segment returns is the only argument of the next
        args = (again(Segment(functions[start : start + size]), *args),)
    return Segment(functions[last:])(*args)
