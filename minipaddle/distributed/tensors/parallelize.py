"""`dist.parallelize`: plans for layers that make a model for one process parallel."""

from fnmatch import fnmatchcase

from ...engine.core.errors import not_supported, value_error
from ...engine.sharding.placements import ProcessMesh
from ..auto_parallel.in_stages import broadcast_along_stages, stage_mesh
from ..auto_parallel.loaders import shard_dataloader
from ..auto_parallel.stages import shard_along
from ..fleet.topology import get_hybrid_communicate_group
from ..pipeline.splitting import Split, read_split_spec
from ..ranks.known_groups import current_groups
from ..ranks.require_same import parameters_of, require_same
from .layer_plans import LayerPlan
from .layout import put_on_mesh


def parallelize(model, optimizer=None, mesh=None, config=None):
    """The model and the optimizer on a mesh, by default the mesh of `fleet.init`.

    config: `mp_config`, {"parallelize_plan": {name: plan or plans}}; a name is a layer's (`*`
    matches any text) or its `.weight` or `.bias`, and the mesh has a dimension mp; `dp_config`,
    {"sharding_level": 0}: from 1 to 3, the optimizer in `ShardingStage1`, `2` or `3` along the
    mesh's dimension dp; `pp_config`, {"split_spec": where}: the stages along its dimension pp, by a
    dict of layers' names and `SplitPoint`s, or by the name of a list of layers; `dist.to_static`
    makes the model that trains in stages. Other parameters are replicated with rank 0's values.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Linear(8, 4))
    ...     plans = {"0": dist.ColWiseParallel(), "1": dist.RowWiseParallel()}
    ...     mesh = dist.ProcessMesh([0, 1], dim_names=["mp"])
    ...     net, _ = dist.parallelize(net, None, mesh, {"mp_config": {"parallelize_plan": plans}})
    ...     return [p._local_shape for p in net.parameters()], net(paddle.ones([2, 4])).shape
    >>> dist.spawn(work, nprocs=2).results[0]
    ([[4, 4], [4], [4, 4], [4]], [2, 4])
    """
    config = config or {}
    for part, settings in config.items():
        if part not in KEYS:
            raise value_error(f"parallelize with {part}", expected=", ".join(KEYS))
        for name in settings or ():
            if name != KEYS[part]:
                raise value_error(f"parallelize with {part}[{name!r}]", expected=repr(KEYS[part]))
    level = (config.get("dp_config") or {}).get("sharding_level", 0)
    if level not in (0, 1, 2, 3, "0", "1", "2", "3"):
        raise value_error(f"parallelize with sharding_level={level!r}", expected="0, 1, 2 or 3")
    level = int(level)
    if level and optimizer is None:
        raise value_error(f"parallelize with sharding_level={level} and no optimizer")
    mesh = get_hybrid_communicate_group().mesh if mesh is None else mesh
    plans = (config.get("mp_config") or {}).get("parallelize_plan", {})
    if plans and "mp" not in mesh.dim_names:
        raise value_error(f"a parallelize_plan on the mesh {mesh}", expected="an axis named mp")
    if level and "dp" not in mesh.dim_names:
        raise value_error(f"sharding_level={level} on the mesh {mesh}", expected="an axis named dp")
    facts = {"config": [config], "the optimizer": [type(optimizer)]}
    require_same("parallelize", mesh, facts | parameters_of(model))
    if "pp" in mesh.dim_names:
        mesh = split(model, mesh, config)
    elif config.get("pp_config"):
        raise value_error(f"pp_config on the mesh {mesh}", expected="an axis named pp")
    layers = dict(model.named_sublayers(include_self=True))
    for pattern, chosen in plans.items():
        chosen = chosen if isinstance(chosen, (list, tuple)) else [chosen]
        apply_plans(pattern, chosen, layers, mesh)
    if mesh.size > 1:
        put_on_mesh(model.parameters(), mesh)
    return model, optimizer and shard_along(optimizer, level, "dp", mesh)


KEYS = {
    "mp_config": "parallelize_plan",
    "dp_config": "sharding_level",
    "pp_config": "split_spec",
}
"""The keys of each part of a config."""


def split(model, mesh, config: dict) -> ProcessMesh:
    """Note where pp cuts the model; return the mesh of this rank's stage."""
    spec = (config.get("pp_config") or {}).get("split_spec")
    if spec is None:
        raise value_error(f"the mesh {mesh} without pp_config", expected="its split_spec")
    points = read_split_spec(model, spec, mesh.get_dim_size("pp"))
    broadcast_along_stages(model, mesh)
    model.pipeline_split = Split(mesh, points)
    return stage_mesh(mesh)


def to_distributed(model, optimizer, dataloader, device_num, node_num=1, config=None):
    """The model, the optimizer and the loader on all ranks: the batch is sharded, weights are
    replicated with rank 0's values. (Paddle also shards weights of the models whose patterns it
    knows: `parallelize` does so with a plan.)

    device_num, node_num: the ranks on each machine, and the machines; ValueError if these are not
    all ranks, NotImplementedError for a `config` with `sequence_parallel`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     net = paddle.nn.Linear(2, 1)
    ...     sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    ...     data = paddle.io.TensorDataset([paddle.ones([8, 2])])
    ...     loader = paddle.io.DataLoader(data, batch_size=4)
    ...     net, sgd, loader = dist.to_distributed(net, sgd, loader, device_num=2)
    ...     return [net(x)._local_shape for (x,) in loader]
    >>> dist.spawn(work, nprocs=2).results[0]
    [[2, 1], [2, 1]]
    """
    if getattr(config, "sequence_parallel", False):
        raise not_supported(
            "to_distributed with sequence_parallel", hint="parallelize with dist.SequenceParallel…"
        )
    world = current_groups().world.size
    if device_num * node_num != world:
        sizes = f"device_num={device_num}, node_num={node_num}"
        raise value_error(f"to_distributed with {sizes} of {world} ranks", expected="all of them")
    mesh = ProcessMesh([*range(world)], ["dp"])
    model, optimizer = parallelize(model, optimizer, mesh)
    return model, optimizer, shard_dataloader(dataloader, mesh, shard_dims="dp")


def apply_plans(pattern: str, plans, layers: dict, mesh) -> None:
    """Apply plans to the layers that a pattern names."""
    start, _, last = pattern.rpartition(".")
    names = (last,) if last in ("weight", "bias") else ("weight", "bias")
    wanted = start if len(names) == 1 else pattern
    matches = [layer for name, layer in layers.items() if fnmatchcase(name, wanted)]
    if not matches:
        raise value_error(
            f"parallelize_plan names {pattern!r}, which is no layer",
            expected=f"one of {', '.join([*layers][1:9])}, …",
        )
    for plan in plans:
        if not isinstance(plan, LayerPlan):
            raise value_error(
                f"the plan {plan!r} for {pattern!r}", expected="dist.ColWiseParallel(), …"
            )
        for layer in matches:
            plan.apply(layer, mesh, names)
