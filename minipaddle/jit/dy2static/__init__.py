"""The names Paddle's users import from `paddle.jit.dy2static`."""

from ...core.missing import namespace
from . import utils

__getattr__ = namespace("paddle.jit.dy2static", globals())
