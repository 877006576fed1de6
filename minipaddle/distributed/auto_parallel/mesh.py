"""Paddle's methods of a mesh; the default mesh of a rank."""

from math import prod

from ...engine.core.errors import type_error, value_error
from ...engine.core.rank import per_rank
from ...engine.distributed.process_group import ProcessGroup
from ...engine.eager.device import NUMPY
from ...engine.sharding.placements import ProcessMesh, Shard
from ..ranks.known_groups import current_groups, group_numbered
from ..tensors.dist_tensor import view_of


class Grid:
    """Methods of a `ProcessMesh`. A dimension has a name and a number."""

    def get_dim_size(self, dim: str | int) -> int:
        """The number of ranks along a dimension."""
        return self.shape[self.axis(dim)]

    dim_size = get_dim_size

    def contains(self, process_id: int) -> bool:
        """Whether a rank is in the mesh."""
        return process_id in self.process_ids

    def get_rank_by_dim_and_process_id(self, dim: str | int, process_id: int) -> int:
        """The coordinate of a rank along a dimension; -1 if it is not in the mesh."""
        coordinate = self.coordinate(process_id)
        return -1 if coordinate is None else coordinate[self.axis(dim)]

    def get_mesh_with_dim(self, dim_name: str | int, index: int | None = None) -> ProcessMesh:
        """The mesh with a dimension in front, or the part of it with coordinate `index` there."""
        axis, names = self.axis(dim_name), self.dim_names
        moved = ProcessMesh(NUMPY.moveaxis(self.mesh, axis, 0), [names.pop(axis), *names])
        return moved if index is None else moved[index]

    def get_submesh_with_dim(self, dim_name: str | int) -> ProcessMesh:
        """This rank and those that differ from it along one dimension only."""
        rank, axis = current_groups().world.rank, self.axis(dim_name)
        if not self.contains(rank):
            raise value_error(f"rank {rank} is not in the mesh {self}")
        return ProcessMesh(self.line(axis, rank), [self.dim_names[axis]])

    def get_group(self, dim_name: str | int | None = None) -> ProcessGroup:
        """The group of the ranks of `get_submesh_with_dim`; a mesh of one dimension needs no name.
        The first time all ranks call it together.
        """
        if dim_name is None and self.ndim > 1:
            raise value_error(f"get_group() of {self}", expected=f"one of {self.dim_names}")
        return group_numbered(view_of(self).groups[self.axis(dim_name or 0)])

    def __getitem__(self, index) -> ProcessMesh:
        keys = index if isinstance(index, tuple) else (index,)
        one = {d for d, k in enumerate(keys) if isinstance(k, int)}
        names = [name for d, name in enumerate(self.dim_names) if d not in one]
        return ProcessMesh(NUMPY.atleast_1d(self.mesh[index]), names or None)


for name, method in vars(Grid).items():
    if callable(method):
        setattr(ProcessMesh, name, method)


def get_dim(self: Shard) -> int:
    """The tensor's axis."""
    return self.dim


Shard.get_dim = get_dim


class MeshChoice:
    """The mesh that a rank has chosen."""

    def __init__(self):
        self.mesh: ProcessMesh | None = None

    def __copy__(self):
        return MeshChoice()


chosen = per_rank(MeshChoice())


def get_mesh() -> ProcessMesh | None:
    """The mesh of `set_mesh`; None before.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     dist.set_mesh(dist.ProcessMesh([0, 1], dim_names=["x"]))
    ...     return dist.get_mesh()
    >>> dist.spawn(work, nprocs=2).results[1]
    {shape: [2], process_ids: [0,1], dim_names: [x]}
    """
    return chosen.now.mesh


def set_mesh(mesh: ProcessMesh) -> None:
    """Make `mesh` the default of functions that get no mesh.

    Raises TypeError for anything else.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     dist.set_mesh(dist.ProcessMesh([[0, 1]], dim_names=["dp", "mp"]))
    ...     return dist.get_mesh().shape
    >>> dist.spawn(work, nprocs=2).results
    [[1, 2], [1, 2]]
    """
    chosen.now.mesh = require_mesh(mesh, "set_mesh")


def create_mesh(mesh_dims) -> ProcessMesh:
    """A mesh of all ranks in order, from then on the default; `mesh_dims` are pairs (name, size).

    Raises ValueError if the sizes do not multiply to the number of ranks.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     return dist.auto_parallel.create_mesh([("dp", 1), ("mp", 2)])
    >>> dist.spawn(work, nprocs=2).results[0]
    {shape: [1,2], process_ids: [0,1], dim_names: [dp,mp]}
    """
    names, shape = [name for name, _ in mesh_dims], [n for _, n in mesh_dims]
    world = current_groups().world.size
    if prod(shape) != world:
        raise value_error(f"create_mesh({mesh_dims}) of {world} ranks", expected="all of them")
    set_mesh(ProcessMesh(None, names, shape, [*range(world)]))
    return get_mesh()


def require_mesh(mesh, what: str) -> ProcessMesh:
    """A mesh, or TypeError."""
    if not isinstance(mesh, ProcessMesh):
        raise type_error(f"{what} of {mesh!r}", "dist.ProcessMesh([0, 1], dim_names=['x'])")
    return mesh
