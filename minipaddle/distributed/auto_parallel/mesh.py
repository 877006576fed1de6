"""The mesh of a rank, where a function is given none."""

from __future__ import annotations

from math import prod

from ...core.prelude import per_rank, type_error, value_error
from ...engine.sharding.placements import ProcessMesh
from ..ranks import known


class Chosen:
    """The mesh that a rank has chosen."""

    def __init__(self):
        self.mesh: ProcessMesh | None = None

    def __copy__(self):
        return Chosen()


chosen = per_rank(Chosen())


def get_mesh() -> ProcessMesh | None:
    """The mesh that `set_mesh` was given; None before. Source: Paddle API
    `paddle.distributed.get_mesh`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     dist.set_mesh(dist.ProcessMesh([0, 1], dim_names=["x"]))
    ...     return dist.get_mesh()
    >>> dist.spawn(work, nprocs=2).results[1]
    {shape: [2], process_ids: [0,1], dim_names: [x]}
    """
    return chosen.now.mesh


def set_mesh(mesh: ProcessMesh) -> None:
    """Let `mesh` be what functions use that are given no mesh.

    Raises TypeError for anything else. Source: Paddle API `paddle.distributed.set_mesh`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     dist.set_mesh(dist.ProcessMesh([[0, 1]], dim_names=["dp", "mp"]))
    ...     return dist.get_mesh().shape
    >>> dist.spawn(work, nprocs=2).results
    [[1, 2], [1, 2]]
    """
    chosen.now.mesh = checked_mesh(mesh, "set_mesh")


def create_mesh(mesh_dims) -> ProcessMesh:
    """A mesh of all ranks in order, chosen from then on; `mesh_dims` are pairs (name, size).

    Raises ValueError if the sizes do not multiply to the number of ranks. Source: Paddle API
    `paddle.distributed.auto_parallel.create_mesh`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     return dist.auto_parallel.create_mesh([("dp", 1), ("mp", 2)])
    >>> dist.spawn(work, nprocs=2).results[0]
    {shape: [1,2], process_ids: [0,1], dim_names: [dp,mp]}
    """
    names, shape = [name for name, _ in mesh_dims], [n for _, n in mesh_dims]
    world = known().world.size
    if prod(shape) != world:
        raise value_error(f"create_mesh({mesh_dims}) of {world} ranks", expected="all of them")
    set_mesh(ProcessMesh(None, names, shape, [*range(world)]))
    return get_mesh()


def checked_mesh(mesh, what: str) -> ProcessMesh:
    """A mesh, or TypeError."""
    if not isinstance(mesh, ProcessMesh):
        raise type_error(f"{what} of {mesh!r}", "dist.ProcessMesh([0, 1], dim_names=['x'])")
    return mesh
