"""`group_sharded_parallel`: ZeRO's stages for a model that each rank calls with rows of its own.

`shard_optimizer` implements the stages. This module puts the model on a mesh, joins the rows of the
ranks to one sharded tensor, and gives each rank its rows of the result.
"""

from pathlib import Path

from ...core.prelude import Tensor, current, not_supported, type_error, value_error, wrap
from ...engine.eager.pylayer import PyLayer
from ...engine.jit.tree import flatten, unflatten
from ...engine.sharding.array import sharded
from ...engine.sharding.placements import ProcessMesh, Shard
from ...io import save
from ...nn import Layer
from ...optimizer import Optimizer
from ..auto_parallel.api import dtensor_from_local, dtensor_to_local
from ..auto_parallel.layers import shard_layer
from ..auto_parallel.stages import shard_along
from ..communication import barrier
from ..fleet import topology
from ..parallel import get_group, get_rank
from ..ranks.known_groups import group_of
from ..ranks.require_same import parameters_of, require_same
from ..tensors.dist_tensor import unshard_dtensor, view_of
from ..tensors.layout import Wrapper, broadcast_first, put_on_mesh

LEVELS = {"os": 1, "os_g": 2, "p_g_os": 3}
"""Paddle's names of the stages: states of the optimizer, gradients, parameters."""


