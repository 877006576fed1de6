"""Manipulation: all functions that give tensors another shape, or other parts of them."""

from . import along, arranging, gathering, joining, shaping
from .along import *  # noqa: F403
from .arranging import *  # noqa: F403
from .gathering import *  # noqa: F403
from .joining import *  # noqa: F403
from .shaping import *  # noqa: F403

__all__ = [
    *shaping.__all__,
    *arranging.__all__,
    *joining.__all__,
    *gathering.__all__,
    *along.__all__,
]
