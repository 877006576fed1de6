"""Images: models, transforms of pictures, boxes, and a data set.

Source: Paddle API `paddle.vision`.
"""

from . import datasets, models, ocr, ops, transforms
from .models import *
from .transforms import *
