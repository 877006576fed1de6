"""Source: Paddle API `paddle.utils`."""

from .core.missing import namespace
from .eager import dlpack

__all__ = ["dlpack"]

__getattr__ = namespace("paddle.utils", globals())
