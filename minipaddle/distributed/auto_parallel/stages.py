"""Less memory for an optimizer: ZeRO's three stages, as placements.

| stage | sharded along a mesh dimension  | each step                                        |
|-------|---------------------------------|--------------------------------------------------|
| 1     | states of the optimizer         | reduce-scatters gradients, all-gathers weights   |
| 2     | gradients too, from the step on | the same                                         |
| 3     | weights too                     | reduce-scatters gradients; each use of a weight  |
|       |                                 | all-gathers it                                   |

A weight is sharded at its first axis that divides, otherwise at axis 0, in unequal shards.
Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020; Paddle API `paddle.distributed.ShardingStage1`, `ShardingStage2`, `ShardingStage3`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ...core.prelude import Tensor, current, not_supported, slot, type_error, value_error, wrap
from ...engine.sharding.array import ShardedArray, sharded
from ...engine.sharding.placements import Placements, ProcessMesh, Shard, piece_of
from ...optimizer import Optimizer
from ..checkpoint.boxes import box_of, index_within
from ..ranks.require_same import require_same
from ..tensors.dist_tensor import reshard, shard_tensor
from ..tensors.layout import put_on_mesh
from .mesh import get_mesh, require_mesh

__all__ = ["ShardingStage1", "ShardingStage2", "ShardingStage3", "shard_optimizer", "shard_scaler"]


class ShardingStage1:
    """States of the optimizer sharded along a mesh dimension; weights and gradients replicated.

    sharding_mesh_dim: the dimension, by name or number
    mesh: of parameters that are on none; the default one (`set_mesh`) if absent
    Raises ValueError for a dimension that the mesh lacks.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh, net = dist.ProcessMesh([0, 1], dim_names=["dp"]), paddle.nn.Linear(4, 3)
    ...     adam = paddle.optimizer.Adam(parameters=net.parameters())
    ...     adam = dist.shard_optimizer(adam, dist.ShardingStage1("dp", mesh))
    ...     net(paddle.ones([2, 4])).sum().backward()
    ...     adam.step()
    ...     return [x._local_shape for x in adam.state_dict().values()][:2]
    >>> dist.spawn(work, nprocs=2).results
    [[[2, 3], [2]], [[2, 3], [1]]]
    """

    keeps_gradients = False  # sharded
    stores = False  # sharded weights
    whole: Iterable[int] = ()  # the `id`s of parameters that stay replicated nevertheless

    def __init__(self, sharding_mesh_dim: int | str, mesh: ProcessMesh | None = None):
        self.axis = sharding_mesh_dim
        self.mesh = mesh if mesh is None else require_mesh(mesh, type(self).__name__)
        if mesh is not None:
            mesh.axis(sharding_mesh_dim)

    def __call__(self, key: str, param, accumulator) -> Tensor:
        """The state `accumulator` of a parameter, with the placements of this stage."""
        mesh = param.process_mesh
        same = accumulator.shape == param.shape
        return shard_tensor(accumulator, mesh, self.pieces(param) if same else [])

    def shard_master_weight(self, param, master_weight) -> Tensor:
        """The copy of a parameter in more precision, with the placements of its states."""
        return self("master_weight", param, master_weight)

    @slot("zero.pieces")
    def pieces(self, param) -> Placements:
        """The placements of a parameter, its gradient and its states during a step."""
        mesh, placements = param.process_mesh, [*param.placements]
        axis = mesh.axis(self.axis)
        if placements[axis].is_shard() or not param.ndim:
            return tuple(Shard(p.dim, p.unit) if p.is_shard() else p for p in placements)
        along = [*zip(mesh.shape, placements)]
        cut = [[n for n, p in along if p.is_shard(d)] for d in range(param.ndim)]
        parts = [prod(ns) * mesh.shape[axis] for ns in cut]
        fits = [d for d, n in enumerate(param.shape) if n % parts[d] == 0]
        placements[axis] = Shard(fits[0] if fits else 0)
        return tuple(placements)

    def adopt(self, param) -> None:
        """Put a parameter on the mesh, with the placements that this stage stores."""
        if not param.is_dist():
            mesh = self.mesh or get_mesh()
            if mesh is None:
                raise value_error(
                    f"{type(self).__name__}: the parameter {param.name} lies on no mesh",
                    hint=f"{type(self).__name__}({self.axis!r}, mesh)",
                )
            shard_tensor(param, mesh, [])
        mesh, before = param.process_mesh, param.placements
        axis = mesh.axis(self.axis)
        cut = self.stores and id(param) not in self.whole
        if cut and param.ndim and before[axis].is_replicated():
            before[axis] = Shard(self.pieces(param)[axis].dim, stored=True)
            shard_tensor(param, mesh, before)


class ShardingStage2(ShardingStage1):
    """States sharded, and from the step on gradients too.

    A backward leaves a gradient as partial sums, one in each rank; the step reduce-scatters them.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh, net = dist.ProcessMesh([0, 1], dim_names=["dp"]), paddle.nn.Linear(4, 3)
    ...     sgd = paddle.optimizer.SGD(parameters=net.parameters())
    ...     sgd = dist.shard_optimizer(sgd, dist.ShardingStage2("dp", mesh))
    ...     net(paddle.ones([2, 4])).sum().backward()
    ...     sgd.step()
    ...     return net.weight._local_shape, net.weight.grad._local_shape
    >>> dist.spawn(work, nprocs=2).results[0]
    ([4, 3], [2, 3])
    """

    keeps_gradients = True


class ShardingStage3(ShardingStage2):
    """States, gradients and weights sharded: an operator that uses a weight all-gathers it.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh, net = dist.ProcessMesh([0, 1], dim_names=["dp"]), paddle.nn.Linear(4, 3)
    ...     sgd = paddle.optimizer.SGD(parameters=net.parameters())
    ...     dist.shard_optimizer(sgd, dist.ShardingStage3("dp", mesh))
    ...     return net.weight._local_shape, net(paddle.ones([2, 4])).placements
    >>> dist.spawn(work, nprocs=2).results[0]
    ([2, 3], [Replicate()])
    """

    stores = True


STAGES = (None, ShardingStage1, ShardingStage2, ShardingStage3)
"""The stages by number; 0 is none."""


class PlacedOptimizer(Optimizer):
    """An optimizer whose new states a function places."""

    def place_state(self, p, name, state):
        placed = self.shard_fn(name, p, state)
        if not isinstance(placed, Tensor) or placed.shape != state.shape:
            raise type_error(
                f"shard_fn made {placed!r:.80} of the state {name} of {p.name}", f"{state.spec}"
            )
        return placed


class StagedOptimizer(PlacedOptimizer):
    """An optimizer that computes its step on the shards of a stage."""

    @slot("zero.gradient_of")
    def gradient_of(self, p):
        g = p.grad
        if g is None or p.stop_gradient:
            return g
        g = reshard(g, *self.layouts[p])
        if self.shard_fn.keeps_gradients:
            p.grad = g
        return g

    @slot("zero.value_of")
    def value_of(self, p):
        return reshard(p, *self.layouts[p])

    def master_of(self, p, dtype):
        return wrap(take_subshard(current.top.fetch_array(p), self.layouts[p][1]).astype(dtype))


def take_subshard(array: ShardedArray, placements: Placements) -> ShardedArray:
    """The array with each rank's shard cut further, which moves nothing."""
    view = array.view
    index = index_within(piece_of(array.shape, placements, view.shape, view.place), box_of(array))
    return ShardedArray(array.local[(*index, ...)].copy(), array.shape, placements, view)


