"""Transforms of pictures before a model sees them.

Source: Paddle API `paddle.vision.transforms`.
"""

from ...core.missing import namespace
from . import base, chance, fixed, functional
from .base import *
from .chance import *
from .fixed import *
from .functional import *

__all__ = [*base.__all__, *fixed.__all__, *chance.__all__, *functional.__all__]
__getattr__ = namespace("paddle.vision.transforms", globals())
