"""One axis of a mesh at a time: cutting parameters along it, and moving tensors along it."""

from __future__ import annotations

from ..core.prelude import current, value_error
from ..engine.ops import marks
from ..engine.sharding.array import sharded
from ..engine.sharding.placements import REPLICATE, Placement, ProcessMesh, Shard
from .communication import broadcast
from .dist_tensor import cut_tensor, view_of
from .ranks import group_numbered


def move_on_axis(x, mesh: ProcessMesh, axis: str, placement: Placement, what: str = "reshard"):
    """x where it lies otherwise on one axis of the mesh, and on the others as before. A mesh
    without that axis has one rank there: nothing moves.
    """
    if axis not in mesh.dim_names:
        return x
    require_pieces(x, what)
    if placement.is_shard():
        ndim = x.spec.ndim
        if not -ndim <= placement.dim < ndim:
            raise value_error(f"{what}: {placement} of {x.spec}")
        placement = Shard(placement.dim % ndim)
    view_of(mesh)
    placements = tuple(placement if name == axis else None for name in mesh.dim_names)
    return marks.reshard(x, mesh=mesh, placements=placements)


def require_pieces(x, what: str) -> None:
    """ValueError for a tensor that is on no mesh; what a trace computes may still become one."""
    if not current.top.tracing and not sharded(x.array):
        raise value_error(
            f"{what} was given {x.spec}, a tensor of this rank alone",
            expected="a tensor in pieces",
            hint="dist.shard_tensor(x, mesh, placements)",
        )


def cut_parameter(p, mesh: ProcessMesh, cuts: dict[str, int]) -> None:
    """Put a parameter on a mesh: as rank 0 has it, cut along an axis `cuts[name]` by the axis
    `name` of the mesh, whole along the others. One that lies on the mesh keeps its other cuts.
    """
    before = p.placements if p.process_mesh == mesh else [REPLICATE] * mesh.ndim
    if not p.is_dist() and mesh.size > 1:
        for group in map(group_numbered, view_of(mesh).groups):  # along one axis after the other
            broadcast(p, group.ranks[0], group)
    found = [
        Shard(cuts[name]) if name in cuts else own for name, own in zip(mesh.dim_names, before)
    ]
    if not p.is_dist() or found != before:
        cut_tensor(p, mesh, found)


def put_on_mesh(layer, mesh: ProcessMesh) -> None:
    """Put the parameters of a layer that are on no mesh yet on this one, whole in each rank."""
    for p in layer.parameters():
        if not p.is_dist():
            cut_parameter(p, mesh, {})
