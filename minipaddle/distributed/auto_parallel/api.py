"""Between a rank's own tensors and tensors in pieces."""

from __future__ import annotations

from math import prod

from ...core.prelude import Tensor, current, not_supported, value_error
from ...engine.eager.pylayer import PyLayer
from ...engine.eager.tensor import wrap
from ...engine.sharding.array import ShardedArray, sharded
from ...engine.sharding.pieces import of_gradient
from ...engine.sharding.placements import local_shape
from ..ranks.require_same import exchange, require_same
from ..tensors.dist_tensor import check_placements, reshard, shard_tensor, view_of
from .mesh import require_mesh


def dtensor_from_fn(fn, mesh, placements, *args, **kwargs):
    """The tensor `fn(*args, **kwargs)`, which all ranks compute alike, in pieces.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     return dist.dtensor_from_fn(paddle.ones, mesh, [dist.Shard(0)], [4, 2])._local_shape
    >>> dist.spawn(work, nprocs=2).results
    [[2, 2], [2, 2]]
    """
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


class FromLocal(PyLayer):
    """Each rank's tensor is its piece; so is its gradient. That of a term is the sum's."""

    @staticmethod
    def forward(ctx, local, shape, placements, mesh):
        ctx.place = mesh, placements
        return wrap(ShardedArray(local.array.copy(), shape, placements, view_of(mesh)))

    @staticmethod
    def backward(ctx, gradient):
        mesh, placements = ctx.place
        terms = [(n, p.op) for n, p in zip(mesh.shape, placements) if p.is_partial()]
        if other := [op for _, op in terms if op not in ("sum", "avg")]:
            raise not_supported(f"the gradient of dtensor_from_local with Partial({other[0]!r})")
        own = place(gradient, mesh, [*map(of_gradient, placements)]).local
        parts = prod(n for n, op in terms if op == "avg")
        return wrap(own if parts == 1 else own / parts)


class ToLocal(PyLayer):
    """A rank's piece; the gradients of the pieces are those of the tensor, and lie as `gradient`
    says; by default as the pieces do.
    """

    @staticmethod
    def forward(ctx, whole, placements, mesh, gradient=None):
        ctx.piece = array = place(whole, mesh, placements)
        ctx.gradient = gradient or array.placements
        return wrap(array.local.copy())

    @staticmethod
    def backward(ctx, gradient):
        piece = ctx.piece
        found = ShardedArray(gradient.array, piece.shape, ctx.gradient, piece.view)
        return wrap(found.placed(tuple(map(of_gradient, piece.placements))))


def place(x: Tensor, mesh, placements) -> ShardedArray:
    """The array of a tensor in pieces, as it lies after moves."""
    return reshard(x.detach(), mesh, placements).array


def dtensor_from_local(local_tensor, mesh, placements):
    """The tensor whose pieces are the `local_tensor`s of the ranks; gradients flow back.

    On an axis of the mesh that is `Shard(d)` the pieces are joined along d: all ranks call it.
    Raises ValueError on all ranks if the pieces do not have the shapes in which the joined tensor
    would be cut.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     own = paddle.full([1, 2], dist.get_rank())
    ...     x = dist.auto_parallel.api.dtensor_from_local(own, mesh, [dist.Shard(0)])
    ...     return x.tolist()
    >>> dist.spawn(work, nprocs=2).results[0]
    [[0.0, 0.0], [1.0, 1.0]]
    """
    eager_only("dtensor_from_local")
    given = local_tensor if isinstance(local_tensor, Tensor) else Tensor(local_tensor)
    own = [*given.spec.shape]
    what = f"dtensor_from_local of {given.spec}"
    found = check_placements(placements, require_mesh(mesh, what), len(own), what)
    require_same(what, mesh, {"each piece": [given.dtype.name, f"{len(own)} axes", f"{[*found]}"]})
    shape = infer_full_shape(own, found, view_of(mesh), what)
    return FromLocal.apply(given, shape, found, mesh)


def infer_full_shape(own: list[int], placements, view, what: str) -> list[int]:
    """The shape of the whole, from that of each rank's piece."""
    ranks = view.mesh.process_ids
    places, shape = map(view.mesh.coordinate, ranks), [*own]
    shapes = dict(zip(places, exchange(own, ranks), strict=True))
    for dim in {p.dim for p in placements if p.is_shard()}:
        cut = [p.is_shard(dim) for p in placements]
        line = [s[dim] for k, s in shapes.items() if all(c or not j for c, j in zip(cut, k))]
        shape[dim] = sum(line)
    for place, piece in shapes.items():
        expected = local_shape(shape, placements, view.shape, place)
        if tuple(piece) != expected:
            raise value_error(
                f"{what}: the rank at {list(place)} of the mesh {view.mesh} has a piece of shape "
                f"{piece}; joined as {[*placements]} the tensor would have shape {shape}",
                expected=f"a piece of shape {[*expected]} there",
            )
    return shape


def dtensor_to_local(dist_tensor, mesh, placements):
    """This rank's piece of a tensor that is moved to `placements` first; gradients flow back.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     x = dist.shard_tensor(paddle.arange(4), mesh, [dist.Shard(0)])
    ...     return dist.auto_parallel.api.dtensor_to_local(x, mesh, [dist.Shard(0)]).tolist()
    >>> dist.spawn(work, nprocs=2).results
    [[0, 1], [2, 3]]
    """
    eager_only("dtensor_to_local")
    what = f"dtensor_to_local of {dist_tensor.spec}"
    if not sharded(dist_tensor.array):
        raise value_error(f"{what}, which does not lie in pieces", expected="shard_tensor(...)")
    found = check_placements(placements, require_mesh(mesh, what), dist_tensor.array.ndim, what)
    return ToLocal.apply(dist_tensor, found, mesh)


def eager_only(name: str) -> None:
    """Refuse what a program cannot hold: there a tensor is always whole."""
    if current.top.tracing:
        raise not_supported(f"{name} in a program", hint="call it outside of to_static")
