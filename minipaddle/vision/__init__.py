"""Images: models, transforms of pictures, boxes, and a data set.

Source: Paddle API `paddle.vision`.
"""

from ..core.missing import namespace
from . import datasets, models, ops, transforms
from .models import *
from .transforms import *

__getattr__ = namespace("paddle.vision", globals())
