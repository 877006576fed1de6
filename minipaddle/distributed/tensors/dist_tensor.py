"""Sharded tensors on a mesh: `shard_tensor`, `reshard`, `unshard_dtensor`, …"""

from dataclasses import replace
from math import prod

from ...core.prelude import NUMPY, Tensor, current, not_supported, type_error, value_error, wrap
from ...eager.sharded import take_charge
from ...engine.core.rank import hash_64, per_rank
from ...engine.ir.builder import SymbolicArray
from ...engine.ops import marks
from ...engine.sharding.array import cut_whole, sharded
from ...engine.sharding.pieces import MeshView
from ...engine.sharding.placements import REPLICATE, Placement, ProcessMesh
from ...tensor.methods import own_members
from ..parallel import build_group
from ..ranks.known_groups import current_groups
from ..ranks.require_same import require_same, values_of


class ReduceType:
    """How the values of a `Partial` are combined. `kRedAll` and `kRedAny` of truth values are their
    minimum and maximum.

    >>> import minipaddle.distributed as dist
    >>> dist.Partial(dist.ReduceType.kRedMax)
    Partial(reduce_type=MAX)
    """

    kRedSum, kRedMax, kRedMin, kRedProd, kRedAvg = "sum", "max", "min", "prod", "avg"
    kRedAll, kRedAny = "min", "max"


REDUCTIONS = ("sum", "avg", "max", "min", "prod")


class Views:
    """The meshes that a rank has used, as it sees them."""

    def __init__(self):
        self.by_mesh: dict[ProcessMesh, MeshView] = {}

    def __copy__(self):
        return Views()


views = per_rank(Views())


def view_of(mesh: ProcessMesh) -> MeshView:
    """The mesh as this rank sees it. The first time all its ranks call it together: they make the
    groups of ranks along each dimension.
    """
    by_mesh = views.now.by_mesh
    if mesh not in by_mesh:
        rank, world = current_groups().world.rank, current_groups().world.size
        if max(mesh.process_ids) >= world:
            raise value_error(f"the mesh {mesh} in a world of {world}", expected="its ranks")
        coordinate = mesh.coordinate(rank)
        if coordinate is None:
            raise value_error(f"rank {rank} is not in the mesh {mesh}")
        require_same("the first use of a mesh", mesh, {})
        groups = []
        for axis in range(mesh.ndim):
            lines = NUMPY.moveaxis(mesh.mesh, axis, -1).reshape(-1, mesh.shape[axis])
            for line in sorted(lines.tolist()):
                number = -hash_64(mesh, line) if mesh.size < world else 0  # others do not count
                group = build_group(line, id=number)
                groups += [group.id] if rank in line else []
        by_mesh[mesh] = MeshView(mesh, tuple(mesh.shape), coordinate, tuple(groups))
    take_charge()
    return by_mesh[mesh]


def check_placements(placements, mesh: ProcessMesh, ndim: int, what: str) -> tuple[Placement, ...]:
    """A placement for each dimension of the mesh; axes of the tensor count from the front."""
    if not isinstance(mesh, ProcessMesh):
        raise type_error(f"{what}: the mesh {mesh!r}", "dist.ProcessMesh([0, 1], dim_names=['x'])")
    listed = [0] if isinstance(placements, Placement) else list(placements or ())
    if not all(isinstance(p, Placement) for p in listed) or len(listed) > mesh.ndim:
        raise value_error(
            f"{what}: placements {placements} on the mesh {mesh}",
            expected=f"a placement for each of its {mesh.ndim} axes",
            hint="[dist.Shard(0), dist.Replicate()]",
        )
    listed += [REPLICATE] * (mesh.ndim - len(listed))
    for p in listed:
        if p.is_shard() and p.dim not in range(-ndim, ndim):
            raise value_error(f"{what}: {p} of a tensor with {ndim} axes")
        if p.is_partial() and p.op not in REDUCTIONS:
            raise value_error(f"{what}: {p}", expected=f"Partial of {', '.join(REDUCTIONS)}")
    return tuple(replace(p, dim=p.dim % ndim) if p.is_shard() else p for p in listed)


