"""`Strategy`: how a `DistModel` trains."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace

from ...engine.core.errors import not_supported, type_error, value_error

DEFAULTS = {
    "sharding": {"enable": False, "stage": 1, "degree": 8},
    "fused_passes": {"enable": False, "fused_passes_list": []},
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "pipeline": {
        "enable": False,
        "schedule_mode": "1F1B",
        "micro_batch_size": 1,
        "accumulate_steps": 1,
    },
    "amp": {
        "enable": False,
        "dtype": "float16",
        "level": "o1",
        "init_loss_scaling": 32768.0,
        "incr_every_n_steps": 1000,
        "decr_every_n_nan_or_inf": 2,
        "incr_ratio": 2.0,
        "decr_ratio": 0.8,
        "use_dynamic_loss_scaling": True,
        "custom_white_list": [],
        "custom_black_list": [],
        "use_promote": True,
    },
}
"""The groups of settings, and their defaults."""

INSTEAD = {
    "sharding": "dist.shard_optimizer(optimizer, dist.ShardingStage1(axis))",
    "fused_passes": "nothing: the passes of programs fuse what can be fused",
}
"""The advice for a group that is refused when it is switched on."""


class Strategy:
    """How a `DistModel` trains: groups of settings, each with a switch `enable`.

    gradient_merge: only every `k_steps`-th call makes a step, with the mean of the gradients
        (their sum if `avg` is False)
    amp: layer and loss compute in `paddle.amp.auto_cast`, a `GradScaler` scales the loss, and at
        level "o2" `paddle.amp.decorate` casts the layer's weights; all as the settings say

    pipeline: of a model that `parallelize` cut into parts, batches are `accumulate_steps`
        micro-batches of `micro_batch_size`, in the order of the `schedule_mode`, a name of
        `pipeline.schedules.SCHEDULES`

    The others, sharding and fused_passes, are refused by `dist.to_static` if they are switched on.

    config: a dict of such groups

    Raises TypeError if `config` is no dict, ValueError for a setting that does not exist.

    >>> import minipaddle.distributed as dist
    >>> strategy = dist.Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
    >>> strategy.gradient_merge.k_steps, strategy.sharding.enable
    (2, False)
    """

    def __init__(self, config=None):
        for name, fields in DEFAULTS.items():
            setattr(self, name, SimpleNamespace(**deepcopy(fields)))
        self.full_graph = True
        self._read(config)

    @classmethod
    def from_dict(cls, config_dict) -> Strategy:
        """The strategy with the groups of a dict."""
        return cls(config_dict)

    def _read(self, config) -> None:
        if config is not None and not isinstance(config, dict):
            raise type_error(f"Strategy({config!r:.80})", "a dict of dicts")
        for name, fields in (config or {}).items():
            if name not in DEFAULTS or not isinstance(fields, dict):
                raise value_error(f"Strategy: {name!r}: {fields!r}", expected=", ".join(DEFAULTS))
            for key, value in fields.items():
                if key not in DEFAULTS[name]:
                    known = ", ".join(DEFAULTS[name])
                    raise value_error(f"Strategy: {name} has no setting {key!r}", expected=known)
                setattr(getattr(self, name), key, value)

    def get(self, k: str, d=None):
        """The group `k`, or `d` if there is none."""
        return getattr(self, k, d)

    def to_dict(self) -> dict:
        """The groups as dicts.

        >>> import minipaddle.distributed as dist
        >>> dist.Strategy().to_dict()["gradient_merge"]
        {'enable': False, 'k_steps': 1, 'avg': True}
        """
        return {name: dict(vars(getattr(self, name))) for name in DEFAULTS}

    def amp_configs(self) -> dict | None:
        """The settings of mixed precision as `as_mixed_precision` takes them; None if it is off."""
        settings = dict(vars(self.amp))
        on = settings.pop("enable")
        return settings | {"level": settings["level"].upper()} if on else None

    def require_supported(self) -> None:
        """Raise NotImplementedError for a group that is switched on and does nothing here."""
        for name, hint in INSTEAD.items():
            if getattr(self, name).enable:
                raise not_supported(f"Strategy: {name}.enable = True", hint=hint)
