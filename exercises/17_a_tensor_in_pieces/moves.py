"""Moves: which collective brings a tensor from one placement to another.

Along one axis of a mesh a tensor lies in pieces, whole in each rank, or as terms of a sum. These
are the moves from one to another:

    from a whole to pieces or to terms   no message: a slice; the tensor in rank 0, zeros elsewhere
    from pieces to a whole               all_gather: a rank receives what it lacks
    from terms to pieces                 reduce_scatter
    from terms to a whole                all_reduce, a reduce_scatter and then an all_gather
    from pieces to those of another axis all_to_all: what it lacks of its new piece

Write two functions. `cost_of_move(nbytes, parts, before, after)`: the bytes that each of `parts`
ranks receives in the best case, exactly, as a whole number or a `Fraction`. They hold a tensor of
`nbytes` together; `before` and `after` are placements: `p.is_replicated()`, `p.is_shard()`,
`p.is_partial()`. A reduce_scatter receives as much as an all_gather.

`move(x, shape, now, axis, new, view, time=(0, 0, 0))`: the local tensor x after a move on one axis.

- `shape` is that of the whole tensor, `now` a tuple of its placements, one for each axis of the
  mesh. `axis` is the axis of the mesh on which the placement becomes `new`.
- `view.shape` are the ranks along each axis of the mesh, `view.place` the coordinates of this rank.
  `local_shape(shape, placements, view.shape, view.place)` is the shape of what it has.
- The pieces along our axis are cut from what its ranks have together: the tensor as it lies with
  `REPLICATE` on our axis and as `now` says on the others. `cut(n, parts, k, unit)` is the pair
  (first row, rows) of piece k; `unit` is that of the `Shard`, `p.unit`, and `p.dim` its axis.
- `part(x, dim, first, rows)` are some rows, `keep_term(x, k)` is x in rank 0 and zeros elsewhere.
- `reduce_all(x, op, group)`; `reduce_scatter(x, op, dim, cuts, k, group)`, `all_gather(x, dim,
  rows, group)`, `all_to_all(x, old, rows, dim, cuts, k, group)` communicate: `op` is `p.op` of
  terms, `cuts` the pairs of all ranks for the new pieces, `rows` a list: how many rows of the old
  piece each rank has, `k` this rank's position along the axis, `old` and `dim` the tensor's axes
  before and after.
- `group` is a dict that names the ranks along our axis, and says when the collective may start:
  `along(view, axis, x, shape, time)`.

Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
MPICH", 2005; Paddle API `paddle.distributed.reshard`.
"""

from fractions import Fraction

from minipaddle.engine.sharding.moves import (
    all_gather,
    all_to_all,
    along,
    keep_term,
    part,
    reduce_all,
    reduce_scatter,
)
from minipaddle.engine.sharding.placements import REPLICATE, cut, local_shape


def cost_of_move(nbytes, parts, before, after):
    """The bytes that a rank receives."""
    raise NotImplementedError


def move(x, shape, now, axis, new, view, time=(0, 0, 0)):
    """The local tensor x after a move on one axis of the mesh."""
    raise NotImplementedError
