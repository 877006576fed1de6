"""Source: Paddle API `paddle.distributed.fleet.utils`."""

from ....eager.recompute import recompute
from . import sequence_parallel_utils
