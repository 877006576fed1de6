"""Where the shards of a tensor are: a mesh of ranks, and a placement for each of its axes.

A `ProcessMesh` arranges ranks in a grid. On each axis of the grid a tensor is

| placement      | what a rank holds                                                          |
|----------------|----------------------------------------------------------------------------|
| `Replicate()`  | all of it                                                                  |
| `Shard(d)`     | its piece along the tensor's axis d; the last pieces are smaller, or empty, |
|                | if the rows do not divide                                                  |
| `Partial("sum")` | a tensor of the same shape: the sum (maximum, …) over the ranks is meant |

Two axes of the mesh may shard one axis of a tensor: the second one cuts the pieces of the first.

Sources: Xu et al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021;
Paddle API `paddle.distributed.ProcessMesh`, `Shard`, `Replicate`, `Partial`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy

from ..core.errors import type_error, value_error
from ..core.slots import slot


class Placement:
    """The placement of a tensor along one axis of a mesh: `Shard`, `Replicate` or `Partial`.

    >>> import minipaddle.distributed as dist
    >>> dist.Shard(1).is_shard(), dist.Replicate().is_partial()
    (True, False)
    """

    stored = False

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut (along the axis `dim`)."""
        return False

    def is_replicated(self) -> bool:
        """Whether each rank has all of it."""
        return False

    def is_partial(self) -> bool:
        """Whether each rank has one term."""
        return False


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a piece along the tensor's axis `dim`, cut between blocks of `unit` rows. One
    that is `stored` in pieces is cut to save memory only: operators gather it, and take the whole.

    >>> import minipaddle.distributed as dist
    >>> dist.Shard(0)
    Shard(dim=0)
    """

    dim: int
    unit: int = 1
    stored: bool = field(default=False, compare=False)

    def __post_init__(self):
        if not isinstance(self.dim, (int, numpy.integer)):
            raise type_error(f"Shard({self.dim!r})", expected="the number of an axis: Shard(0)")

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})" if self.unit == 1 else f"Shard({self.dim}, {self.unit})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor.

    >>> import minipaddle.distributed as dist
    >>> dist.Replicate()
    Replicate()
    """

    def is_replicated(self) -> bool:
        return True


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has one term of a sum ("avg", "max", "min", "prod").

    >>> import minipaddle.distributed as dist
    >>> dist.Partial()
    Partial(reduce_type=SUM)
    """

    op: str = "sum"

    def is_partial(self) -> bool:
        return True

    def reduce_type(self) -> str:
        """How the terms are combined."""
        return self.op

    def __repr__(self) -> str:
        return f"Partial(reduce_type={self.op.upper()})"


REPLICATE = Replicate()


class ProcessMesh:
    """Ranks in a grid, with a name for each of its axes.

    mesh: the ranks as nested lists; or give `shape` and the flat list `process_ids`

    >>> import minipaddle.distributed as dist
    >>> dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
    {shape: [2,2], process_ids: [0,1,2,3], dim_names: [dp,mp]}
    """

    def __init__(self, mesh=None, dim_names=None, shape=None, process_ids=None):
        if mesh is None:
            if shape is None or process_ids is None:
                raise value_error("ProcessMesh()", expected="mesh, or shape and process_ids")
            mesh = numpy.reshape(process_ids, shape)
        ranks = numpy.array(mesh)
        if ranks.dtype.kind not in "iu" or not ranks.size or not ranks.ndim:
            raise type_error(
                f"ProcessMesh({mesh!r})", expected="ranks as nested lists of one depth"
            )
        if ranks.min() < 0 or len(set(ranks.flat)) < ranks.size:
            raise value_error(
                f"ProcessMesh({ranks.tolist()})", expected="different ranks, 0 or more"
            )
        names = [f"d{k}" for k in range(ranks.ndim)] if dim_names is None else dim_names
        if len(names) != ranks.ndim or len(set(names)) < len(names):
            raise value_error(
                f"dim_names={list(names)} of a mesh of shape {list(ranks.shape)}",
                expected="a different name for each axis",
            )
        self.mesh, self.key = ranks, (ranks.shape, tuple(ranks.flat), tuple(names))

    shape = property(lambda self: [*self.key[0]])
    process_ids = property(lambda self: [int(r) for r in self.key[1]])
    dim_names = property(lambda self: [*self.key[2]])
    ndim = property(lambda self: len(self.key[0]))
    size = property(lambda self: len(self.key[1]))

    def axis(self, name: str | int) -> int:
        """The number of an axis, by its name or number."""
        if name in self.key[2]:
            return self.key[2].index(name)
        if isinstance(name, int) and 0 <= name < self.ndim:
            return name
        raise value_error(f"no axis {name!r} in {self}", expected=f"one of {self.dim_names}")

    def coordinate(self, rank: int) -> tuple[int, ...] | None:
        """The coordinates of a rank; None if it is not in the mesh."""
        positions = numpy.argwhere(self.mesh == rank)
        return tuple(map(int, positions[0])) if len(positions) else None

    def line(self, axis: int, rank: int) -> list[int]:
        """The ranks that differ from `rank` along an axis only, in the order of the mesh."""
        place = list(self.coordinate(rank))
        place[axis] = slice(None)
        return [int(r) for r in self.mesh[tuple(place)]]

    def __eq__(self, other) -> bool:
        return isinstance(other, ProcessMesh) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        shape, ids, names = (",".join(map(str, x)) for x in self.key)
        return f"{{shape: [{shape}], process_ids: [{ids}], dim_names: [{names}]}}"


# ---- pieces --------------------------------------------------------------------------------------

Placements = tuple[Placement, ...]


@slot("sharding.cut")
def cut(n: int, parts: int, k: int, unit: int = 1) -> tuple[int, int]:
    """(first row, rows) of piece `k` of `n` rows in blocks of `unit`: as many as go round, so that
    the last pieces may have fewer, or none.

    >>> from minipaddle.engine.sharding.placements import cut
    >>> [cut(13, 4, k) for k in range(4)]
    [(0, 4), (4, 4), (8, 4), (12, 1)]
    """
    each = -(-n // (unit * parts)) * unit
    start = min(each * k, n)
    return start, min(each, n - start)


@slot("sharding.piece_of")
def piece_of(shape, placements: Placements, mesh_shape, place) -> list[tuple[int, int]]:
    """For each axis of a tensor the (first row, rows) of the rank at coordinates `place`."""
    ranges = [(0, n) for n in shape]
    for placement, parts, k in zip(placements, mesh_shape, place, strict=True):
        if placement.is_shard():
            start, n = ranges[placement.dim]
            first, rows = cut(n, parts, k, placement.unit)
            ranges[placement.dim] = start + first, rows
    return ranges


def local_shape(shape, placements: Placements, mesh_shape, place) -> tuple[int, ...]:
    """The shape of the piece of the rank at coordinates `place`."""
    return tuple(rows for _, rows in piece_of(shape, placements, mesh_shape, place))


def normalize(placements: Placements, shape, mesh_shape) -> Placements:
    """The placements without a unit where pieces are equal: then blocks make no difference."""
    parts = [1] * len(shape)
    for p, n in zip(placements, mesh_shape, strict=True):
        if p.is_shard():
            parts[p.dim] *= n
    return tuple(
        Shard(p.dim) if p.is_shard() and p.unit > 1 and divides(shape[p.dim], p.unit, parts[p.dim])
        else p
        for p in placements
    )  # fmt: skip


def combine_terms(placements: Placements) -> Placements:
    """The placements of the same tensor once its partial sums are combined."""
    return tuple(REPLICATE if p.is_partial() else p for p in placements)


def divides(n: int, unit: int, parts: int) -> bool:
    """Whether `n` rows make equal pieces of whole blocks."""
    return n % (unit * parts) == 0
