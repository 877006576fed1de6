"""Source: Paddle API `paddle.distributed.fleet.utils`."""

from ....core.missing import namespace
from ....eager.recompute import recompute
from . import sequence_parallel_utils

__getattr__ = namespace("paddle.distributed.fleet.utils", globals())