def shard_tensor(data, mesh, placements, dtype=None, place=None, stop_gradient=None):
    """The tensor `data`, whose values are the same in all ranks, sharded on a mesh.

    A parameter is sharded in place. All ranks of the mesh call it; ValueError on all of
    them if shape, dtype or placements differ.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    ...     x = dist.shard_tensor(paddle.arange(6).reshape([3, 2]), mesh, [dist.Shard(0)])
    ...     return x.shape, x._local_shape
    >>> dist.spawn(work, nprocs=2).results
    [([3, 2], [2, 2]), ([3, 2], [1, 2])]
    """
    x = data if isinstance(data, Tensor) and dtype is None else Tensor(data, dtype, place)
    placements = check_placements(placements, mesh, x.array.ndim, f"shard_tensor of {x.spec}")
    if type(x.array) is SymbolicArray:  # a value of the program, whose ranks move it
        return reshard(x, mesh, placements)
    if mesh.size > 1 and not current.top.tracing:
        what = f"shard_tensor of {x.name if x.is_parameter else x.spec}"
        require_same(what, mesh, {"tensor": [x.spec, f"as {[*placements]}", values_of(x)]})
    return cut_tensor(x, mesh, placements, stop_gradient)


def cut_tensor(x: Tensor, mesh, placements, stop_gradient=None) -> Tensor:
    """`shard_tensor` without the check that all ranks give the same."""
    placements = check_placements(placements, mesh, x.array.ndim, f"shard_tensor of {x.spec}")
    array = x.array
    if sharded(array):
        array = array.whole()
    array = cut_whole(array, placements, view_of(mesh))
    if x.is_parameter:
        x.array = array
        return x
    out = Tensor.__new__(Tensor)
    out.array = array
    out.stop_gradient = x.stop_gradient if stop_gradient is None else stop_gradient
    return out


def reshard(dist_tensor, mesh, placements):
    """The same tensor with other placements; gradients flow back.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    ...     x = dist.shard_tensor(paddle.ones([4, 6]), mesh, [dist.Shard(0)])
    ...     return dist.reshard(x, mesh, [dist.Shard(1)])._local_shape
    >>> dist.spawn(work, nprocs=2).results
    [[4, 3], [4, 3]]
    """
    what = f"reshard of {dist_tensor.spec}"
    placements = check_placements(placements, mesh, dist_tensor.array.ndim, what)
    current_mesh = dist_tensor.process_mesh
    if current_mesh is not None and current_mesh != mesh:
        raise not_supported(
            f"{what}, which lies on the mesh {current_mesh}, to the mesh {mesh}",
            expected="its own mesh",
            hint="dist.shard_tensor(dist.unshard_dtensor(x), mesh, placements)",
        )
    view_of(mesh)
    return marks.reshard(dist_tensor, mesh=mesh, placements=placements)


def unshard_dtensor(dist_tensor):
    """The full tensor in each rank, off its mesh.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     x = dist.shard_tensor(paddle.arange(3), mesh, [dist.Shard(0)])
    ...     return dist.unshard_dtensor(x).tolist()
    >>> dist.spawn(work, nprocs=2).results
    [[0, 1, 2], [0, 1, 2]]
    """
    if not sharded(dist_tensor.array):
        raise value_error(
            f"unshard_dtensor of {dist_tensor.spec}, which lies on no mesh",
            expected="a tensor of dist.shard_tensor",
        )
    array = dist_tensor.array.whole()
    return Tensor(array, place=dist_tensor.place, stop_gradient=dist_tensor.stop_gradient)


class DistTensorMembers:
    """Methods and properties that `Tensor` gets."""

    def is_dist(self) -> bool:
        """Whether it is on a mesh.

        >>> paddle.ones([2]).is_dist()
        False
        """
        return sharded(current.top.fetch_array(self))

    @property
    def placements(self) -> list | None:
        """Its placement along each dimension of its mesh; None on no mesh."""
        array = current.top.fetch_array(self)
        return [*array.placements] if sharded(array) else None

    @property
    def process_mesh(self) -> ProcessMesh | None:
        """Its mesh; None on no mesh."""
        array = current.top.fetch_array(self)
        return array.view.mesh if sharded(array) else None

    @property
    def num_shard(self) -> int | None:
        """The number of its shards; None on no mesh."""
        array = current.top.fetch_array(self)
        if not sharded(array):
            return None
        return prod(n for n, p in zip(array.view.shape, array.placements) if p.is_shard())

    @property
    def _local_shape(self) -> list[int] | None:
        """The shape of this rank's shard; None on no mesh."""
        return [*self.array.local.shape] if sharded(self.array) else None

    def _local_value(self) -> Tensor | None:
        """This rank's shard as a local tensor; None on no mesh."""
        return wrap(self.array.local) if sharded(self.array) else None


Tensor.register(own_members(DistTensorMembers))