def shard_optimizer(optimizer, shard_fn=None, gradient_accumulation_steps: int = 1):
    """The optimizer itself, with sharded states from now on.

    shard_fn: `ShardingStage1`, `ShardingStage2`, `ShardingStage3`, or a function of the name of
    a state, its parameter and the new state that returns the sharded state. Without one, states
    have the placements of their parameters.
    gradient_accumulation_steps: the calls of a `DistModel` that make a step together; in eager
    mode, call `step()` after as many backwards.

    Raises TypeError if `optimizer` is none, NotImplementedError for one that does not step
    parameter by parameter, ValueError for a mesh without the dimension.

    >>> import minipaddle.distributed as dist
    >>> net = paddle.nn.Linear(2, 1)
    >>> optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    >>> dist.shard_optimizer(optimizer) is optimizer
    True
    """
    if not isinstance(optimizer, Optimizer):
        raise type_error(f"shard_optimizer of {optimizer!r:.80}", "an optimizer")
    base, steps = type(optimizer), gradient_accumulation_steps
    if base.step is not Optimizer.step or isinstance(optimizer, PlacedOptimizer):
        raise not_supported(
            f"shard_optimizer of {base.__name__}",
            "an optimizer that steps parameter by parameter, once",
        )
    if type(steps) is not int or steps < 1:
        raise value_error(f"gradient_accumulation_steps={steps!r}", expected="a number from 1 on")
    require_same_optimizer(optimizer, shard_fn, steps)
    optimizer.gradient_accumulation_steps = steps
    if shard_fn is None:
        return optimizer
    if not callable(shard_fn):
        raise type_error(f"shard_fn={shard_fn!r:.80}", 'dist.ShardingStage1("x", mesh)')
    staged = isinstance(shard_fn, ShardingStage1)
    if staged:
        for p in optimizer._parameter_list:
            shard_fn.adopt(p)
        optimizer.layouts = {
            p: (p.process_mesh, shard_fn.pieces(p)) for p in optimizer._parameter_list
        }
    optimizer.shard_fn = shard_fn
    optimizer.__class__ = type(
        f"Sharded{base.__name__}", (StagedOptimizer if staged else PlacedOptimizer, base), {}
    )
    for p, kept in optimizer._states.items():
        kept.states = {name: optimizer.place_state(p, name, x) for name, x in kept.states.items()}
    return optimizer


