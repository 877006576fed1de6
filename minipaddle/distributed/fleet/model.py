"""`fleet`: two calls prepare a model and its optimizer for many ranks."""

from math import prod

from ...engine.core.errors import not_supported, value_error
from ...engine.core.rank import per_rank
from ...nn import SyncBatchNorm
from ..auto_parallel.stages import shard_along
from ..communication import barrier
from ..parallel import get_rank, get_world_size, init_parallel_env
from ..pipeline.training import clip_across_stages
from ..ps.session import ServerOptimizer, session
from ..ranks.require_same import parameters_of, require_same
from ..tensors.data_parallel import DataParallel
from . import servers, topology
from .merging import GradientMerge
from .meta_parallel.pipeline_layer import PipelineLayer
from .meta_parallel.pipeline_parallel import PipelineParallel
from .meta_parallel.tensor_parallel import TensorParallel
from .strategy import DistributedStrategy, chosen, strategy_in_use

__all__ = [
    "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler", "init",
    "is_first_worker", "worker_index", "worker_num",
]  # fmt: skip

merging = per_rank(())
"""The optimizers since then that merge gradients."""


def init(role_maker=None, is_collective=False, strategy=None, log_level="INFO") -> None:
    """Connect to the other ranks, and set the strategy. `log_level` changes nothing here.

    With `is_collective=False` some of them are parameter servers, by `role_maker` or by the
    environment (`PaddleCloudRoleMaker`): see `fleet.init_worker`, `fleet.run_server`.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     fleet.init(is_collective=True)
    ...     model = fleet.distributed_model(paddle.nn.Linear(2, 1))
    ...     opt = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, model.parameters()))
    ...     model(paddle.rand([4, 2])).mean().backward()
    ...     opt.step()
    ...     return model.parameters()[0].tolist()
    >>> first, second = paddle.distributed.spawn(work, nprocs=2).results
    >>> first == second
    True
    """
    if not (is_collective or getattr(role_maker, "is_collective", False)):
        return servers.begin(role_maker, strategy)
    session.now = None
    if strategy is not None and strategy.a_sync:
        raise not_supported("a_sync in a collective job", expected="fleet.init(role)")
    chosen.now, merging.now = strategy or DistributedStrategy(), ()
    world = init_parallel_env()
    require_same("fleet.init", None, {"the strategy": [repr(chosen.now)]})
    degrees = chosen.now.hybrid_configs
    sizes = {name: degrees[f"{short}_degree"] for name, short in topology.AXES.items()}
    others = prod(n for n in sizes.values() if n != -1)
    if sizes["data"] == -1:
        sizes["data"] = max(world.size // others, 1)
    if prod(sizes.values()) != world.size:
        named = ", ".join(f"{short}_degree={sizes[name]}" for name, short in topology.AXES.items())
        raise value_error(
            f"{named} of {world.size} ranks",
            expected=f"degrees whose product is {world.size}; dp_degree=-1 takes the ranks left",
        )
    grid = topology.CommunicateTopology([*sizes], [*sizes.values()])
    topology.current.now = topology.HybridCommunicateGroup(grid)


def distributed_model(model):
    """The model in a `DataParallel`: with averaged gradients, as the strategy says. With other
    degrees than dp_degree, in a `TensorParallel`: on the mesh, for sharded inputs. A
    `PipelineLayer` becomes a `PipelineParallel`.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     fleet.init(is_collective=True)
    ...     net = fleet.distributed_model(paddle.nn.Linear(1, 1, bias_attr=False))
    ...     net(paddle.to_tensor([[1.0 + fleet.worker_index()]])).backward()
    ...     return net.parameters()[0].grad.item()
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [1.5, 1.5]
    """
    strategy, group = strategy_in_use(), topology.get_hybrid_communicate_group()
    require_same("fleet.distributed_model", None, {"the strategy": [repr(strategy)]})
    if isinstance(model, PipelineLayer) or group.get_pipe_parallel_world_size() > 1:
        return PipelineParallel(model, group, strategy)
    require_same("fleet.distributed_model", None, parameters_of(model))
    if group.mesh.dim_names != ["dp"] and group.mesh.size > 1:
        return TensorParallel(model, group)
    if strategy.sync_batch_norm:
        model = SyncBatchNorm.convert_sync_batchnorm(model)
    bucket_mb, last_mb = strategy.bucket_sizes()
    model = DataParallel(
        model,
        comm_buffer_size=bucket_mb,
        last_comm_buffer_size=last_mb,
        find_unused_parameters=strategy.find_unused_parameters,
    )
    for optimizer in merging.now:  # it was made before the model was wrapped
        optimizer.average_later()
    return model


def distributed_optimizer(optimizer, strategy=None):
    """With parameter servers, an optimizer whose steps they take. Otherwise the optimizer itself:
    equal weights and averaged gradients need no other. With `strategy.gradient_merge` one that
    updates at every k-th step alone. With a sharding_degree its states are sharded along sharding,
    in the stage of `sharding_configs`.

    A strategy here replaces the strategy of `init`. A captured `step` merges, too.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.gradient_merge = True
    ...     strategy.gradient_merge_configs = {"k_steps": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     w, found = paddle.create_parameter([1], "float32", is_bias=True), []
    ...     opt = fleet.distributed_optimizer(paddle.optimizer.SGD(1.0, [w]))
    ...     for slope in (1.0, 3.0):
    ...         (slope * w).backward()
    ...         opt.step()
    ...         opt.clear_grad()
    ...         found.append(w.item())
    ...     return found
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [[0.0, -2.0], [0.0, -2.0]]
    """
    if session.now is not None:
        session.now.strategy = strategy or session.now.strategy
        return ServerOptimizer(optimizer, session.now)
    chosen.now = strategy = strategy or strategy_in_use()
    facts = {"the strategy": [repr(strategy)], "the optimizer": [type(optimizer)]}
    require_same("fleet.distributed_optimizer", None, facts)
    pipe = topology.get_hybrid_communicate_group().get_pipe_parallel_group()
    if pipe.size > 1:
        if strategy.gradient_merge:
            raise not_supported("gradient_merge with a pp_degree", hint="accumulate_steps")
        clip_across_stages(optimizer, pipe)
    if strategy.hybrid_configs["sharding_degree"] > 1:
        if strategy.gradient_merge:
            raise not_supported(
                "gradient_merge with a sharding_degree",
                hint="shard_optimizer's gradient_accumulation_steps; or step() at every k-th batch",
            )
        mesh = topology.get_hybrid_communicate_group().mesh
        return shard_along(optimizer, strategy.sharding_configs["stage"], "sharding", mesh)
    how = strategy.gradient_merge_configs
    if not strategy.gradient_merge or how["k_steps"] == 1:
        return optimizer
    if strategy.find_unused_parameters:
        raise not_supported(
            "gradient_merge with find_unused_parameters",
            expected="models all of whose parameters get gradients in k steps",
            hint="model.no_sync() for all backwards but the last, then step()",
        )
    merged = GradientMerge(optimizer, how["k_steps"], how["avg"], *strategy.bucket_sizes())
    merging.now = (*merging.now, merged)
    return merged


def distributed_scaler(scaler):
    """The scaler itself: averaged or sharded gradients give all ranks the same result.

    >>> scaler = paddle.amp.GradScaler()
    >>> paddle.distributed.fleet.distributed_scaler(scaler) is scaler
    True
    """
    return scaler


def worker_index() -> int:
    """The number of this rank.

    >>> paddle.distributed.spawn(paddle.distributed.fleet.worker_index, nprocs=2).results
    [0, 1]
    """
    return get_rank() if session.now is None else session.now.role.current_id


def worker_num() -> int:
    """The number of ranks.

    >>> paddle.distributed.spawn(paddle.distributed.fleet.worker_num, nprocs=2).results
    [2, 2]
    """
    return get_world_size() if session.now is None else session.now.role.workers


def is_first_worker() -> bool:
    """Is this rank 0, which saves and prints?

    >>> paddle.distributed.fleet.is_first_worker()
    True
    """
    return worker_index() == 0 and not servers.is_server()


def barrier_worker() -> None:
    """Wait for all ranks.

    >>> paddle.distributed.fleet.barrier_worker()
    """
    barrier() if session.now is None else session.now.require_client().barrier()
