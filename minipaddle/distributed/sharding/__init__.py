"""Source: Paddle API `paddle.distributed.sharding`."""

from ...core.missing import namespace
from .group_sharded import group_sharded_parallel, save_group_sharded_model

__getattr__ = namespace("paddle.distributed.sharding", globals())
