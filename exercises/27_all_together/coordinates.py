"""Rank layout: where each rank stands in the grid.

A job of several strategies has its ranks in a grid, with an axis for each: data, pipe, sharding,
sep, model. Each rank computes its place, and from it all groups that it is in. Write
`coordinates(rank, sizes)`:

- `sizes` is a tuple with the number of ranks along each axis; any of them may be 1.
- Return a tuple with the place of `rank` along each axis, from 0 on.
- Along the last axis neighbours follow each other: there rank 1 stands beside rank 0. Each rank has
  a place of its own.
- Raise ValueError for a rank that is not in the grid.

    sizes (2, 3):  ranks 0 1 2 / 3 4 5   ->  rank 1 is at (0, 1), rank 5 at (1, 2)

The last axis is that of tensor parallel, which sends the most: its ranks are in one machine.
Source: Paddle API `paddle.distributed.fleet.base.topology.CommunicateTopology`.
"""


def coordinates(rank, sizes) -> tuple:
    """Where a rank is in a grid; along the last axis neighbours follow each other."""
    raise NotImplementedError