def require_same_optimizer(optimizer, shard_fn, steps: int) -> None:
    """ValueError on all ranks of the parameters' mesh unless they have the same optimizer."""
    meshes = [p.process_mesh for p in optimizer._parameter_list if p.is_dist()]
    mesh = meshes[0] if meshes else getattr(shard_fn, "mesh", None) or get_mesh()
    if mesh is None:
        return
    facts = {f"parameter {k}": [p.spec] for k, p in enumerate(optimizer._parameter_list)}
    settings = type(optimizer), shard_fn, f"gradient_accumulation_steps={steps}"
    require_same("shard_optimizer", mesh, {"the optimizer": [*settings]} | facts)


def shard_along(optimizer, stage: int, axis: str, mesh: ProcessMesh, whole: Iterable[int] = ()):
    """The optimizer in a stage of ZeRO along a dimension of a mesh, 0 for none; parameters on no
    mesh yet are replicated there, with the values of its first rank. Those whose `id`s are in
    `whole` stay replicated in stage 3, too.
    """
    if stage:
        put_on_mesh(optimizer._parameter_list, mesh)
        layout = STAGES[stage](axis, mesh)
        layout.whole = whole
        shard_optimizer(optimizer, layout)
    return optimizer


def shard_scaler(scaler):
    """The scaler itself: it checks all shards of the gradients for infinities.

    >>> import minipaddle.distributed as dist
    >>> scaler = paddle.amp.GradScaler()
    >>> dist.shard_scaler(scaler) is scaler
    True
    """
    return scaler


def bytes_held(layer, optimizer) -> dict[str, int]:
    """The bytes of this rank's shards of weights, gradients and states, master weights included.

    >>> from minipaddle.distributed.auto_parallel.stages import bytes_held
    >>> net = paddle.nn.Linear(2, 1)
    >>> bytes_held(net, paddle.optimizer.Adam(parameters=net.parameters()))
    {'weights': 12, 'gradients': 0, 'states': 0}
    """

    def total(tensors) -> int:
        arrays = [current.top.fetch_array(x) for x in tensors]
        return sum((a.local if sharded(a) else a).nbytes for a in arrays)

    weights, kept = layer.parameters(), optimizer._states.values()
    masters = [each.master for each in kept if each.master is not None]
    return {
        "weights": total(weights),
        "gradients": total(p.grad for p in weights if p.grad is not None),
        "states": total(x for each in kept for x in each.states.values()) + total(masters),
    }
