"""`DistributedStrategy`: how a model is trained on many ranks."""

from __future__ import annotations

from ...engine.core.errors import not_supported, teach, value_error
from ...engine.core.rank import per_rank
from ..pipeline.schedules import SCHEDULES

KNOWN = {
    "a_sync": False,
    "find_unused_parameters": False,
    "fuse_all_reduce_ops": True,
    "fuse_grad_size_in_MB": 32,
    "gradient_merge": False,
    "last_comm_group_size_MB": 1.0,
    "sync_batch_norm": False,
}
"""The settings that count, and their defaults."""

HINTS = {
    "cudnn_batchnorm_spatial_persistent": False,
    "cudnn_exhaustive_search": False,
    "nccl_comm_num": 1,
    "sync_nccl_allreduce": True,
    "without_graph_optimization": True,
}
"""Settings that change no result: they are stored and otherwise ignored."""

DEGREES = {"dp_degree": -1, "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1, "sep_degree": 1}
"""Along how many ranks each kind of parallelism goes; -1: all that are left."""

MERGING = {"k_steps": 1, "avg": True}
"""How many steps make an update, and whether by the mean of their gradients; else by the sum."""

A_SYNC = {"k_steps": 0}
"""Every how many steps workers exchange what they changed; 0: every gradient is pushed."""

SHARDING = {"stage": 1}
"""The stage of ZeRO along the axis sharding."""

PIPELINE = {"micro_batch_size": 1, "accumulate_steps": 1, "schedule_mode": "1F1B"}
"""How a batch is cut into micro-batches, and the order in which a stage computes them."""

OTHERS = (
    "adaptive_localsgd", "amp", "asp", "auto", "auto_search", "dgc", "elastic",
    "fp16_allreduce", "heter_ccl_mode", "lamb", "lars", "localsgd", "pipeline", "qat", "recompute",
    "semi_auto", "sharding", "tensor_parallel", "use_hierarchical_allreduce",
)  # fmt: skip
"""Switches of Paddle's that are refused when they are turned on."""

INSTEAD = {
    "lamb": "paddle.optimizer.Lamb",
    "sharding": 'hybrid_configs = {"sharding_degree": …}, sharding_configs = {"stage": 1}',
    "recompute": "paddle.distributed.fleet.utils.recompute(layer, x)",
    "pipeline": 'hybrid_configs = {"pp_degree": …}, pipeline_configs = {"accumulate_steps": …}',
}


class DistributedStrategy:
    """The argument of `fleet.init`: attributes to set. Others of Paddle's are refused by name.

    a_sync, a_sync_configs: with parameter servers, does nobody wait for others? With `k_steps` more
        than 0 workers take their steps alone, and exchange what changed every k_steps of them
    find_unused_parameters: may a backward leave parameters without a gradient?
    gradient_merge, gradient_merge_configs: is only every `k_steps`-th step an update, by the mean
        (`avg`) of the gradients of all of them? They are averaged over the ranks once for it
    fuse_all_reduce_ops, fuse_grad_size_in_MB: do gradients travel together, and how many MB?
    last_comm_group_size_MB: how many of the last ones, which nothing is computed beside
    sync_batch_norm: does every batch norm take the moments of all ranks?
    hybrid_configs: a dict of `dp_degree`, `pp_degree`, `mp_degree`, `sharding_degree`,
        `sep_degree`: the ranks along each axis
    pipeline_configs: {"micro_batch_size": 1, "accumulate_steps": 1, "schedule_mode": "1F1B"}: a
        batch is as many micro-batches of that size; the modes are the names of
        `pipeline.schedules.SCHEDULES`
    sharding_configs: {"stage": 1}, which of ZeRO's stages along the axis sharding: 1, 2 or 3

    >>> strategy = paddle.distributed.fleet.DistributedStrategy()
    >>> strategy.fuse_grad_size_in_MB = 16
    >>> strategy.hybrid_configs["dp_degree"]
    -1
    """

    def __init__(self):
        vars(self).update(KNOWN | HINTS | dict.fromkeys(OTHERS, False))
        vars(self).update(hybrid_configs=dict(DEGREES), gradient_merge_configs=dict(MERGING))
        vars(self).update(sharding_configs=dict(SHARDING), pipeline_configs=dict(PIPELINE))
        vars(self).update(a_sync_configs=dict(A_SYNC))

    def __setattr__(self, name: str, value) -> None:
        if name in PARTS:
            value = vars(self)[name] | PARTS[name](value)
        elif name in OTHERS and value:
            raise not_supported(
                f"DistributedStrategy.{name}", hint=INSTEAD.get(name, "leave it off")
            )
        elif name not in vars(self):
            raise AttributeError(
                teach(f"DistributedStrategy has no {name}", expected=", ".join([*KNOWN, *HINTS]))
            )
        vars(self)[name] = value

    def bucket_sizes(self) -> tuple[float, float]:
        """The megabytes of a bucket of gradients, and of the last one; 0: each travels alone."""
        fused = self.fuse_grad_size_in_MB, self.last_comm_group_size_MB
        return fused if self.fuse_all_reduce_ops else (0, 0)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in [*KNOWN, *PARTS])
        return f"DistributedStrategy({settings})"


