"""Many workers. Source: Paddle API `paddle.distributed`."""

from ..core.missing import namespace
from . import fleet

__all__ = ["fleet"]

__getattr__ = namespace("paddle.distributed", globals())
