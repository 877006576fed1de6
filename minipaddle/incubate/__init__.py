"""Paddle's experimental names that model zoos use. Source: Paddle API `paddle.incubate`."""

from ..core.missing import namespace as _namespace
from ..slim import asp
from . import nn

__getattr__ = _namespace("paddle.incubate", globals())
