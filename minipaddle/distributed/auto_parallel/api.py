"""Conversion between a rank's local tensors and sharded tensors."""

from math import prod

from ...core.prelude import Tensor, current, not_supported, value_error, wrap
from ...engine.eager.pylayer import PyLayer
from ...engine.sharding.array import ShardedArray, sharded
from ...engine.sharding.pieces import place_gradient
from ...engine.sharding.placements import local_shape
from ..ranks.require_same import exchange, require_same
from ..tensors.dist_tensor import check_placements, reshard, shard_tensor, view_of
from .mesh import require_mesh


def dtensor_from_fn(fn, mesh, placements, *args, **kwargs):
    """The sharded tensor of `fn(*args, **kwargs)`, which all ranks compute alike.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     return dist.dtensor_from_fn(paddle.ones, mesh, [dist.Shard(0)], [4, 2])._local_shape
    >>> dist.spawn(work, nprocs=2).results
    [[2, 2], [2, 2]]
    """
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


class FromLocal(PyLayer):
    """Each rank's tensor is its shard; so is its gradient, the full one for a partial sum."""

    @staticmethod
    def forward(ctx, local, shape, placements, mesh):
        ctx.layout = mesh, placements
        return wrap(ShardedArray(local.array.copy(), shape, placements, view_of(mesh)))

    @staticmethod
    def backward(ctx, gradient):
        mesh, placements = ctx.layout
        terms = [(n, p.op) for n, p in zip(mesh.shape, placements) if p.is_partial()]
        if other := [op for _, op in terms if op not in ("sum", "avg")]:
            raise not_supported(f"the gradient of dtensor_from_local with Partial({other[0]!r})")
        shard = place(gradient, mesh, [*map(place_gradient, placements)]).local
        parts = prod(n for n, op in terms if op == "avg")
        return wrap(shard if parts == 1 else shard / parts)


class ToLocal(PyLayer):
    """A rank's shard; the gradients of the shards are the tensor's, with the placements `gradient`,
    by default those of the shards.
    """

    @staticmethod
    def forward(ctx, x, placements, mesh, gradient=None):
        ctx.sharded = array = place(x, mesh, placements)
        ctx.gradient = gradient or array.placements
        return wrap(array.local.copy())

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.sharded
        array = ShardedArray(gradient.array, x.shape, ctx.gradient, x.view)
        return wrap(array.move_to(tuple(map(place_gradient, x.placements))))


def place(x: Tensor, mesh, placements) -> ShardedArray:
    """The array of a sharded tensor after a move to other placements."""
    return reshard(x.detach(), mesh, placements).array


def dtensor_from_local(local_tensor, mesh, placements):
    """The tensor whose shards are the `local_tensor`s of the ranks; gradients flow back.

    Along a mesh dimension with `Shard(d)` the shards are joined at axis d: all ranks call it.
    Raises ValueError on all ranks if the shards do not have the shapes that the joined tensor has
    when it is sharded.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     own = paddle.full([1, 2], dist.get_rank())
    ...     x = dist.auto_parallel.api.dtensor_from_local(own, mesh, [dist.Shard(0)])
    ...     return x.tolist()
    >>> dist.spawn(work, nprocs=2).results[0]
    [[0.0, 0.0], [1.0, 1.0]]
    """
    require_eager("dtensor_from_local")
    local = local_tensor if isinstance(local_tensor, Tensor) else Tensor(local_tensor)
    shape_here = [*local.spec.shape]
    what = f"dtensor_from_local of {local.spec}"
    placements = check_placements(placements, require_mesh(mesh, what), len(shape_here), what)
    facts = [local.dtype.name, f"{len(shape_here)} axes", f"{[*placements]}"]
    require_same(what, mesh, {"each piece": facts})
    shape = infer_full_shape(shape_here, placements, view_of(mesh), what)
    return FromLocal.apply(local, shape, placements, mesh)


def infer_full_shape(shape_here: list[int], placements, view, what: str) -> list[int]:
    """The full shape, from the shape of each rank's shard."""
    ranks = view.mesh.process_ids
    coordinates, shape = map(view.mesh.coordinate, ranks), [*shape_here]
    shapes = dict(zip(coordinates, exchange(shape_here, ranks), strict=True))
    for dim in {p.dim for p in placements if p.is_shard()}:
        cut = [p.is_shard(dim) for p in placements]
        line = [s[dim] for k, s in shapes.items() if all(c or not j for c, j in zip(cut, k))]
        shape[dim] = sum(line)
    for coordinate, piece_shape in shapes.items():
        expected = local_shape(shape, placements, view.shape, coordinate)
        if tuple(piece_shape) != expected:
            raise value_error(
                f"{what}: the rank at {list(coordinate)} of the mesh {view.mesh} has a piece of "
                f"shape {piece_shape}; joined as {[*placements]} the tensor would have shape "
                f"{shape}",
                expected=f"a piece of shape {[*expected]} there",
            )
    return shape


def dtensor_to_local(dist_tensor, mesh, placements):
    """This rank's shard of a tensor that is moved to `placements` first; gradients flow back.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     x = dist.shard_tensor(paddle.arange(4), mesh, [dist.Shard(0)])
    ...     return dist.auto_parallel.api.dtensor_to_local(x, mesh, [dist.Shard(0)]).tolist()
    >>> dist.spawn(work, nprocs=2).results
    [[0, 1], [2, 3]]
    """
    require_eager("dtensor_to_local")
    what = f"dtensor_to_local of {dist_tensor.spec}"
    if not sharded(dist_tensor.array):
        raise value_error(f"{what}, which does not lie in pieces", expected="shard_tensor(...)")
    mesh, ndim = require_mesh(mesh, what), dist_tensor.array.ndim
    placements = check_placements(placements, mesh, ndim, what)
    return ToLocal.apply(dist_tensor, placements, mesh)


def require_eager(name: str) -> None:
    """Refuse to trace: in a program a tensor is always full."""
    if current.top.tracing:
        raise not_supported(f"{name} in a program", hint="call it outside of to_static")
