"""The names Paddle's users import from `paddle.jit.dy2static`."""

from . import utils