class GroupSharded(Wrapper):
    """A model whose parameters are on a mesh, for inputs that are each rank's own rows.

    Tensors of a rank, also those in containers, are its rows of the batch, as many in each rank
    (the last ones may have fewer, as `Shard(0)` cuts); results are its rows. The gradient of their
    loss is averaged over the ranks. A result without an axis is a result of the whole batch.
    Sharded tensors stay sharded from input to result: a captured step takes no others.
    """

    def __init__(self, layers: Layer, mesh: ProcessMesh):
        super().__init__(layers, "group_sharded")
        self.mesh = mesh
        self.rows = [Shard(0)] * mesh.ndim

    def forward(self, *inputs, **kwargs):
        leaves, form = flatten((inputs, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if current.top.tracing or not tensors or any(sharded(x.array) for x in tensors):
            return self._layers(*inputs, **kwargs)
        inputs, kwargs = unflatten(form, [*map(self.join_rows, leaves)])
        leaves, form = flatten(self._layers(*inputs, **kwargs))
        return unflatten(form, [*map(self.take_rows, leaves)])

    def join_rows(self, x):
        """The rows of all ranks as one tensor."""
        if not isinstance(x, Tensor) or not x.ndim:
            return x
        return dtensor_from_local(x, self.mesh, self.rows)

    def take_rows(self, y):
        """This rank's rows of a result."""
        if not isinstance(y, Tensor) or not y.ndim or not y.is_dist():
            return y
        return GradientShare.apply(dtensor_to_local(y, self.mesh, self.rows), self.mesh.size)


class GradientShare(PyLayer):
    """x itself; its gradient is divided by the `ranks` whose gradients are averaged."""

    @staticmethod
    def forward(ctx, x, ranks):
        ctx.ranks = ranks
        return wrap(x.array.copy())

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.ranks


def group_sharded_parallel(
    model,
    optimizer,
    level,
    scaler=None,
    group=None,
    offload=False,
    sync_buffers=False,
    buffer_max_size=2**23,
    segment_size=2**20,
    sync_comm=False,
    dp_group=None,
    exclude_layer=None,
):
    """The model, the optimizer and the scaler, for training with less memory in each rank.

    level: "os" shards the states of the optimizer, "os_g" gradients too, "p_g_os" parameters too:
        `ShardingStage1`, `2` and `3` on a mesh of the group's ranks
    scaler: None; scaling of losses comes with mixed precision
    group: the ranks; all of them if absent
    offload: keep states in the memory of the host. A CPU has them there already: nothing
        changes. NotImplementedError for a model on a GPU
    sync_buffers: do all ranks begin with the buffers of the group's first? Otherwise they have to
        be equal, and ValueError names those that are not
    dp_group: ranks with copies of the shards, along dp of `fleet.init`'s mesh; `group` is its
        dimension sharding
    exclude_layer: class names and `id`s of layers whose parameters stay replicated in "p_g_os"

    `buffer_max_size`, `segment_size` and `sync_comm` change nothing: every weight with an axis is
    cut, and programs plan their messages. All ranks begin with the parameters of the first. Raises
    TypeError and ValueError for what is no model, optimizer or level.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     net = paddle.nn.Linear(4, 3)
    ...     adam = paddle.optimizer.Adam(parameters=net.parameters())
    ...     net, adam, _ = dist.sharding.group_sharded_parallel(net, adam, "p_g_os")
    ...     y = net(paddle.rand([5, 4]))
    ...     y.mean().backward()
    ...     adam.step()
    ...     return y.shape, [p._local_shape for p in net.parameters()]
    >>> dist.spawn(work, nprocs=2).results[0]
    ([5, 3], [[2, 3], [2]])
    """
    if not isinstance(model, Layer):
        raise type_error(f"group_sharded_parallel of {model!r:.80}", "a paddle.nn.Layer")
    if not isinstance(optimizer, Optimizer):
        raise type_error(f"group_sharded_parallel with {optimizer!r:.80}", "an optimizer")
    if level not in LEVELS:
        raise value_error(f"level={level!r}", expected="'os', 'os_g' or 'p_g_os'")
    if scaler is not None:
        raise not_supported(
            "group_sharded_parallel with a scaler comes with a later part of MiniPaddle: "
            "mixed precision"
        )
    if offload and any("gpu" in str(p.place) for p in model.parameters()):
        raise not_supported(
            "group_sharded_parallel with offload=True of a model on a GPU", expected="offload=False"
        )
    mesh, replicated = mesh_of(group_of(group), dp_group), parameters_in(model, exclude_layer or ())
    excluded = [k for k, p in enumerate(model.parameters()) if id(p) in replicated]
    settings = level, f"sync_buffers={sync_buffers}", f"exclude_layer of parameters {excluded}"
    facts = {"level and options": [*settings]} | parameters_of(model)
    require_same("group_sharded_parallel", mesh, facts)
    put_on_mesh(model.parameters(), mesh)
    for x in model.buffers() if sync_buffers else ():
        broadcast_first(x, mesh)
    shard_layer(model, mesh)
    shard_along(optimizer, LEVELS[level], mesh.dim_names[-1], mesh, replicated)
    return GroupSharded(model, mesh), optimizer, scaler


def mesh_of(group, dp_group) -> ProcessMesh:
    """The mesh whose last dimension is the group; with `dp_group`, the mesh of `fleet.init`."""
    if dp_group is None or dp_group.size == 1:
        return ProcessMesh([*group.ranks], ["sharding"])
    hybrid = topology.current.now
    if hybrid is not None and hybrid.mesh.dim_names == ["dp", "sharding"]:
        groups = hybrid.get_data_parallel_group(), hybrid.get_sharding_parallel_group()
        if [g.ranks for g in groups] == [dp_group.ranks, group.ranks]:
            return hybrid.mesh
    raise not_supported(
        f"dp_group of the ranks {[*dp_group.ranks]} and group of the ranks {[*group.ranks]}",
        expected="the groups along dp and sharding of fleet.init, with no other axis",
    )


def parameters_in(model: Layer, layers) -> set[int]:
    """The `id`s of the parameters in some layers, named by their classes or `id`s."""
    keys = [(x, {type(x).__name__, id(x)}) for x in model.sublayers(include_self=True)]
    for key in layers:
        if not any(key in names for _, names in keys):
            raise value_error(f"exclude_layer with {key!r}", expected="a class or id of a layer")
    return {id(p) for x, names in keys if names & {*layers} for p in x.parameters()}


def save_group_sharded_model(model, output, optimizer=None) -> None:
    """Save what `group_sharded_parallel` returned: `model.pdmodel` and, with an optimizer,
    `model.pdopt` in the folder `output`, as full tensors, as one process would save them.

    All ranks call it; the first of the group writes. Raises TypeError for another model, ValueError
    if `output` is a file.

    >>> import tempfile
    >>> import minipaddle.distributed as dist
    >>> folder = tempfile.mkdtemp()
    >>> def work():
    ...     net = paddle.nn.Linear(4, 3)
    ...     sgd = paddle.optimizer.SGD(parameters=net.parameters())
    ...     net, sgd, _ = dist.sharding.group_sharded_parallel(net, sgd, "p_g_os")
    ...     dist.sharding.save_group_sharded_model(net, folder, sgd)
    >>> _ = dist.spawn(work, nprocs=2)
    >>> paddle.load(folder + "/model.pdmodel")["weight"].shape
    [4, 3]
    """
    if not isinstance(model, GroupSharded):
        raise type_error(
            f"save_group_sharded_model of {type(model).__name__}",
            "the model that group_sharded_parallel returned",
        )
    folder = Path(output)
    if folder.is_file():
        raise value_error(f"output={str(output)!r}, which is a file", expected="a folder")
    first = get_rank() == model.mesh.process_ids[0]
    for name, owner in (("model.pdmodel", model), ("model.pdopt", optimizer)):
        if owner is not None:
            values = gather_values(owner.state_dict())
            if first:
                folder.mkdir(parents=True, exist_ok=True)
                save(values, str(folder / name))
    for number in view_of(model.mesh).groups:  # all wait until there is a file
        barrier(get_group(number))


def gather_values(state):
    """A state dict with full tensors instead of sharded ones."""
    leaves, form = flatten(state)
    gather = [isinstance(x, Tensor) and x.is_dist() for x in leaves]
    return unflatten(form, [unshard_dtensor(x) if g else x for x, g in zip(leaves, gather)])
