"""Source: Paddle API `paddle.distributed.fleet`."""

from ...core.missing import namespace
from . import utils
from .utils import recompute

__all__ = ["recompute", "utils"]

__getattr__ = namespace("paddle.distributed.fleet", globals())
