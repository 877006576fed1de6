"""`DistributedStrategy`: how a model is trained on many ranks."""

from collections.abc import Callable
from typing import NamedTuple

from ...engine.core.errors import not_supported, runtime_error, teach, value_error
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
"""The settings that change what happens, and their defaults."""

HINTS = {
    "cudnn_batchnorm_spatial_persistent": False,
    "cudnn_exhaustive_search": False,
    "nccl_comm_num": 1,
    "sync_nccl_allreduce": True,
    "without_graph_optimization": True,
}
"""Settings that change no result: they are stored and otherwise ignored."""


class Setting(NamedTuple):
    """A setting in a dict of settings: its default, and the values that it may have."""

    default: object
    accepts: Callable[[object], bool]
    expected: str = "1, 2, …"


def count_from(least: int) -> Callable[[object], bool]:
    """The check that a value is a whole number, `least` or more."""
    return lambda value: type(value) is int and value >= least


COUNT = Setting(1, count_from(1))
PARTS = {
    # 0: every gradient is pushed; else workers exchange what they changed every k_steps steps
    "a_sync_configs": {"k_steps": Setting(0, count_from(-1), "0, 1, 2, …")},
    "hybrid_configs": {  # the ranks along each mesh dimension; -1: all that are left
        "dp_degree": Setting(-1, lambda n: n != 0 and count_from(-1)(n)),
        "mp_degree": COUNT,
        "pp_degree": COUNT,
        "sharding_degree": COUNT,
        "sep_degree": COUNT,
    },
    "pipeline_configs": {
        "micro_batch_size": COUNT,
        "accumulate_steps": COUNT,
        "schedule_mode": Setting("1F1B", SCHEDULES.__contains__, f"one of {', '.join(SCHEDULES)}"),
    },
    "gradient_merge_configs": {"k_steps": COUNT, "avg": Setting(True, lambda value: True)},
    "sharding_configs": {"stage": Setting(1, (1, 2, 3).__contains__, "1, 2, 3")},
}
"""The settings that are dicts."""

OTHERS = (
    "adaptive_localsgd", "amp", "asp", "auto", "auto_search", "dgc", "elastic",
    "fp16_allreduce", "heter_ccl_mode", "lamb", "lars", "localsgd", "pipeline", "qat", "recompute",
    "semi_auto", "sharding", "tensor_parallel", "use_hierarchical_allreduce",
)  # fmt: skip
"""Paddle's switches that raise NotImplementedError when they are turned on."""

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
        for part, known in PARTS.items():
            vars(self)[part] = {name: setting.default for name, setting in known.items()}

    def __setattr__(self, name: str, value) -> None:
        if name in PARTS:
            value = vars(self)[name] | check_settings(name, value)
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


def check_settings(part: str, settings: dict) -> dict:
    """Return settings of a dict; raise NotImplementedError for an unknown one, ValueError for a
    value that it cannot have.
    """
    known = PARTS[part]
    for name, value in settings.items():
        if name not in known:
            raise not_supported(f"{part} with {name}", expected=", ".join(known))
        if not known[name].accepts(value):
            raise value_error(f"{part} with {name}={value!r}", expected=known[name].expected)
    return settings


chosen = per_rank(None)
"""The strategy that `fleet.init` was given."""


def strategy_in_use() -> DistributedStrategy:
    """The strategy that `fleet.init` was given; RuntimeError before it."""
    if chosen.now is None:
        raise runtime_error("fleet before fleet.init(is_collective=True)")
    return chosen.now
