"""Linear algebra. Source: Paddle API `paddle.linalg`."""

from .core.missing import namespace
from .tensor import linalg
from .tensor.linalg import *

__all__ = linalg.NAMESPACE

__getattr__ = namespace("paddle.linalg", globals())
