"""Source: Paddle API `paddle.distributed.fleet.utils`."""

from ...core.missing import namespace
from ...eager.recompute import recompute

__all__ = ["recompute"]

__getattr__ = namespace("paddle.distributed.fleet.utils", globals())
