"""What model zoos use of Paddle's experiments. Source: Paddle API `paddle.incubate`."""

from ..core.missing import namespace
from . import nn

__all__ = ["nn"]

__getattr__ = namespace("paddle.incubate", globals())
