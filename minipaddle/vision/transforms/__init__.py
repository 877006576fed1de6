"""Transforms of pictures before a model sees them.

Source: Paddle API `paddle.vision.transforms`.
"""

from . import base, fixed, functional, random_transforms
from .base import *
from .fixed import *
from .functional import *
from .random_transforms import *

__all__ = [*base.__all__, *fixed.__all__, *random_transforms.__all__, *functional.__all__]
