"""Probability distributions: formulas for the density, for draws and for divergences.

Parameters are numbers, lists, arrays or tensors, and are broadcast against each other; gradients
flow through densities, entropies, divergences and `rsample`. Shapes: `sample(shape)` gives
[*shape, *batch_shape, *event_shape]. Source: Paddle API `paddle.distribution`.
"""

from . import base, continuous, discrete, transform
from .base import *
from .continuous import *
from .discrete import *
from .transform import *

__all__ = [*base.__all__, *continuous.__all__, *discrete.__all__, *transform.__all__]
