"""The arena: pieces of memory that are needed at the same time must not overlap.

Every value is needed for a while, in [start, end), and then its place can be used again. All places
lie in one arena. Where does each value begin, so that the arena is small? To find the smallest is
NP-hard; but no arena is smaller than the *bound*, the largest sum of bytes that are needed at one
time, and simple rules come close to it.

Write `offsets(buffers)`. `buffers` is a list, each with `start`, `end` (start < end) and `nbytes`,
all whole numbers. Return a list of whole numbers, the offset of each, in the same order.

- Two buffers whose times overlap may not share a byte. One that ends at t and one that starts at t
  do not overlap: [start, end).
- Offsets are 0 or more. The sizes you are given are multiples of 64, so a buffer that begins where
  another one ends is aligned.
- The arena, up to the highest top of a buffer, has a score: its bytes over the bound. On plans of
  real networks you need 1.1 or less, and on random ones 1.06 on average. A few lines that take the
  buffers one by one, in a good order, and look for the lowest gap that is large enough, reach that.
- 300 buffers must be placed within a second.

    [0, 2) 64 bytes, [1, 3) 128 bytes, [2, 4) 64 bytes  ->  [128, 0, 128], an arena of 192

The engine plans all its memory with it: the chapter's scoreboard says what your arena takes.
Source: Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020;
NP-hard by Garey and Johnson, "Computers and Intractability", 1979, problem SR2.
"""


def offsets(buffers) -> list:
    """Where each buffer begins in the arena."""
    raise NotImplementedError