def hybrid(degrees: dict) -> dict:
    """The degrees that were given; ValueError for those that make no sense."""
    for name, degree in degrees.items():
        if name not in DEGREES:
            raise not_supported(f"hybrid_configs with {name}", expected=", ".join(DEGREES))
        if type(degree) is not int or (degree < 1 and (name, degree) != ("dp_degree", -1)):
            raise value_error(f"hybrid_configs with {name}={degree!r}", expected="1, 2, …")
    return degrees


def merging(settings: dict) -> dict:
    """The settings for merging gradients; ValueError for those that make no sense."""
    for name in settings:
        if name not in MERGING:
            raise value_error(f"gradient_merge_configs with {name}", expected="k_steps, avg")
    k = settings.get("k_steps", 1)
    if type(k) is not int or k < 1:
        raise value_error(f"k_steps={k!r}", expected="how many steps make an update: 1, 2, …")
    return settings


def sharding(settings: dict) -> dict:
    """The stage of ZeRO; ValueError for one that there is not."""
    for name in settings:
        if name not in SHARDING:
            raise not_supported(f"sharding_configs with {name}", expected="stage")
    if settings.get("stage", 1) not in (1, 2, 3):
        raise value_error(f"sharding_configs with stage={settings['stage']!r}", expected="1, 2, 3")
    return settings


def pipeline(settings: dict) -> dict:
    """The settings of a pipeline; ValueError for those that make no sense."""
    for name, given in settings.items():
        if name not in PIPELINE:
            raise not_supported(f"pipeline_configs with {name}", expected=", ".join(PIPELINE))
        if name == "schedule_mode":
            if given not in SCHEDULES:
                raise value_error(f"schedule_mode={given!r}", f"one of {', '.join(SCHEDULES)}")
        elif type(given) is not int or given < 1:
            raise value_error(f"pipeline_configs with {name}={given!r}", expected="1, 2, …")
    return settings


def a_sync(settings: dict) -> dict:
    """How workers of parameter servers exchange what they learn."""
    for name in settings:
        if name not in A_SYNC:
            raise not_supported(f"a_sync_configs with {name}", expected="k_steps")
    k = settings.get("k_steps", 0)
    if type(k) is not int or k < -1:
        raise value_error(f"a_sync_configs with k_steps={k!r}", expected="0, 1, 2, …")
    return settings


PARTS = {
    "a_sync_configs": a_sync,
    "hybrid_configs": hybrid,
    "pipeline_configs": pipeline,
    "gradient_merge_configs": merging,
    "sharding_configs": sharding,
}
"""Settings that are dicts, and what checks them; what is not given stays."""

chosen = per_rank(None)
"""The strategy that `fleet.init` was given."""


def strategy_in_use() -> DistributedStrategy:
    """The strategy that `fleet.init` was given; RuntimeError before it."""
    if chosen.now is None:
        raise RuntimeError(teach("fleet before fleet.init(is_collective=True)"))
    return chosen.now
