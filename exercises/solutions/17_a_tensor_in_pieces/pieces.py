"""Pieces: which rows of a tensor a rank has, also where the rows do not divide.

On an axis of a mesh with four ranks a tensor of 13 rows lies in pieces of 4, 4, 4 and 1. Write two
functions; all numbers in them are whole.

`cut(n, parts, k, unit=1)`: the pair (first row, rows) of piece k, where n rows are cut into `parts`
pieces, in their order.

- Rows come in blocks of `unit`, which no cut may tear; the last block may be shorter. (A reshape
  makes one axis of heads and columns; cut between heads, it has blocks.)
- All pieces have as many blocks as the first, the fewest with which all of them go round. So the
  last pieces may have fewer rows, or none. One without rows begins at n.

`piece_of(shape, placements, mesh_shape, place)`: what the rank at the coordinates `place` of a mesh
has, as a list with a pair (first row, rows) for each axis of a tensor of this shape.

- `placements`, `mesh_shape` and `place` have an entry for each axis of the mesh: how the tensor
  lies along it, its ranks, and the rank's position.
- `p.is_shard()`: the tensor's axis `p.dim` is cut there, between blocks of `p.unit` rows. Otherwise
  (whole in each rank, or a term of a sum) a rank has all of it.
- Two axes of the mesh may cut the same axis of the tensor: the later one cuts the pieces of the
  earlier one.

    cut(13, 4, 3)  ->  (12, 1);  cut(12, 3, 1, unit=4)  ->  (4, 4);  cut(5, 4, 3)  ->  (5, 0)

Source: Paddle API `paddle.distributed.Shard`; Xu et al., "GSPMD", 2021, section 3.
"""


def cut(n, parts, k, unit=1):
    """(first row, rows) of piece k."""
    rows = -(-n // (unit * parts)) * unit  # of the first piece: blocks, rounded up
    first = min(k * rows, n)
    return first, min(rows, n - first)


def piece_of(shape, placements, mesh_shape, place):
    """For each axis of the tensor the (first row, rows) of the rank at `place`."""
    found = [(0, n) for n in shape]
    for p, parts, k in zip(placements, mesh_shape, place):
        if p.is_shard():
            begin, n = found[p.dim]
            first, rows = cut(n, parts, k, p.unit)
            found[p.dim] = begin + first, rows
    return found
